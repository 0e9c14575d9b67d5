import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

const root = resolve(import.meta.dirname, "../..");

/** The package as npm would publish it, installed in an empty project. Needs a build: part of `npm run check:dist`. */
describe.runIf(process.env.TURNLOOP_TARGET === "esm")("the packed package", () => {
  vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
  let project: string;
  const node = (file: string, text: string): string => {
    writeFileSync(join(project, file), text);
    return execFileSync(process.execPath, [file], { cwd: project, encoding: "utf8" });
  };

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "turnloop-package-"));
    const modules = join(project, "node_modules");
    mkdirSync(join(modules, "@sinclair"), { recursive: true });
    const [packed] = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", project], { cwd: root, encoding: "utf8" }));
    execFileSync("tar", ["-xzf", join(project, packed.filename), "-C", modules]);
    execFileSync("mv", [join(modules, "package"), join(modules, "turnloop")]);
    for (const name of ["@sinclair/typebox", "eventemitter3"]) symlinkSync(join(root, "node_modules", name), join(modules, name));
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  const program = `
    const tool = { name: "add", description: "", parameters: Type.Object({ a: Type.Number() }), execute: (_id, { a }) => String(a + 1) };
    const streamFn = scriptedModel([[{ toolCall: "add", args: { a: "1" } }], "done"]);
    const recorder = recordEvents();
    runAgentLoop([userMessage("go")], { systemPrompt: "", messages: [], tools: [tool] }, { model: { id: "m", provider: "p" } }, recorder, undefined, streamFn)
      .then((messages) => { assertEventSequence(recorder.events); console.log(messages[2].content[0].text); });`;

  it("runs as ESM and as CommonJS", () => {
    // SPEC 14.1
    expect(
      node(
        "run.mjs",
        `import { runAgentLoop, userMessage } from "turnloop"; import { Type } from "turnloop/schema"; import { assertEventSequence, recordEvents, scriptedModel } from "turnloop/testing"; ${program}`,
      ),
    ).toBe("2\n");
    expect(
      node(
        "run.cjs",
        `const { runAgentLoop, userMessage } = require("turnloop"); const { Type } = require("turnloop/schema"); const { assertEventSequence, recordEvents, scriptedModel } = require("turnloop/testing"); ${program}`,
      ),
    ).toBe("2\n");
  });

  it("asks for Node's modules by their full names, which workers and Deno know", () => {
    // SPEC 14.1
    const dist = join(project, "node_modules/turnloop/dist");
    const code = readdirSync(dist).filter((name) => /\.c?js$/.test(name));
    const asked = code.flatMap((name) => [
      ...readFileSync(join(dist, name), "utf8").matchAll(/(?:from |import\(|require\()"([^".][^"]*)"/g),
    ]);
    expect(asked.map(([, name]) => name).filter((name) => isBuiltin(name as string) && !name?.startsWith("node:"))).toEqual([]);
  });

  it("has no code from strings, so that it runs under a strict content security policy", () => {
    // SPEC 5.7, 14.1
    const text = `import { runAgentLoop, userMessage } from "turnloop"; import { Type } from "turnloop/schema"; import { assertEventSequence, recordEvents, scriptedModel } from "turnloop/testing"; ${program}`;
    writeFileSync(join(project, "csp.mjs"), text);
    expect(execFileSync(process.execPath, ["--disallow-code-generation-from-strings", "csp.mjs"], { cwd: project, encoding: "utf8" })).toBe(
      "2\n",
    );
  });

  it("recognises its errors and TypeBox schemas across its two formats", () => {
    // SPEC 14.4
    const text = `import { createRequire } from "node:module"; import { TurnLoopError, ToolRegistry } from "turnloop";
      const other = createRequire(import.meta.url)("turnloop");
      try { new other.ToolRegistry([{}]); } catch (error) { console.log(TurnLoopError.is(error), error instanceof TurnLoopError, error.code); }`;
    expect(node("brand.mjs", text)).toBe("true false invalid_tool\n");
  });

  it("types for a host that adds a message role of its own", () => {
    // SPEC 2: declaration merging works on what is published
    const text = `import { type AgentMessage, defineTool } from "turnloop"; import { Type } from "turnloop/schema";
      declare module "turnloop" { interface CustomAgentMessages { note: { role: "note"; text: string } } }
      export const note: AgentMessage = { role: "note", text: "x" };
      export const tool = defineTool({ name: "t", description: "", parameters: Type.Object({ a: Type.Number() }), execute: (_id, { a }) => a.toFixed(1) });`;
    for (const file of ["types.mts", "types.cts"]) {
      writeFileSync(join(project, file), text);
      execFileSync(
        process.execPath,
        [
          join(root, "node_modules/typescript/bin/tsc"),
          "--noEmit",
          "--strict",
          "--skipLibCheck",
          "--module",
          "nodenext",
          "--target",
          "es2022",
          "--lib",
          "es2022,dom",
          file,
        ],
        { cwd: project, encoding: "utf8" },
      );
    }
  });

  it("brings the licences of what is bundled, and nothing it does not need", () => {
    // SPEC 14.2
    const packed = join(project, "node_modules/turnloop");
    expect(readFileSync(join(packed, "NOTICE"), "utf8")).toMatch(/@cfworker\/json-schema[\s\S]*eventemitter3[\s\S]*TypeBox/);
    expect(existsSync(join(packed, "LICENSE"))).toBe(true);
    expect(existsSync(join(packed, "src"))).toBe(false);
    expect(Object.keys(JSON.parse(readFileSync(join(packed, "package.json"), "utf8")).dependencies)).toEqual([
      "@sinclair/typebox",
      "eventemitter3",
    ]);
  });
});
