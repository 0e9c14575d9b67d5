import {
  type AgentEvent,
  type AgentMessage,
  type AgentTool,
  resumeAgentLoop,
  runAgentLoop,
  runAgentLoopContinue,
  type StreamFn,
  TurnLoopError,
  userMessage,
} from "turnloop";
import { type DurableOptions, durable, type Step } from "turnloop/durable";
import { recordEvents } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { aborted, deferred, makeTool, model, outline, resultsOf, textOf } from "../helpers.js";
import { call, MemoryJournal, play, script, ticks } from "./durable-helpers.js";

/** The engine that does not record this step. */
function refusing(refused: string, journal = new MemoryJournal()): { step: Step; journal: MemoryJournal } {
  const step: Step = (name, fn, info) => {
    if (!name.endsWith(refused)) return journal.step(name, fn, info);
    journal.asked.push(name);
    return Promise.reject(new Error("the engine is gone"));
  };
  return { step, journal };
}

const works = (name: string, after = 0): AgentTool => makeTool(name, () => ticks(after).then(() => name));
const abc = [call("a"), call("b"), call("c")];
const tools = [works("a", 2), works("b"), works("c", 4)];

// SPEC 16.2, 5.2
describe("a step that is not recorded", () => {
  it("ends the run without a result for its call, the siblings recorded and nothing started after it", async () => {
    const { step, journal } = refusing("tool:1:1:b");
    const polls = vi.fn(() => []);
    const config = { getSteeringMessages: polls, getFollowUpMessages: polls, shouldStopAfterTurn: () => expect.unreachable() as never };
    const played = await play(step, { streamFn: script([abc, "Never said."]), tools, config });
    expect(played.end).toMatchObject({
      outcome: "error",
      error: { message: 'Step "run/tool:1:1:b" was not recorded: the engine is gone' },
    });
    expect(resultsOf(played).map(({ toolName }) => toolName)).toEqual(["a", "c"]);
    expect(journal.asked).toEqual(["run/model:1", "run/tool:1:0:a", "run/tool:1:1:b", "run/tool:1:2:c"]);
    expect(journal.entries.map(({ name }) => name)).toEqual(["run/model:1", "run/tool:1:0:a", "run/tool:1:2:c"]);
    expect(polls).not.toHaveBeenCalled();
    expect(outline(played.events).slice(-10)).toEqual([
      "tool_execution_start scripted_1_1",
      "tool_execution_start scripted_1_2",
      "tool_execution_end scripted_1_0",
      "tool_execution_end scripted_1_2",
      "message_start toolResult",
      "message_end toolResult",
      "message_start toolResult",
      "message_end toolResult",
      "turn_end",
      "agent_end error",
    ]);
    // and the engine, running it again, goes on from there
    const again = await play(new MemoryJournal(journal.entries).step, { streamFn: script([abc, "Said."]), tools });
    expect([again.outcome, resultsOf(again).length]).toEqual(["completed", 3]);
  });

  it.each([
    ["one after the other", { toolExecution: "sequential" }, ["run/model:1", "run/tool:1:0:a", "run/tool:1:1:b"]],
    ["one at a time", { maxParallelToolCalls: 1 }, ["run/model:1", "run/tool:1:0:a", "run/tool:1:1:b"]],
    ["two at a time", { maxParallelToolCalls: 2 }, ["run/model:1", "run/tool:1:0:a", "run/tool:1:1:b"]],
  ] as const)("starts no later one: %s", async (_, config, asked) => {
    const { step, journal } = refusing("tool:1:1:b");
    const played = await play(step, { streamFn: script([abc, "Never said."]), tools, config });
    expect(journal.asked).toEqual(asked);
    expect([played.outcome, resultsOf(played).map(({ toolName }) => toolName)]).toEqual(["error", ["a"]]);
  });

  it("is a model call: an error turn that shows nothing of what came live, also in an aborted run", async () => {
    for (const abort of [false, true]) {
      const caller = new AbortController();
      const step: Step = async (_name, fn) => {
        await fn({});
        if (abort) caller.abort();
        throw new Error("disk full");
      };
      const { messages, outcome, events } = await play(step, { streamFn: script(["half an answer"]), signal: caller.signal });
      expect(events.some(({ type }) => type === "message_update")).toBe(true);
      expect(outcome).toBe("error");
      expect(messages[1]).toMatchObject({
        stopReason: "error",
        content: [],
        errorMessage: 'Step "run/model:1" was not recorded: disk full',
      });
    }
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["something else", { at: "then" }],
  ])("is one for which the engine gives %s", async (_, given) => {
    const { step } = { step: (async (name, fn) => (name.includes("tool") ? given : fn({}))) as Step };
    const played = await play(step, { streamFn: script([[call("a")], "x"]), tools });
    expect([played.outcome, resultsOf(played)]).toEqual(["error", []]);
    expect(played.end.error?.message).toContain("step must resolve with what fn gave; got");
  });

  it("may be one that fails for ever: each attempt says which, nothing recorded runs again, and a host may decide about the call", async () => {
    const journal = new MemoryJournal();
    const did: string[] = [];
    const counted = ["a", "b", "c"].map((name) => makeTool(name, () => `${did.push(name)} done`));
    const ends: unknown[] = [];
    let played = await play(refusing("tool:1:1:b", journal).step, { streamFn: script([abc, "Never said."]), tools: counted });
    for (let attempt = 1; attempt < 5; attempt++) {
      ends.push(played.end.error?.message);
      played = await play(refusing("tool:1:1:b", journal).step, { streamFn: script([]), tools: counted });
    }
    expect(new Set(ends)).toEqual(new Set(['Step "run/tool:1:1:b" was not recorded: the engine is gone']));
    expect([did, played.messages.length]).toEqual([["a", "c"], 4]);
    // given up: what there is goes into the conversation
    const run = durable({ step: journal.step, streamFn: script([abc, "Said."]), tools: counted, prefix: "decided" });
    const context = { systemPrompt: "", messages: played.messages, tools: run.tools };
    const decisions = [{ toolCallId: "scripted_1_1", action: "result" as const, result: "done by hand" }];
    const more = await resumeAgentLoop(decisions, context, { model, now: run.now }, () => {}, undefined, run.streamFn);
    expect([more.map(textOf), did]).toEqual([
      ["done by hand", "Said."],
      ["a", "c"],
    ]);
  });

  it("may be one whose engine throws at once", async () => {
    const step = (() => {
      throw new Error("no such engine");
    }) as Step;
    const { end } = await play(step, { streamFn: script(["x"]) });
    expect(end.error?.message).toBe('Step "run/model:1" was not recorded: no such engine');
  });

  it("is given up when the engine settles nothing after an abort", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const caller = new AbortController();
      const reached = deferred();
      const step: Step = (name, fn) => {
        if (!name.includes("tool")) return fn({});
        reached.resolve();
        return new Promise(() => {});
      };
      const playing = play(step, { streamFn: script([[call("a")]]), tools, signal: caller.signal });
      await reached.promise;
      caller.abort();
      await vi.advanceTimersByTimeAsync(10_000);
      const played = await playing;
      expect([played.outcome, resultsOf(played), vi.getTimerCount()]).toEqual(["error", [], 0]);
      expect(played.end.error?.message).toContain("the engine did not settle it within 10000 ms after the abort");
    } finally {
      vi.useRealTimers();
    }
  });
});

// SPEC 16.2, 7.2
it("a recorded abort does not wait for ever for calls that a lower limit of today holds back", async () => {
  const caller = new AbortController();
  const quits = makeTool("a", async (_i, _p, signal) => {
    await ticks(2);
    caller.abort("enough");
    throw signal.reason;
  });
  const original = new MemoryJournal();
  const others = [works("b", 4), works("c", 4)];
  const played = await play(original.step, { streamFn: script([abc]), tools: [quits, ...others], signal: caller.signal });
  expect([played.outcome, original.entries.length]).toEqual(["aborted", 4]);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const replaying = play(new MemoryJournal(original.entries).step, { streamFn: script([]), tools, config: { maxParallelToolCalls: 1 } });
    await ticks(20);
    await vi.advanceTimersByTimeAsync(10_000);
    const again = await replaying;
    expect([again.outcome, resultsOf(again).length, vi.getTimerCount()]).toEqual(["aborted", 3, 0]);
  } finally {
    vi.useRealTimers();
  }
});

// SPEC 16.2
describe("what ends through the step's own signal", () => {
  const moved = new Error("moved to another worker");
  const host = { streamFn: script([[call("a")], "Done."]) };
  const deaf = makeTool("a", () => new Promise(() => {}));
  const obeys = makeTool("a", (_i, _p, signal) => aborted(signal).then((reason) => Promise.reject(reason)));
  const says = makeTool("a", (_i, _p, signal) => aborted(signal).then(() => "stopped"));
  const silent: StreamFn = async function* () {
    await new Promise(() => {});
  };

  it.each<[string, { streamFn: StreamFn; tools?: AgentTool[] }, string]>([
    ["a tool that ignores it", { ...host, tools: [deaf] }, "run/tool:1:0:a"],
    ["a tool that throws", { ...host, tools: [obeys] }, "run/tool:1:0:a"],
    ["a tool that returns", { ...host, tools: [says] }, "run/tool:1:0:a"],
    ["a model that ignores it", { streamFn: silent }, "run/model:1"],
    ["a model that obeys it", { streamFn: script([async (_c, o) => aborted(o?.signal as AbortSignal).then(() => "x")]) }, "run/model:1"],
  ])("is not recorded and ends in no result: %s", async (_, options, name) => {
    for (const when of ["before", "during"] as const) {
      const journal = new MemoryJournal();
      const step: Step = (asked, fn, info) => {
        if (asked !== name) return journal.step(asked, fn, info);
        const own = new AbortController();
        if (when === "before") own.abort(moved);
        else ticks(2).then(() => own.abort(moved));
        return journal.step(asked, () => fn({ signal: own.signal }), info);
      };
      const played = await play(step, options);
      expect(journal.entries.map((entry) => entry.name)).not.toContain(name);
      expect([played.outcome, resultsOf(played)]).toEqual(["error", []]);
      expect(played.end.error?.message).toBe(`Step "${name}" was not recorded: moved to another worker`);
    }
  });
});

// SPEC 16.2, 4.10
describe("a sink that fails", () => {
  it.each<[string, string, (events: AgentEvent) => boolean]>([
    ["while the model answers", "run/model:1", ({ type }) => type === "message_update"],
    ["while a tool runs", "run/tool:1:0:a", ({ type }) => type === "tool_execution_start"],
  ])("ends the run as ever and leaves no trace in the journal: %s", async (_, name, fails) => {
    const journal = new MemoryJournal();
    const settled: Promise<unknown>[] = [];
    const step: Step = (...given) => {
      const recording = journal.step(...given);
      settled.push(recording.catch(() => {}));
      return recording;
    };
    const emit = (event: AgentEvent): void | Promise<void> => {
      if (fails(event)) return ticks(2).then(() => Promise.reject(new Error("socket closed")));
    };
    const host = { streamFn: script([[{ text: "a long answer" }, call("a")], "Done."], { chunkSize: 3 }) };
    const deaf = makeTool("a", () => new Promise(() => {}));
    await expect(play(step, { ...host, tools: [deaf], emit, config: { abortGraceMs: 5 } })).rejects.toMatchObject({ code: "sink_failed" });
    await Promise.all(settled);
    expect(journal.entries.map((entry) => entry.name)).not.toContain(name);
    const again = await play(new MemoryJournal(journal.entries).step, { ...host, tools: [works("a")] });
    expect(again.outcome).toBe("completed");
  });
});

// SPEC 16.1
it("an engine may call a step's function with nothing, as they do", async () => {
  const step: Step = (_name, fn) => fn();
  const played = await play(step, { streamFn: script([[call("a")], "Done."]), tools });
  expect([played.outcome, resultsOf(played).length]).toEqual(["completed", 1]);
  const passing = ((_name, fn) => fn(null as never)) as Step;
  expect((await play(passing, { streamFn: script(["Done."]) })).outcome).toBe("completed");
});

// SPEC 16.1, 4.3
describe("durable, misused", () => {
  const good: DurableOptions = { step: (_name, fn) => fn({}), streamFn: script([]), prefix: "p" };

  it.each<[string, unknown, string, string]>([
    ["nothing", undefined, "invalid_argument", "durable: step must be a function (name, fn, info); got undefined."],
    ["no step", { ...good, step: undefined }, "invalid_argument", "durable: step must be a function"],
    ["no streamFn", { ...good, streamFn: {} }, "invalid_argument", "durable: streamFn must be a function; got {}."],
    [
      "no prefix",
      { ...good, prefix: undefined },
      "invalid_argument",
      "durable: prefix must be a non-empty string, unique for each run; got",
    ],
    ["an empty prefix", { ...good, prefix: "" }, "invalid_argument", "durable: prefix must be"],
    ["a start that is no time", { ...good, startedAt: Number.NaN }, "invalid_argument", "durable: startedAt must be"],
    ["a limit that is none", { ...good, toolTimeoutMs: "5" }, "invalid_argument", "durable: toolTimeoutMs must be a number"],
    ["tools that are none", { ...good, tools: 5 }, "invalid_argument", "durable: tools must be an iterable"],
    ["a tool that is none", { ...good, tools: [null] }, "invalid_tool", "A tool needs"],
    ["a tool that does nothing", { ...good, tools: [{ name: "a" }] }, "invalid_tool", 'Tool "a" needs an execute function'],
  ])("says so: %s", (_, options, code, text) => {
    let thrown: unknown;
    try {
      durable(options as DurableOptions);
    } catch (error) {
      thrown = error;
    }
    expect(TurnLoopError.is(thrown)).toBe(true);
    expect(thrown).toMatchObject({ code, message: expect.stringContaining(text) });
  });

  it("ends a second run on the same steps, whose records would be taken for its own", async () => {
    const run = durable({ ...good, streamFn: script([[call("a")], "Done.", [call("a")]]), tools: [works("a")] });
    const config = { model, now: run.now };
    const messages: AgentMessage[] = await runAgentLoop(
      [userMessage("go")],
      { systemPrompt: "", messages: [], tools: run.tools },
      config,
      () => {},
      undefined,
      run.streamFn,
    );
    const second = recordEvents();
    const context = { systemPrompt: "", messages: [...messages, userMessage("again")], tools: run.tools };
    await runAgentLoopContinue(context, config, second, undefined, run.streamFn);
    expect(second.events.at(-1)).toMatchObject({
      outcome: "error",
      error: { message: expect.stringContaining('"p/tool:1:0:a" was not recorded: there was one of that name already.') },
    });
  });
});
