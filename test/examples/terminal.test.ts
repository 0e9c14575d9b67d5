import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, type TestContext, test } from "vitest";
import { bundleDemo, hasTerminals, inTerminal } from "./demo.js";
import { writeFiles } from "./helpers.js";

const workspace = join(bundleDemo(), "workspace");

/** Takes the offline model a second or two to show. */
const LONG = { "long.txt": "some words in a line that is long enough to be shown for a good while, in pieces\n".repeat(20) };
beforeAll(() => {
  mkdirSync(workspace);
  writeFiles(workspace, LONG);
});

const open = ({ onTestFinished }: TestContext) => inTerminal(workspace, [], {}, onTestFinished);

// side by side, since each waits for the offline model to write most of the time
describe.skipIf(!hasTerminals).concurrent("in a terminal", () => {
  test("what is typed while it works is queued, shown, delivered and answered", async (context) => {
    const chat = open(context);
    await chat.shows('"help" and /help say what I understand.');
    await chat.shows("> ");
    chat.type("show long.txt\r");
    await chat.shows("    some words");
    chat.type("what is 1+1?\r");
    await chat.shows("» queued for the next turn: what is 1+1?\r\n");
    chat.type("/later what is 2+2?\r/tools off calculate\r");
    await chat.shows("» queued for later: what is 2+2?\r\n");
    await chat.shows("calculate is off from the next turn on.\r\n");
    await chat.shows("» delivered: what is 1+1?\r\n");
    await chat.shows('I could not calculate 1+1: There is no tool "calculate" here.');
    await chat.shows("» delivered: what is 2+2?\r\n");
    await chat.shows("4 turns, 1 tool call\r\n");
    await chat.shows("> ");
    chat.type("/tools on calculate\rwhat is 3+3?\r");
    await chat.shows("3+3 = 6");
    await chat.shows("2 turns, 1 tool call\r\n");
    chat.type("\x04");
    const { code, stdout } = await chat.finished;
    expect(code).toBe(0);
    expect(stdout.match(/some words in a line that is long enough to be shown for a good while, in pieces/g)!.length).toBeGreaterThan(15);
  }, 20_000);

  test("the output waits while somebody types, and goes on when the line is erased", async (context) => {
    const chat = open(context);
    await chat.shows("> ");
    chat.type("show long.txt\r");
    await chat.shows("    some words");
    chat.type("wh");
    await chat.shows("> \x1b[3Gwh");
    chat.type("x");
    await chat.shows("x");
    chat.type("\x7f\x7f\x7f");
    await chat.shows("\r\x1b[K");
    await chat.shows("2 turns, 1 tool call");
    chat.type("/quit\r");
    const { code, stdout } = await chat.finished;
    expect(code).toBe(0);
    const typed = stdout.slice(stdout.indexOf("> \x1b[3Gwh"), stdout.lastIndexOf("\r\x1b[K"));
    expect(typed).not.toContain("words");
  }, 20_000);

  test.for([
    ["Ctrl-C", "\x03"],
    ["/stop", "/stop\r"],
  ] as const)("%s stops the answer; what was queued stays for /retry", { timeout: 20_000 }, async ([, keys], context) => {
    const chat = open(context);
    await chat.shows("> ");
    chat.type("show long.txt\r");
    await chat.shows("    some words");
    chat.type("what is 1+1?\r");
    await chat.shows("» queued");
    chat.type(keys);
    await chat.shows("stopped\r\n");
    await chat.shows("1 queued message will go with the next question or /retry.\r\n");
    await chat.shows("> ");
    chat.type("/retry\r");
    await chat.shows("» delivered: what is 1+1?\r\n");
    await chat.shows("1+1 = 2");
    await chat.shows("2 turns, 1 tool call\r\n");
    await chat.shows("> ");
    chat.type("\x03");
    expect((await chat.finished).code).toBe(0);
  });

  test("/quit leaves at once, in the middle of an answer", async (context) => {
    const chat = open(context);
    await chat.shows("> ");
    chat.type("show long.txt\r");
    await chat.shows("    some words");
    chat.type("/quit\r");
    const { code, stdout } = await chat.finished;
    expect(code).toBe(0);
    expect(stdout).not.toContain("2 turns");
  });

  test("Ctrl-D in the middle of an answer leaves behind it", async (context) => {
    const chat = open(context);
    await chat.shows("> ");
    chat.type("show long.txt\r");
    await chat.shows("    some words");
    chat.type("\x04");
    const { code, stdout } = await chat.finished;
    expect(code).toBe(0);
    expect(stdout).toContain("2 turns, 1 tool call");
  }, 20_000);
});
