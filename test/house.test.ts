import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "..");
const source = join(root, "src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => join(source, file));

/** The rooms, lowest first: a file imports from its own room and from those before it. `import type` may look up inside the first four. */
const rooms = [
  ["errors.ts", "messages.ts", "partial-json.ts"],
  ["transcript.ts", "stream.ts", "message-builder.ts"],
  ["tool.ts", "events.ts", "config.ts", "schema.ts"],
  ["loop/"],
  ["thinking/"],
  ["agent/", "decorators/", "view.ts"],
  ["testing/", "adapters/", "index.ts"],
];

const roomOf = (file: string): number => rooms.findIndex((names) => names.some((name) => relative(source, file).startsWith(name)));

function importsOf(file: string): { from: string; typeOnly: boolean }[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/^(?:import|export)\s+(type\s)?[^;]*?from\s+"([^"]+)"/gms)].map(([, type, from]) => ({
    from: from as string,
    typeOnly: Boolean(type),
  }));
}

describe("the house", () => {
  it("has a room for every file", () => {
    expect(files.filter((file) => roomOf(file) < 0)).toEqual([]);
  });

  it("has doors that open downwards only", () => {
    const upwards: string[] = [];
    for (const file of files) {
      for (const { from, typeOnly } of importsOf(file)) {
        if (!from.startsWith(".")) continue;
        const target = resolve(dirname(file), from.replace(/\.js$/, ".ts"));
        if (roomOf(target) > roomOf(file) && !(typeOnly && roomOf(target) < 3))
          upwards.push(`${relative(source, file)} -> ${relative(source, target)}`);
      }
    }
    expect(upwards).toEqual([]);
  });

  it("uses no Node built-in, no eval, and no package but those it declares", () => {
    // SPEC 14.1, 14.2, 5.7
    const allowed = [
      "@sinclair/typebox",
      "@sinclair/typebox/value",
      "@cfworker/json-schema",
      "eventemitter3",
      "openai",
      "@agentclientprotocol/sdk",
      "@anthropic-ai/sdk",
    ];
    const builtIns: Record<string, string[]> = { "adapters/acp/tool-card.ts": ["node:path"] };
    for (const file of files) {
      const foreign = importsOf(file).filter(
        ({ from }) => !from.startsWith(".") && ![...allowed, ...(builtIns[relative(source, file)] ?? [])].includes(from),
      );
      expect(foreign, file).toEqual([]);
      const text = readFileSync(file, "utf8").replace(/\/\*.*?\*\/|\/\/.*$/gms, "");
      expect(text, file).not.toMatch(/\beval\s*\(|new Function|\brequire\s*\(|\bBuffer\b|\bsetImmediate\b/);
    }
  });

  it("assigns no function literal to a property, and has no getter in an object literal", () => {
    // V8 puts both where only major collections free them, with all they hold: three times the cost of a turn
    for (const file of files) {
      const text = readFileSync(file, "utf8");
      expect(text, file).not.toMatch(/this\.#?\w+ (\?\?|\|\|)?= (async )?(function\b|\w+ =>|\([^()]*\)(: [^=]+)? =>)/);
      expect(text, file).not.toMatch(/(,|return \{|[=(] \{)\s+get \w+\(\)/);
    }
  });

  it("lets its hosts in by its public names only", () => {
    const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const names = Object.keys(exports).map((path) => path.replace(/^\./, "turnloop"));
    const examples = join(root, "examples");
    const hosts = readdirSync(examples, { recursive: true, encoding: "utf8" }).filter(
      (path) => /\.ts$/.test(path) && !/\bnode_modules\b|\bdist\b/.test(path),
    );
    expect(hosts.length).toBeGreaterThan(40);
    for (const host of hosts) {
      const text = readFileSync(join(examples, host), "utf8");
      const specifiers = [...text.matchAll(/(?:\bfrom|\bimport\(?|\brequire\()\s*"([^"]+)"/g)].map(([, from]) => from as string);
      const hidden = specifiers.filter((from) =>
        from.startsWith(".")
          ? /^(src|dist)\b/.test(relative(root, resolve(dirname(join(examples, host)), from)))
          : /^turnloop\b/.test(from) && !names.includes(from),
      );
      expect(hidden, host).toEqual([]);
    }
  });

  it("has two runtime dependencies at most", () => {
    // SPEC 14.2
    const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect(Object.keys(dependencies).every((name) => ["@sinclair/typebox", "eventemitter3"].includes(name))).toBe(true);
  });

  it("names every rule of the contract in a test", () => {
    const contract = readFileSync(join(root, "docs/CONTRACT.md"), "utf8");
    const rules = [...contract.matchAll(/^(\d+\.\d+) /gm)].map(([, rule]) => rule as string);
    const isTest = (file: string): boolean => /\.test(-d)?\.ts$/.test(file) && !/\bnode_modules\b/.test(file);
    const tests = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).filter(isTest);
    const text = tests.map((file) => readFileSync(join(root, "test", file), "utf8")).join("\n");
    const named = new Set([...text.matchAll(/SPEC ([\d., ]+)/g)].flatMap(([, list]) => (list as string).match(/\d+\.\d+/g) ?? []));
    expect(rules.length).toBeGreaterThan(40);
    expect(rules.filter((rule) => !named.has(rule))).toEqual([]);
  });
});
