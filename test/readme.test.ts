import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it, vi } from "vitest";

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

it("the README names only commands and files that exist", () => {
  const { scripts } = JSON.parse(read("package.json"));
  for (const page of ["README.md", "CONTRIBUTING.md"]) {
    const text = read(page);
    for (const [, script] of text.matchAll(/npm run ([\w:-]+)/g)) expect(Object.keys(scripts), page).toContain(script);
    for (const [, link] of text.matchAll(/\]\((?!http)([^)#]+)\)/g)) expect(() => read(link as string), `${page}: ${link}`).not.toThrow();
  }
});
