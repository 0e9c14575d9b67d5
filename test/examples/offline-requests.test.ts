import { describe, expect, test } from "vitest";
import { type Intent, readRequests } from "../../examples/offline-requests.js";

/** Intents in short: `count a.txt`, `begin largest of src`, `read a.txt 1+5`. */
function short(intent: Intent): string {
  switch (intent.kind) {
    case "find":
    case "begin":
    case "count":
      return `${intent.kind} ${shortTarget(intent.target)}`;
    case "read": {
      const range = intent.lineCount === undefined ? "" : ` ${intent.firstLine}+${intent.lineCount}`;
      return `read ${shortTarget(intent.target)}${range}`;
    }
    case "compare":
      return `compare ${intent.targets.map(shortTarget).join(" | ")}`;
    case "search":
      return `search ${intent.text} in ${intent.folder}`;
    case "list":
      return `list ${intent.folder}`;
    case "calculate":
      return `calculate ${intent.expression}`;
    case "unclear":
      return `unclear ${intent.request}`;
    case "skill":
      return `skill ${intent.captures.join(" | ")}`;
    case "help":
      return "help";
  }
}

function shortTarget(target: Extract<Intent, { kind: "begin" }>["target"]): string {
  if (target.kind === "file") return target.path;
  return target.kind === "extreme" ? `${target.order} of ${target.folder}` : `?${target.word}`;
}

const understood = (message: string): string[] => readRequests([message])[0]!.map(short);

describe("one request", () => {
  test.each([
    ["how many lines does src/a.ts have?", "count src/a.ts"],
    ["HOW MANY LINES DOES README.md HAVE", "count README.md"],
    ["how many lines are in the file a.txt?", "count a.txt"],
    ["show me how many lines a.txt has", "count a.txt"],
    ["count the lines of 'my notes.txt'", "count my notes.txt"],
    ["What is the number of lines in a.txt?", "count a.txt"],
    ["how long is the largest file in src?", "count largest of src"],
    ["which file in src is the largest?", "find largest of src"],
    ["Which file is biggest in the src folder", "find largest of src"],
    ["what's the smallest file?", "find smallest of ."],
    ["how does `a b.txt` begin?", "begin a b.txt"],
    ["show the beginning of a.txt", "begin a.txt"],
    ["where is TODO mentioned?", "search TODO in ."],
    ["Where is abort signal used in src/loop?", "search abort signal in src/loop"],
    ["where is a word in a sentence mentioned in the folder src", "search a word in a sentence in src"],
    ["where in src is TODO mentioned?", "search TODO in src"],
    ['where is "and then; what?" mentioned', "search and then; what? in ."],
    ["where is “it's, really” mentioned", "search it's, really in ."],
    ["which files in docs contain TODO?", "search TODO in docs"],
    ["search src/ for TODO", "search TODO in src"],
    ["find TODO", "search TODO in ."],
    ["compare a.txt and b.txt", "compare a.txt | b.txt"],
    ["Compare the file a.txt with 'b and c.txt'.", "compare a.txt | b and c.txt"],
    ["what is the difference between a.txt and b.txt?", "compare a.txt | b.txt"],
    ["how do a.txt and b.txt differ?", "compare a.txt | b.txt"],
    ["compare the largest file in src with the smallest one in docs", "compare largest of src | smallest of docs"],
    ["compare a.txt and list.txt", "compare a.txt | list.txt"],
    ["what is 12 * (3 + 4)?", "calculate 12 * (3 + 4)"],
    ["12*(3+4)=", "calculate 12*(3+4)"],
    ["what's -5 + .5", "calculate -5 + .5"],
    ["how much is 3 times 4 divided by 2?", "calculate 3 * 4 / 2"],
    ["what is 5 x 3", "calculate 5 * 3"],
    ["what is 2 to the power of 10 minus 1?", "calculate 2 ^ 10 - 1"],
    ["calculate 5 + x", "calculate 5 + x"],
    ["what is 12 * (3 +?", "calculate 12 * (3 +"],
    ["list files in src", "list src"],
    ["list the files here", "list ."],
    ["ls", "list ."],
    ["list files in ..", "list .."],
    ["What files are in src/?", "list src"],
    ["show me the files in this folder", "list ."],
    ["show README.md.", "read README.md"],
    ["please read ../secret.txt!", "read ../secret.txt"],
    ["can you open the largest file in src?", "read largest of src"],
    ["show the first 5 lines of a.txt", "read a.txt 1+5"],
    ["read lines 10-20 of a.txt", "read a.txt 10+11"],
    ["show line 7 of a.txt", "read a.txt 7+1"],
    ["what does a.txt say?", "read a.txt"],
    ["what is in src?", "read src"],
    ["hello!", "help"],
    ["help", "help"],
    ["what can you do?", "help"],
    ["?", "help"],
    ["how does it begin?", "begin ?it"],
    ["tell me a joke", "unclear tell me a joke"],
    ["compare a.txt", "unclear compare a.txt"],
  ])("%s", (message, expected) => {
    expect(understood(message)).toEqual([expected]);
  });
});

describe("several requests in one message", () => {
  test.each([
    ["which file in src is the largest, and how does it begin?", ["find largest of src", "begin largest of src"]],
    ["Which file in src is the largest? How many lines does it have?", ["find largest of src", "count largest of src"]],
    ["how many lines does a.txt have and how does it begin", ["count a.txt", "begin a.txt"]],
    ["how many lines do a.txt, b.txt and c.txt have?", ["count a.txt", "count b.txt", "count c.txt"]],
    ["show a.txt and b.txt", ["read a.txt", "read b.txt"]],
    ["compare a.txt and b.txt and show c.txt; list files in src", ["compare a.txt | b.txt", "read c.txt", "list src"]],
    ["compare a.txt, b.txt and c.txt", ["compare a.txt | b.txt", "compare a.txt | c.txt"]],
    ["what is 1 + 1 and 2 * 2?", ["calculate 1 + 1", "calculate 2 * 2"]],
    ["list files in src then where is TODO mentioned\nwhat is 1/0", ["list src", "search TODO in .", "calculate 1/0"]],
    ["List the files. Then show a.txt, and then calculate 2^3.", ["list .", "read a.txt", "calculate 2^3"]],
    ["hello, what is 2+2?", ["calculate 2+2"]],
    ["what is 2+2? sing a song", ["calculate 2+2", "unclear sing a song"]],
    ['show "a; and show b.txt"; show c', ["read a; and show b.txt", "read c"]],
  ])("%s", (message, expected) => {
    expect(understood(message)).toEqual(expected);
  });
});

test("it may be a file of an earlier message", () => {
  const intents = readRequests(["show a.txt", "what is 1+1?", "how many lines does it have?"]);
  expect(intents[2]!.map(short)).toEqual(["count a.txt"]);
});

test("long messages are read in good time", () => {
  const started = performance.now();
  readRequests([
    " ".repeat(50_000),
    `where is ${"a and ".repeat(5_000)}`,
    "(".repeat(50_000),
    "which file in ".repeat(500),
    "'".repeat(20_000),
  ]);
  expect(performance.now() - started).toBeLessThan(2_000);
});
