import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, it, vi } from "vitest";
import { entries } from "../entries.js";

const root = resolve(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

it("the README's quick start is the file that is compiled and run here", async () => {
  const [, block] = /## Quick start\n\n```ts\n(.*?)```/s.exec(read("README.md")) ?? [];
  expect(block).toBe(read("examples/quick-start.ts"));
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  await import("../examples/quick-start.js");
  const lines = log.mock.calls.map(([line]) => line);
  log.mockRestore();
  expect(lines[0]).toBe("agent_start");
  expect(lines.at(-2)).toBe("agent_end");
  expect(lines.at(-1)).toEqual([{ type: "text", text: "2 + 3 is 5." }]);
});

it.each([
  ["Approvals that can wait", "approvals", ["suspended", { euros: 40 }, [{ type: "text", text: "The bill is paid." }]]],
  ["Showing a run: views and wire events", "view", ["completed", [{ type: "text", text: "Hello!" }]]],
])("the README's example of %s is a file that is compiled and run here", async (heading, name, expected) => {
  const [, block] = new RegExp(`## ${heading}\n.*?\`\`\`ts\n(.*?)\`\`\``, "s").exec(read("README.md")) ?? [];
  expect(block).toBe(read(`examples/${name}.ts`));
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  await import(`../examples/${name}.ts`);
  const { calls } = log.mock;
  log.mockRestore();
  expect(calls).toEqual([expected]);
});

it("the README's StreamFn is the one that is held to the conformance suite", () => {
  const [, block] = /## Writing a StreamFn\n.*?(\nconst myModel.*?)```/s.exec(read("README.md")) ?? [];
  expect(read("test/conformance/my-model.ts")).toContain(block?.replace("\nconst", "\nexport const"));
});

it.each([
  ["from-pi-agent-core", ["completed", "Sunny, 20 °C."]],
  ["from-ai-sdk", ["completed", "20 °C.", 0]],
])("the example of docs/%s.md is a file that is compiled and run here", async (name, expected) => {
  expect(read(`docs/${name}.md`)).toContain(`\`\`\`ts\n${read(`examples/${name}.ts`)}\`\`\``);
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  await import(`../examples/${name}.ts`);
  const { calls } = log.mock;
  log.mockRestore();
  expect(calls).toEqual([expected]);
});

it("the forms of a step for other engines are files that are compiled against the engines' types", () => {
  const page = read("examples/durable/README.md");
  const forms = [...page.slice(page.indexOf("## Other engines")).matchAll(/```ts\n(.*?)```/gs)].map(([, block]) => block);
  const files = ["inngest", "dbos", "temporal-workflow", "temporal-activities"];
  expect(forms).toEqual(files.map((file) => read(`test/types/engines/${file}.test-d.ts`).split("// README\n")[1]));
});

const pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md", "docs/from-pi-agent-core.md", "docs/from-ai-sdk.md"];

it.each(pages)("%s names only commands, files and headings that exist", (page) => {
  const { scripts } = JSON.parse(read("package.json"));
  const text = read(page);
  for (const [, script] of text.matchAll(/npm run ([\w:-]+)/g)) expect(Object.keys(scripts)).toContain(script);
  const prose = text.replace(/```.*?```/gs, "");
  for (const [, link = "", heading] of prose.matchAll(/\]\((?!http)([^)#]*)(?:#([^)]*))?\)/g)) {
    const file = link === "" ? page : join(dirname(page), link);
    expect(existsSync(join(root, file)), link).toBe(true);
    if (heading) expect(anchorsOf(read(file)), link).toContain(heading);
  }
  for (const [, picture = ""] of prose.matchAll(/\bsrc(?:set)?="([^"]*)"/g))
    expect(existsSync(join(root, dirname(page), picture)), picture).toBe(true);
  for (const [, alt = ""] of prose.matchAll(/!\[([^\]]*)\]|<img(?![^>]*\balt="\w)/g)) expect(alt, "what a picture shows").not.toBe("");
});

/** As GitHub makes them. */
function anchorsOf(page: string): string[] {
  const headings = page.replace(/```.*?```/gs, "").matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

it("the API reference covers every public entry point", () => {
  const { entryPoints } = JSON.parse(read("typedoc.json"));
  expect(new Set(entryPoints)).toEqual(new Set(Object.values(entries)));
});
