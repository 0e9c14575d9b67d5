import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { build } from "vite";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { entries } from "../../entries.js";
import { alias } from "../../vitest.config.js";
import { ask } from "./helpers.js";

const root = resolve(import.meta.dirname, "../..");
const target = process.env.TURNLOOP_TARGET ?? "src";
type Entry = keyof typeof entries;
const fileOf = (name: Entry): string => join(root, target === "src" ? entries[name] : `dist/${name}.${target === "cjs" ? "cjs" : "js"}`);

const PEERS = ["openai", "@anthropic-ai/sdk", "@agentclientprotocol/sdk", "@modelcontextprotocol/sdk", "ai"];

/** All files that loading this one loads, and the packages they name, `import(...)` where that is later. Types are no load. */
function graph(file: string, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen;
  const text = readFileSync(file, "utf8").replace(/\/\*.*?\*\/|^(import|export) type [^;]*;/gms, "");
  const named = [...text.matchAll(/(\bfrom|\bimport|\brequire\(|\bimport\()\s*["']([^"']+)["']/g)].map(([, how, name = ""]) => ({
    how,
    name,
  }));
  const packages = named.filter(({ name }) => !name.startsWith("."));
  seen.set(
    file,
    packages.map(({ how, name }) => (how === "import(" ? `import(${name})` : name)),
  );
  for (const { name } of named) {
    const path = resolve(dirname(file), name);
    if (name.startsWith(".")) graph(target === "src" ? path.replace(/\.js$/, ".ts") : path, seen);
  }
  return seen;
}

// SPEC 14.1, 14.2
describe("what a host loads", () => {
  it("is no adapter and no peer when it imports the core", () => {
    const core = graph(fileOf("index"));
    expect(core.size).toBeGreaterThan(target === "src" ? 20 : 1);
    expect([...new Set([...core.values()].flat())].filter((name) => name !== "eventemitter3" && !/typebox|cfworker/.test(name))).toEqual(
      [],
    );
    const names = Object.keys(entries) as Entry[];
    const others = names.filter((name) => !["index", "schema"].includes(name)).map((name) => relative(root, fileOf(name)));
    const reached = [...core.keys()].map((file) => relative(root, file));
    expect(reached.filter((file) => others.includes(file) || file.includes("adapters/"))).toEqual([]);
    // a chunk shared by adapters is one of theirs
    for (const file of core.keys()) expect(readFileSync(file, "utf8"), file).not.toContain("which could not be loaded. Install it");
  });

  it.each(["openai", "anthropic", "ai-sdk"] as const)(
    "with turnloop/%s is no Node built-in, and no peer but its own, which comes with the first call",
    (name) => {
      const packages = new Set([...graph(fileOf(name)).values()].flat());
      const own = { openai: ["openai"], anthropic: ["@anthropic-ai/sdk"], "ai-sdk": [] }[name];
      expect([...packages]).toEqual(own.map((peer) => (target === "cjs" ? peer : `import(${peer})`)));
    },
  );

  it("is a browser's bundle of core and openai with no Node built-in", { timeout: 30_000 }, async () => {
    const entry = "virtual:host";
    const code = 'export { Agent } from "turnloop"; export { openaiChat, openaiResponses } from "turnloop/openai";';
    const bundle = await build({
      ...{ configFile: false, root, logLevel: "error", resolve: { alias } },
      plugins: [{ name: "host", resolveId: (id) => (id === entry ? id : undefined), load: (id) => (id === entry ? code : undefined) }],
      build: { write: false, minify: false, rollupOptions: { input: entry, preserveEntrySignatures: "strict" } },
    });
    const chunks = (bundle as unknown as { output: { type: string; code: string; imports: string[]; moduleIds: string[] }[] }).output;
    const modules = chunks.flatMap(({ moduleIds = [] }) => moduleIds);
    expect(modules.filter((id) => /node_modules\/openai\/client/.test(id))).toHaveLength(1);
    expect(modules.filter((id) => /browser-external|^node:/.test(id) || builtinModules.includes(id))).toEqual([]);
    for (const { code, imports = [] } of chunks) {
      expect(imports.filter((name) => !chunks.some((chunk) => (chunk as { fileName?: string }).fileName === name))).toEqual([]);
      expect(code).not.toMatch(/\brequire\(|from "node:|__vite-browser-external/);
    }
  });
});

const callers = [
  ["openaiChat", "openai", "openai"],
  ["openaiResponses", "openai", "openai"],
  ["anthropicMessages", "anthropic", "@anthropic-ai/sdk"],
] as const;

// SPEC 12.1, 14.2
describe.runIf(target === "src")("an adapter whose package is missing", () => {
  afterEach(() => {
    for (const [, , peer] of callers) vi.doUnmock(peer);
  });

  it.each(callers)("%s names the package to install", async (caller, entry, peer) => {
    vi.doMock(peer, () => {
      throw new Error(`Cannot find package '${peer}'`);
    });
    const adapter: Record<string, any> = entry === "openai" ? await import("turnloop/openai") : await import("turnloop/anthropic");
    const { message } = await ask(adapter[caller]({ apiKey: "k" }));
    const said = `${caller} needs the package "${peer}", which could not be loaded. Install it: npm install ${peer}.`;
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "unknown", retryable: false } });
    expect(message.errorMessage).toContain(said);
  });
});

// SPEC 12.1, 14.2
describe.runIf(target !== "src")("the built package in a project with no peer installed", () => {
  let project: string;
  const extension = target === "cjs" ? "cjs" : "js";
  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "turnloop-peers-"));
    cpSync(join(root, "dist"), join(project, "dist"), { recursive: true });
    cpSync(join(root, "package.json"), join(project, "package.json"));
    mkdirSync(join(project, "node_modules/@sinclair"), { recursive: true });
    symlinkSync(join(root, "node_modules/@sinclair/typebox"), join(project, "node_modules/@sinclair/typebox"));
    // packages of this name with nothing in them hide those that lie further up
    for (const peer of PEERS) {
      mkdirSync(join(project, "node_modules", peer), { recursive: true });
      writeFileSync(join(project, "node_modules", peer, "package.json"), '{"exports":{}}');
    }
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  const node = (code: string): string =>
    execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: project, encoding: "utf8" }).trim();

  it("loads every sub-path", () => {
    const files = Object.keys(entries).map((name) => `./dist/${name}.${extension}`);
    const code = `for (const file of ${JSON.stringify(files)}) console.log(Object.keys(await import(file)).length > 0);`;
    expect(node(code).split("\n")).toEqual(files.map(() => "true"));
  });

  it.each(callers)("%s names the package to install", (caller, entry, peer) => {
    const code = `import { ${caller} } from "./dist/${entry}.${extension}";
      const context = { messages: [{ role: "user", content: "hi", timestamp: 1 }] };
      for await (const event of ${caller}({ apiKey: "k" })({ id: "m", provider: "p" }, context)) console.log(event.type, event.error?.errorMessage);`;
    const said = `${caller} needs the package "${peer}", which could not be loaded. Install it: npm install ${peer}.`;
    expect(node(code)).toMatch(new RegExp(`^start undefined\nerror ${said.replace(/\W/g, "\\$&")}`));
  });
});
