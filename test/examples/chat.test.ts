import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "tsup";
import { describe, expect, test } from "vitest";
import { bundleDemo, demo, start } from "./demo.js";
import { workspaceOf } from "./helpers.js";

const bundle = bundleDemo();

test("the offline model and the calculator run in a browser: they import nothing of Node", async () => {
  const entry = { model: "examples/offline-model.ts", calculator: "examples/calculator.ts" };
  const outDir = join(bundle, "browser");
  await build({ entry, outDir, format: "esm", platform: "browser", noExternal: [/./], splitting: false, config: false, silent: true });
  for (const name of Object.keys(entry)) {
    const code = readFileSync(join(outDir, `${name}.js`), "utf8");
    expect(code.length).toBeGreaterThan(1000);
    expect(code).not.toMatch(/^import |\brequire\(/m);
  }
});

describe("one question", () => {
  test("the answer goes to the standard output, everything else to the standard error", async () => {
    const root = workspaceOf({ "src/a.txt": "one\n", "src/b.txt": "one\ntwo\n" });
    const { code, stdout, stderr } = await demo(root, ["which file in src is the largest,", "and how does it begin?"]);
    expect(code).toBe(0);
    expect(stdout).toBe("The largest file in src is src/b.txt with 8 bytes.\n\nsrc/b.txt begins:\n    one\n    two\n");
    expect(stderr.replace(/\d+ ms|\d\.\d s/g, "# ms").split("\n")).toEqual([
      "Plan: find the largest file in src; look at how the largest file in src begins. Next: list_files.",
      '→ list_files folder: "src", order: "largest"',
      "✓ list_files: src: 2 files, 12 bytes (# ms)",
      "Next: read_file.",
      '→ read_file path: "src/b.txt", firstLine: 1, lineCount: 5',
      "✓ read_file: src/b.txt: 2 lines, 8 bytes; lines 1-2: (# ms)",
      "Now I can answer.",
      "# ms, 3 turns, 2 tool calls",
      "",
    ]);
  });

  test("a failed call is an answer all the same", async () => {
    const { code, stdout, stderr } = await demo(workspaceOf({}), ["--", "-1/0"]);
    expect(code).toBe(0);
    expect(stdout).toBe('I could not calculate -1/0: Division by zero: "0" is 0.\n');
    expect(stderr).toMatch(/✗ calculate failed: Division by zero: "0" is 0\. \(\d+ ms\)/);
  });
});

describe("standard input", () => {
  test("each line is a question of one conversation", async () => {
    const root = workspaceOf({ "a.txt": "one\n" });
    const { code, stdout } = await demo(root, [], { input: "how does a.txt begin?\n\n  how many lines does it have?" });
    expect(code).toBe(0);
    expect(stdout).toBe("a.txt begins:\n    one\n\na.txt has 1 line (4 bytes).\n");
  });

  test("commands work there too, and say what they did on the standard error", async () => {
    const input = "/later what is 1+1?\n/tools off calculate\nwhat is 2+2?\n/quit\nwhat is 3+3?\n";
    const { code, stdout, stderr } = await demo(workspaceOf({}), [], { input });
    expect(code).toBe(0);
    expect(stdout).toBe('1+1 = 2\n\n\nI could not calculate 2+2: There is no tool "calculate" here.\n\n');
    expect(stderr).toContain("\ncalculate is off from the next turn on.\n");
  });

  test("no line at all is said", async () => {
    const { code, stdout, stderr } = await demo(workspaceOf({}), []);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "",
      stderr: "No question came from the standard input. --help shows the usage.\n",
    });
  });
});

describe("Ctrl-C", () => {
  const longFile = { "long.txt": "some words in a line\n".repeat(40) };

  test("stops the answer", async () => {
    const { child, finished } = start(workspaceOf(longFile), ["show long.txt"]);
    await once(child.stdout, "data");
    child.kill("SIGINT");
    const { code, stdout, stderr } = await finished;
    expect(code).toBe(130);
    expect(stdout).toMatch(/^long\.txt \(40/);
    expect(stdout.length).toBeLessThan(800);
    expect(stdout.endsWith("\n")).toBe(true);
    expect(stderr).toMatch(/\nstopped\n.* 2 turns, 1 tool call\n$/);
  });

  test("ends the reading of lines, also while the standard input stays open", async () => {
    const { child, finished } = start(workspaceOf(longFile), []);
    child.stdin.write("show long.txt\nwhat is 1+1?\n");
    await once(child.stdout, "data");
    child.kill("SIGINT");
    const { code, stdout, stderr } = await finished;
    expect(code).toBe(130);
    expect(stderr).toContain("\nstopped\n");
    expect(stdout).not.toContain("1+1");
  });
});

test("a reader that stops reading is no error", async () => {
  const { child, finished } = start(workspaceOf({ "long.txt": "some words in a line\n".repeat(40) }), ["show long.txt"]);
  await once(child.stdout, "data");
  child.stdout.destroy();
  const { code, stderr } = await finished;
  expect(code).toBe(0);
  expect(stderr).not.toContain("EPIPE");
});

describe("usage", () => {
  test("--help", async () => {
    for (const flag of ["--help", "-h"]) {
      const { code, stdout, stderr } = await demo(workspaceOf({}), [flag]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(/^Usage: npm run demo -- \[question\]\n/);
    }
  });

  test.each<[string[], string, Record<string, string>?]>([
    [["--modle", "x"], `Unknown option '--modle'. Put a question that begins with "-" after "--"; --help shows the usage.\n`],
    [["-x"], `Unknown option '-x'. Put a question that begins with "-" after "--"; --help shows the usage.\n`],
    [["--model"], `Option '--model <value>' argument missing. Put a question that begins with "-" after "--"; --help shows the usage.\n`],
    [["--model", "x"], 'The model "x" needs a server; set OPENAI_BASE_URL, OPENAI_API_KEY or both. --help shows the usage.\n'],
    [["--model", " "], "The model's name is empty. --help shows the usage.\n", { OPENAI_API_KEY: "k" }],
    [
      ["--model", "x"],
      'OPENAI_BASE_URL must be a web address such as http://localhost:11434/v1; got "localhost:1". --help shows the usage.\n',
      { OPENAI_BASE_URL: "localhost:1" },
    ],
    [[" "], "The question is empty; expected some words. --help shows the usage.\n"],
  ])("%j is refused in one line", async (args, stderr, env = {}) => {
    expect(await demo(workspaceOf({}), args, { env })).toEqual({ code: 2, stdout: "", stderr });
  });
});

test("a server without the package of its client is one line too; the offline model never needs it", async () => {
  const env = { OPENAI_API_KEY: "k" };
  const { code, stdout, stderr } = await demo(workspaceOf({}), ["--model", "x", "hi"], { env });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^error: .*Install it: npm install openai\..*\n$/);
  expect(await demo(workspaceOf({}), ["what is 1+1?"], { env })).toMatchObject({ code: 0, stdout: "1+1 = 2\n" });
});
