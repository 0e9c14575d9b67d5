import {
  type AgentMessage,
  anyOf,
  type StopCondition,
  stopAfterTurns,
  stopOnRepeatedToolCall,
  stopOnTokens,
  stopOnToolCall,
} from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { continueRun, makeTool, run, textOf } from "./helpers.js";

const call = (name: string, args: unknown = {}): ScriptedAnswer => [{ toolCall: name, args }];
const many = (answer: ScriptedAnswer): ScriptedAnswer[] => Array.from({ length: 8 }, () => answer);

/** Runs the answers under a condition. Says how it ended and after how many answers. */
async function stopped(condition: StopCondition, answers: ScriptedAnswer[], results: string[] = []) {
  let given = 0;
  const tools = ["look", "poll", "edit"].map((name) => makeTool(name, () => results[given++] ?? "same"));
  const record = await run(answers, { tools, config: { shouldStopAfterTurn: condition } });
  return { ...record, ending: [record.outcome, record.requests.length], tools };
}

describe("stop conditions", () => {
  it.each([1, 2, 5])("stopAfterTurns(%s) ends the run after as many turns", async (n) => {
    // SPEC 6.5
    expect((await stopped(stopAfterTurns(n), many(call("look")))).ending).toEqual(["stopped", n]);
  });

  it("a run that ends before the limit is untouched", async () => {
    for (const condition of [stopAfterTurns(3), stopOnToolCall("edit"), stopOnTokens(100), stopOnRepeatedToolCall(2), anyOf()])
      expect((await stopped(condition, [call("look"), "done"])).ending).toEqual(["completed", 2]);
  });

  it("stopOnToolCall ends the run after the turn that called it, with its result", async () => {
    const record = await stopped(stopOnToolCall("edit"), [call("look"), [{ toolCall: "look" }, { toolCall: "edit" }], "never"]);
    expect(record.ending).toEqual(["stopped", 2]);
    expect(record.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant", "toolResult", "toolResult"]);
    for (const answers of [
      [call("look"), "edit"],
      [call("Edit"), "done"],
      [call("toString"), "done"],
    ])
      expect((await stopped(stopOnToolCall("edit"), answers)).ending).toEqual(["completed", 2]);
  });

  it("stopOnTokens counts answers and tool results of this run, and never trips over what is no number", async () => {
    const costly: ScriptedAnswer = { content: [{ toolCall: "look" }], usage: { input: 30, output: 10 } };
    for (const [limit, turns] of [
      [1, 1],
      [40, 1],
      [41, 2],
      [120, 3],
      [121, 4],
    ] as const)
      expect((await stopped(stopOnTokens(limit), many(costly))).ending).toEqual(["stopped", turns]);
    const usage = { input: 0, output: 100, cacheRead: 0, cacheWrite: 0, totalTokens: 100 };
    const subagent = makeTool("look", () => ({
      content: [],
      usage: { ...usage, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
    }));
    const record = await run(many(costly), { tools: [subagent], config: { shouldStopAfterTurn: stopOnTokens(141) } });
    expect([record.outcome, record.requests.length]).toEqual(["stopped", 2]);
    const odd: ScriptedAnswer = { content: [{ toolCall: "look" }], usage: { input: Number.NaN, totalTokens: "x" as never } };
    expect((await stopped(stopOnTokens(1), [odd, "done"])).ending).toEqual(["completed", 2]);
  });

  it("stopOnTokens does not count what the transcript held before", async () => {
    const before = await run([{ content: [{ toolCall: "look" }], usage: { input: 1000 } }], {
      config: { shouldStopAfterTurn: () => true },
    });
    const record = await continueRun([{ content: ["x"], usage: { input: 5 } }], {
      messages: before.messages,
      config: { shouldStopAfterTurn: stopOnTokens(10) },
    });
    expect(record.outcome).toBe("completed");
  });

  const a = call("poll", { id: 1 });
  const b = call("poll", { id: 2 });
  const rows: [string, ScriptedAnswer[], string[], number | undefined][] = [
    ["the same call, the same result", [a, a, a, a], [], 3],
    ["polling, whose result changes each time", [a, a, a, a, "done"], ["10%", "20%", "30%", "40%"], undefined],
    ["polling that changes before the limit", [a, a, a, a, "done"], ["pending", "pending", "ready", "ready"], undefined],
    ["polling that gets stuck", [a, a, a, a, a, "done"], ["1", "2", "2", "2"], 4],
    ["other arguments in between", [a, a, b, a, a, "done"], [], undefined],
    ["another tool in between", [a, a, call("look", { id: 1 }), a, a, "done"], [], undefined],
    ["another tool, the same arguments", [call("look"), call("edit"), call("poll"), "done"], [], undefined],
    ["the same calls, in one batch", [[{ toolCall: "poll" }, { toolCall: "poll" }, { toolCall: "poll" }], "done"], [], 1],
    [
      "the same call by its end of one batch and the next",
      [[{ toolCall: "look" }, { toolCall: "poll" }], call("poll"), call("poll"), "done"],
      [],
      3,
    ],
    [
      "arguments in another order of keys",
      [
        call("poll", { x: 1, y: { p: 1, q: 2 } }),
        call("poll", { y: { q: 2, p: 1 }, x: 1 }),
        call("poll", { x: 1, y: { p: 1, q: 2 } }),
        "done",
      ],
      [],
      3,
    ],
    [
      "arguments that differ deep down",
      [call("poll", { x: [1, { y: 1 }] }), call("poll", { x: [1, { y: 2 }] }), call("poll", { x: [1, { y: 3 }] }), "done"],
      [],
      undefined,
    ],
    ["the same failure", [call("nowhere"), call("nowhere"), call("nowhere"), "done"], [], 3],
    ["the same broken arguments", many([{ toolCall: "poll", rawArgs: "[1" }]), [], 3],
  ];
  it.each(rows)("stopOnRepeatedToolCall(3): %s", async (_name, answers, results, turns) => {
    // SPEC 6.5 (F82)
    const { ending } = await stopped(stopOnRepeatedToolCall(3), answers, results);
    expect(ending).toEqual(turns === undefined ? ["completed", answers.length] : ["stopped", turns]);
  });

  it("a call that says the same four times before it is done is not cut off by a limit of five", async () => {
    // F82
    const results = ["pending", "pending", "pending", "pending", "done"];
    const { ending, messages } = await stopped(stopOnRepeatedToolCall(5), [a, a, a, a, a, "finished"], results);
    expect([ending, textOf(messages.at(-1))]).toEqual([["completed", 6], "finished"]);
  });

  it("anyOf stops when one says so, asks in order and no further, and waits for promises", async () => {
    const asked: string[] = [];
    const says =
      (name: string, answer: boolean | Promise<boolean>): StopCondition =>
      () => {
        asked.push(name);
        return answer;
      };
    const record = await stopped(anyOf(says("a", false), says("b", Promise.resolve(true)), says("c", true)), many(a));
    expect([record.ending, asked]).toEqual([
      ["stopped", 1],
      ["a", "b"],
    ]);
    expect(
      (await stopped(anyOf(stopAfterTurns(7), anyOf(stopOnToolCall("edit"), stopOnTokens(1))), [a, call("edit"), "x"])).ending,
    ).toEqual(["stopped", 2]);
    const failing = await stopped(
      anyOf(() => {
        throw new Error("condition broke");
      }),
      many(a),
    );
    expect([failing.ending, failing.end.error?.message]).toEqual([["error", 1], expect.stringContaining("condition broke")]);
  });

  it.each<[string, () => StopCondition, number]>([
    ["stopAfterTurns", () => stopAfterTurns(2), 2],
    ["stopOnRepeatedToolCall", () => stopOnRepeatedToolCall(3), 3],
    ["stopOnToolCall", () => stopOnToolCall("poll"), 1],
    ["stopOnTokens", () => stopOnTokens(10), 2],
  ])("a run stopped by %s is an end, not an exception: all is kept, and it can be continued", async (_name, make, turns) => {
    // SPEC 6.5 (F81)
    const answer: ScriptedAnswer = { content: [{ toolCall: "poll" }], usage: { input: 5 } };
    const condition = make();
    const first = await stopped(condition, many(answer));
    expect(first.ending).toEqual(["stopped", turns]);
    expect(first.end.error).toBeUndefined();
    expect(first.messages.length).toBe(1 + 2 * turns);
    expect(first.messages.at(-1)?.role).toBe("toolResult");
    // the same condition begins anew in the next run
    const again = await continueRun(many(answer), {
      messages: first.messages,
      tools: first.tools,
      config: { shouldStopAfterTurn: condition },
    });
    expect([again.outcome, again.requests.length]).toEqual(["stopped", turns]);
    expect(again.requests[0]?.messages.length).toBe(first.messages.length);
    const all: AgentMessage[] = [...first.messages, ...again.messages];
    const last = await continueRun(["done"], { messages: all, tools: first.tools });
    expect([last.outcome, last.messages.map(textOf)]).toEqual(["completed", ["done"]]);
  });

  it.each([0, -1, Number.NaN, "3", undefined, null, {}])("a limit of %s is refused when the condition is made", (n) => {
    for (const make of [stopAfterTurns, stopOnTokens, stopOnRepeatedToolCall])
      expect(() => make(n as number)).toThrow(
        expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(make.name) }),
      );
  });

  it.each([1.5, 2.5])("a limit of %s is refused or reached, never passed by", async (n) => {
    for (const make of [stopAfterTurns, stopOnRepeatedToolCall]) {
      let condition: StopCondition;
      try {
        condition = make(n);
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_argument" });
        continue;
      }
      expect((await stopped(condition, many(a))).outcome, make.name).toBe("stopped");
    }
  });
});
