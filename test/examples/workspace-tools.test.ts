import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AgentToolResult } from "turnloop";
import { describe, expect, test } from "vitest";
import { workspaceTools } from "../../examples/workspace-tools.js";
import { temporaryFolder, workspaceOf, writeFiles } from "./helpers.js";

interface CallOptions {
  signal?: AbortSignal;
  onUpdate?: (text: string) => void;
}

async function call(root: string, name: string, args: Record<string, unknown>, { signal, onUpdate }: CallOptions = {}) {
  const tool = workspaceTools(root).find((candidate) => candidate.name === name)!;
  const showUpdate = ({ content }: AgentToolResult): void => {
    for (const block of content) if (block.type === "text") onUpdate?.(block.text);
  };
  return tool.execute("call", args, signal ?? new AbortController().signal, showUpdate, { turn: 1, index: 0 });
}

describe("list_files", () => {
  test("lists files of all levels with their sizes, without what tools generate", async () => {
    const root = workspaceOf({ "b.txt": "12345", "src/a.txt": "1", "node_modules/x/x.js": "x", ".git/HEAD": "x", "dist/x.js": "x" });
    expect(await call(root, "list_files", {})).toBe(".: 2 files, 6 bytes\nb.txt (5 bytes)\nsrc/a.txt (1 byte)");
    expect(await call(root, "list_files", { folder: "src" })).toBe("src: 1 file, 1 byte\nsrc/a.txt (1 byte)");
  });

  test("orders by size", async () => {
    const root = workspaceOf({ a: "12", b: "1", c: "123" });
    expect(await call(root, "list_files", { order: "largest" })).toMatch(/c .*\na .*\nb /);
    expect(await call(root, "list_files", { order: "smallest" })).toMatch(/b .*\na .*\nc /);
  });

  test("shows the largest also of more files than it lists", async () => {
    const files = Object.fromEntries(Array.from({ length: 510 }, (_, index) => [`f${1000 + index}`, index === 505 ? "large" : "x"]));
    const output = (await call(workspaceOf(files), "list_files", { order: "largest" })) as string;
    expect(output.split("\n").slice(0, 2)).toEqual([".: 510 files, 514 bytes", "f1505 (5 bytes)"]);
    expect(output.split("\n").at(-1)).toBe("[10 more files not shown; list a folder further down.]");
    expect(output.split("\n")).toHaveLength(502);
  });
});

describe("read_file", () => {
  test("reads a file or some of its lines", async () => {
    const root = workspaceOf({ "a.txt": "one\r\ntwo\nthree\n", empty: "" });
    expect(await call(root, "read_file", { path: "a.txt" })).toBe("a.txt: 3 lines, 15 bytes; lines 1-3:\none\ntwo\nthree");
    expect(await call(root, "read_file", { path: "a.txt", firstLine: 2, lineCount: 1 })).toBe("a.txt: 3 lines, 15 bytes; lines 2-2:\ntwo");
    expect(await call(root, "read_file", { path: "empty" })).toBe("empty: 0 lines, 0 bytes");
    await expect(call(root, "read_file", { path: "a.txt", firstLine: 4 })).rejects.toThrow('"a.txt" has 3 lines; got 4 as firstLine.');
  });

  test("says where it cut", async () => {
    const root = workspaceOf({ "many.txt": "123456789\n".repeat(3000), "long.txt": `${"x".repeat(19_999)}😀 end` });
    const many = ((await call(root, "read_file", { path: "many.txt" })) as string).split("\n");
    expect(many[0]).toBe("many.txt: 3000 lines, 30000 bytes; lines 1-2000:");
    expect(many.at(-1)).toBe("[Cut after 20000 characters; go on with firstLine 2001.]");
    const long = ((await call(root, "read_file", { path: "long.txt" })) as string).split("\n");
    expect(long[1]).toBe("x".repeat(19_999));
    expect(long[2]).toBe("[Line 1 is cut after 20000 characters.]");
  });

  test("refuses what is no text", async () => {
    const root = workspaceOf({ "image.png": Buffer.from([1, 0, 2]), "huge.txt": "x".repeat(5_000_001), "folder/a": "" });
    await expect(call(root, "read_file", { path: "image.png" })).rejects.toThrow('"image.png" is a binary file; expected text.');
    await expect(call(root, "read_file", { path: "huge.txt" })).rejects.toThrow(
      '"huge.txt" has 5000001 bytes; at most 5000000 can be read.',
    );
    await expect(call(root, "read_file", { path: "folder" })).rejects.toThrow('"folder" is a folder; expected a file.');
    await expect(call(root, "read_file", { path: "nope" })).rejects.toThrow('"nope" does not exist in the workspace.');
    await expect(call(root, "read_file", { path: "image.png/x" })).rejects.toThrow('"image.png/x" does not exist in the workspace.');
  });
});

describe("search_text", () => {
  test("finds literal text line by line, in any case unless told otherwise", async () => {
    const root = workspaceOf({ "a.txt": "one (x)\nONE (X)\n", "src/b.txt": "none\n  one (x)  \n" });
    expect(await call(root, "search_text", { text: "one (x)" })).toBe(
      ".: 3 lines in 2 files of 2 files searched\na.txt:1: one (x)\na.txt:2: ONE (X)\nsrc/b.txt:2: one (x)",
    );
    expect(await call(root, "search_text", { text: "ONE", folder: "a.txt", matchCase: true })).toBe(
      "a.txt: 1 line in 1 file of 1 file searched\na.txt:2: ONE (X)",
    );
  });

  test("skips binary and huge files, caps what it shows", async () => {
    const root = workspaceOf({ "binary.bin": Buffer.from("x\0x"), "huge.txt": "x".repeat(1_000_001), "many.txt": "x\n".repeat(130) });
    const lines = ((await call(root, "search_text", { text: "x" })) as string).split("\n");
    expect(lines[0]).toBe(".: 130 lines in 1 file of 1 file searched");
    expect(lines).toHaveLength(103);
    expect(lines.slice(-2)).toEqual([
      "[30 more lines not shown; search a folder further down.]",
      "[2 files skipped: binary, too large or unreadable.]",
    ]);
  });

  test("reports progress", async () => {
    const files = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`f${1000 + index}`, "word"]));
    const updates: string[] = [];
    await call(workspaceOf(files), "search_text", { text: "word" }, { onUpdate: (text) => updates.push(text) });
    expect(updates).toEqual(["0 of 150 files searched, 0 lines found", "100 of 150 files searched, 100 lines found"]);
  });
});

describe("count_lines", () => {
  test.each([
    ["", "0 lines, 0 bytes"],
    ["one", "1 line, 3 bytes"],
    ["one\n", "1 line, 4 bytes"],
    ["one\n\ntwo", "3 lines, 8 bytes"],
    ["x\n".repeat(100_000), "100000 lines, 200000 bytes"],
  ])("counts %j", async (content, expected) => {
    expect(await call(workspaceOf({ "a.txt": content }), "count_lines", { path: "a.txt" })).toBe(`a.txt: ${expected}`);
  });
});

test("calculate", async () => {
  expect(await call(temporaryFolder(), "calculate", { expression: " 12 * (3 + 4) " })).toBe("12 * (3 + 4) = 84");
});

describe("the workspace is not left", () => {
  /** A root next to a secret file, with links that lead out of it and one that does not. */
  function rootNextToSecrets(): string {
    const parent = workspaceOf({ "secret.txt": "secret", "root-secret/b.txt": "secret", "root/inside.txt": "inside" });
    const root = join(parent, "root");
    symlinkSync(join(parent, "secret.txt"), join(root, "link.txt"));
    symlinkSync(parent, join(root, "linked-folder"));
    symlinkSync("inside.txt", join(root, "fine.txt"));
    return root;
  }

  const toolsWithPaths: [string, (path: string) => Record<string, unknown>][] = [
    ["list_files", (folder) => ({ folder })],
    ["read_file", (path) => ({ path })],
    ["search_text", (folder) => ({ text: "secret", folder })],
    ["count_lines", (path) => ({ path })],
  ];

  test.each(toolsWithPaths)("by %s", async (name, argsFor) => {
    const root = rootNextToSecrets();
    const away = [
      "..",
      "../secret.txt",
      "../root-secret/b.txt",
      "../does-not-exist",
      "a/../../secret.txt",
      "/etc/passwd",
      join(dirname(root), "secret.txt"),
    ];
    for (const path of away) {
      const error = `"${path}" is outside the workspace; expected a path inside ${root}.`;
      await expect(call(root, name, argsFor(path))).rejects.toThrow(new Error(error));
    }
    for (const path of ["link.txt", "linked-folder", "linked-folder/secret.txt"]) {
      const error = `"${path}" leads outside the workspace through a symbolic link; expected a path inside ${root}.`;
      await expect(call(root, name, argsFor(path))).rejects.toThrow(new Error(error));
    }
  });

  test("links are not followed when a folder is listed or searched", async () => {
    const root = rootNextToSecrets();
    expect(await call(root, "list_files", {})).toBe(".: 1 file, 6 bytes\ninside.txt (6 bytes)");
    expect(await call(root, "search_text", { text: "secret" })).toBe(".: 0 lines in 0 files of 1 file searched");
  });

  test("links and absolute paths that stay inside are fine", async () => {
    const root = rootNextToSecrets();
    for (const path of ["fine.txt", join(root, "inside.txt"), "./x/../inside.txt"]) {
      expect(await call(root, "count_lines", { path })).toBe(`${path}: 1 line, 6 bytes`);
    }
  });

  test("a name that only begins with two dots is inside", async () => {
    const root = workspaceOf({ "..name": "x" });
    expect(await call(root, "count_lines", { path: "..name" })).toBe("..name: 1 line, 1 byte");
  });
});

test("an aborted signal ends every tool that looks at files", async () => {
  const root = workspaceOf({ "a.txt": "text" });
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(call(root, "list_files", {}, { signal })).rejects.toThrow("enough");
  await expect(call(root, "read_file", { path: "a.txt" }, { signal })).rejects.toThrow(/abort/i);
  await expect(call(root, "search_text", { text: "x" }, { signal })).rejects.toThrow("enough");
  await expect(call(root, "count_lines", { path: "a.txt" }, { signal })).rejects.toThrow(/abort/i);
});

test("a search stops in the middle", async () => {
  const files = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`f${1000 + index}`, "word"]));
  const controller = new AbortController();
  const updates: string[] = [];
  const onUpdate = (text: string): void => {
    if (updates.push(text) === 2) controller.abort();
  };
  const search = call(workspaceOf(files), "search_text", { text: "word" }, { signal: controller.signal, onUpdate });
  await expect(search).rejects.toThrow(/abort/i);
  expect(updates).toHaveLength(2);
});

test("a file that goes away between listing and reading is skipped", async () => {
  const root = workspaceOf({ "a.txt": "word", "b.txt": "word" });
  const onUpdate = (): void => rmSync(join(root, "a.txt"));
  expect(await call(root, "search_text", { text: "word" }, { onUpdate })).toBe(
    ".: 1 line in 1 file of 1 file searched\nb.txt:1: word\n[1 file skipped: binary, too large or unreadable.]",
  );
});

test("a root that does not exist is refused at once, a nested ignored folder is ignored", async () => {
  expect(() => workspaceTools(join(temporaryFolder(), "nope"))).toThrow(/ENOENT/);
  const root = temporaryFolder();
  mkdirSync(join(root, "packages/one/node_modules"), { recursive: true });
  writeFiles(root, { "packages/one/node_modules/x.js": "x" });
  expect(await call(root, "list_files", {})).toBe(".: 0 files, 0 bytes");
});
