import { type AgentTool, TurnLoopError } from "turnloop";
import { performStep, type Step, type StepInfo } from "turnloop/durable";
import { describe, expect, it } from "vitest";
import { aborted, makeTool, resultsOf, textOf } from "../helpers.js";
import { call, MemoryJournal, play, script } from "./durable-helpers.js";

/** An engine whose steps are done by a worker that gets nothing but JSON. */
function remote(journal: MemoryJournal, tools: AgentTool[], streamFn = answers, signal?: AbortSignal): Step {
  return <T>(name: string, _fn: unknown, info: StepInfo): Promise<T> => {
    const sent: StepInfo = JSON.parse(JSON.stringify(info));
    return journal.step(name, () => performStep(sent, { streamFn, tools, signal, toolTimeoutMs: 20 }) as Promise<T>, info);
  };
}

const answers = script([[call("key"), call("fails"), call("hangs")], "Done."]);
const tools = [
  makeTool("key", (_i, _p, _s, onUpdate, position) => {
    onUpdate({ content: [] });
    return JSON.stringify(position);
  }),
  makeTool("fails", () => Promise.reject(new Error("it fails"))),
  makeTool("hangs", () => new Promise(() => {})),
];
const unused = { streamFn: () => expect.unreachable() as never, tools: tools.map((tool) => ({ ...tool, execute: () => "not here" })) };

// SPEC 16.1, 16.2
describe("performStep", () => {
  it("does the steps of a run in another process, which the run takes as its own", async () => {
    const journal = new MemoryJournal();
    const played = await play(remote(journal, tools), unused);
    expect(resultsOf(played).map(textOf)).toEqual([
      '{"turn":1,"index":0,"idempotencyKey":"run/tool:1:0:key"}',
      "it fails",
      'Tool "hangs" did not finish within its limit of 20 ms; it may still be running or may have taken effect.',
    ]);
    expect(textOf(played.messages.at(-1))).toBe("Done.");
    const replay = new MemoryJournal(journal.entries);
    expect((await play(remote(replay, tools), unused)).messages).toEqual(played.messages);
    expect(replay.ran).toEqual([]);
  });

  it("records what an abort cut short, and rejects at the end of its attempt", async () => {
    const caller = new AbortController();
    const obeys = makeTool("key", (_i, _p, signal) => {
      queueMicrotask(() => caller.abort("enough"));
      return aborted(signal).then(() => "stopped");
    });
    const streamFn = script([[call("key")]]);
    const played = await play(remote(new MemoryJournal(), [obeys], streamFn, caller.signal), { ...unused, signal: caller.signal });
    expect([played.outcome, textOf(resultsOf(played)[0]), resultsOf(played)[0]?.isError]).toEqual(["aborted", "stopped", true]);
    const info: StepInfo = { kind: "model", input: { model: { id: "m", provider: "p" }, context: { messages: [] }, options: {} } };
    await expect(performStep(info, { streamFn, attempt: AbortSignal.abort(new Error("moved")) })).rejects.toThrow("moved");
  });

  it("has no result to make up for a tool it does not know", async () => {
    const played = await play(remote(new MemoryJournal(), []), unused);
    expect([played.outcome, resultsOf(played)]).toEqual(["error", []]);
    const call = { turn: 1, index: 0 };
    const failure = await performStep(
      { kind: "tool", input: { toolCallId: "1", toolName: "x", args: {}, call, graceMs: 0 } },
      unused,
    ).catch((error: unknown) => error);
    expect(TurnLoopError.is(failure) && failure.code).toBe("invalid_tool");
  });

  const input = { model: { id: "m", provider: "p" }, context: { messages: [] }, options: {} };
  it.each<[string, unknown, unknown, string]>([
    ["no model", { kind: "model", input }, { tools }, "performStep: streamFn must be a function; got undefined."],
    ["nothing at all", undefined, undefined, "performStep: info must be what step was given; got undefined."],
    ["no info", undefined, unused, "performStep: info must be"],
    ["an info that is none", { kind: "agent" }, unused, "performStep: info must be"],
    ["an info without its input", { kind: "tool" }, unused, "performStep: info must be"],
    [
      "tools that are none",
      { kind: "tool", input: { toolName: "key" } },
      { ...unused, tools: 5 },
      "performStep: tools must be an iterable",
    ],
  ])("misused it records nothing that the run would take for an answer: %s", async (_, info, options, text) => {
    const failure = await performStep(info as StepInfo, options as never).catch((error: unknown) => error);
    expect(TurnLoopError.is(failure)).toBe(true);
    expect(failure).toMatchObject({ code: "invalid_argument", message: expect.stringContaining(text) });
  });
});
