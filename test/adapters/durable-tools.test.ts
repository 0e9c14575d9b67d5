import { type AgentTool, runAgentLoop, userMessage } from "turnloop";
import { durable, type Step, type StepInfo } from "turnloop/durable";
import { describe, expect, it } from "vitest";
import { aborted, makeTool, model, resultsOf, textOf } from "../helpers.js";
import { call, MemoryJournal, play, script, tick, ticks } from "./durable-helpers.js";

// SPEC 16.2, 16.3, 16.4, 5.13
describe("a tool step", () => {
  const answers = [[call("work")], "Done."];
  const resultOf = async (tool: Partial<AgentTool>, options: object = {}): Promise<ReturnType<typeof resultsOf>[number]> => {
    const journal = new MemoryJournal();
    const host = { streamFn: script(answers), tools: [makeTool("work", () => "x", tool)], ...options };
    const played = await play(journal.step, host);
    const replay = new MemoryJournal(journal.entries);
    expect((await play(replay.step, host)).messages).toEqual(played.messages);
    expect(replay.ran).toEqual([]);
    return resultsOf(played)[0] as ReturnType<typeof resultsOf>[number];
  };

  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  class Row {
    id = 1;
  }
  it.each<[string, unknown, boolean]>([
    ["plain data", { rows: [{ id: 1, none: null }], text: "\ud800", deep: { empty: {} } }, true],
    ["a number", 0, true],
    ["null", null, true],
    ["a date", { at: new Date(0) }, false],
    ["an undefined field", { a: undefined }, false],
    ["NaN", { a: Number.NaN }, false],
    ["minus zero", [-0], false],
    ["a BigInt", { a: 1n }, false],
    ["a circle", circular, false],
    ["an instance", new Row(), false],
    ["a map", new Map([[1, 2]]), false],
    ["a function", { a: () => 1 }, false],
    ["a hole", Object.assign([], { 1: 1 }), false],
    ["a symbol's key", { [Symbol("s")]: 1 }, false],
    ["a toJSON of its own", { toJSON: () => ({ a: 1 }) }, false],
  ])("keeps details that survive JSON, and no others: %s", async (_, details, isKept) => {
    const { isError, content, ...result } = await resultOf({ execute: () => ({ content: [{ type: "text", text: "ok" }], details }) });
    expect([isError, content]).toEqual([false, [{ type: "text", text: "ok" }]]);
    expect("details" in result).toBe(isKept);
    if (isKept) expect(result.details).toEqual(details);
  });

  it.each<[string, Partial<AgentTool>, string]>([
    ["a throw", { execute: () => Promise.reject(new Error("broken pipe")) }, "broken pipe"],
    ["an AbortError of its own", { execute: () => Promise.reject(Object.assign(new Error("fetch"), { name: "AbortError" })) }, "fetch"],
    ["nothing", { execute: () => undefined as never }, 'Tool "work" returned undefined; expected'],
    [
      "what JSON cannot hold",
      { execute: () => ({ content: [{ type: "text", text: "ok", huge: 1n }] }) as never },
      'The result of tool "work", which was executed, cannot be recorded as JSON: ',
    ],
    [
      "its own time limit",
      { timeoutMs: 5, execute: (_i, _p, signal) => aborted(signal).then(() => "late") },
      "within its limit of 5 ms; it may",
    ],
  ])("records a failure as the result it is: %s", async (_, tool, text) => {
    const result = await resultOf(tool);
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain(text);
  });

  it("is limited by toolTimeoutMs inside the step, not by the run's own, and its own limit wins", async () => {
    let reason: unknown;
    const hangs: AgentTool["execute"] = async (_i, _p, signal) => {
      reason = await aborted(signal);
      return new Promise(() => {});
    };
    expect(textOf(await resultOf({ execute: hangs }, { toolTimeoutMs: 5 }))).toContain("within its limit of 5 ms");
    expect(String(reason)).toContain("did not finish within its limit of 5 ms");
    const slow: AgentTool["execute"] = () => ticks(3).then(() => "in time");
    const limits = { toolTimeoutMs: 1e9, config: { toolTimeoutMs: 0.001 } };
    expect(textOf(await resultOf({ execute: slow }, limits))).toBe("in time");
    expect(textOf(await resultOf({ execute: hangs, timeoutMs: 4 }, { toolTimeoutMs: 1e9 }))).toContain("limit of 4 ms");
  });

  it("gives the tool its place and the step's name as idempotency key, and is the tool in all else", async () => {
    class Counter implements AgentTool {
      readonly name = "work";
      readonly description = "counts";
      readonly parameters = { type: "object", properties: { n: { type: "number" } } };
      readonly kind = "read";
      readonly #seen: unknown[] = [];
      prepareArguments(args: unknown): unknown {
        this.#seen.push(args);
        return { n: "7" };
      }
      execute: AgentTool["execute"] = (id, params, _signal, onUpdate, position) => {
        onUpdate({ content: [{ type: "text", text: "half" }] });
        return JSON.stringify([this.#seen.length, id, params, position]);
      };
    }
    const { events, messages } = await play(new MemoryJournal().step, { streamFn: script(answers), tools: [new Counter()] });
    expect(textOf(resultsOf({ messages })[0])).toBe('[1,"scripted_1_0",{"n":7},{"turn":1,"index":0,"idempotencyKey":"run/tool:1:0:work"}]');
    expect(events.filter(({ type }) => type === "tool_execution_update")).toHaveLength(1);
    expect(durable({ step: new MemoryJournal().step, streamFn: script([]), prefix: "p", tools: [new Counter()] }).tools[0]).toMatchObject({
      name: "work",
      description: "counts",
      kind: "read",
    });
  });

  it("is tried again by the engine with the same key", async () => {
    const keys: unknown[] = [];
    const tool = makeTool("work", (_i, _p, _s, _u, { idempotencyKey }) => String(keys.push(idempotencyKey)));
    const insistent: Step = async (_name, fn) => {
      await fn({});
      return fn({});
    };
    const { messages } = await play(insistent, { streamFn: script(answers), tools: [tool] });
    expect(keys).toEqual(["run/tool:1:0:work", "run/tool:1:0:work"]);
    expect(textOf(resultsOf({ messages })[0])).toBe("2");
  });

  it("is not executed for a run that is aborted by the time it runs", async () => {
    const caller = new AbortController();
    const late: Step = async (name, fn) => {
      if (name.includes("tool")) caller.abort("late");
      return fn({});
    };
    const tool = makeTool("work", () => expect.unreachable() as never);
    const played = await play(late, { streamFn: script(answers), tools: [tool], signal: caller.signal });
    expect(played.outcome).toBe("aborted");
    expect(textOf(resultsOf(played)[0])).toBe("Not executed: the run was aborted (late) before this call started.");
  });

  it("waits for its record after an abort, however long the engine takes to write it", async () => {
    const caller = new AbortController();
    const slow: Step = async (name, fn) => {
      const value = await fn({});
      if (name.includes("tool")) await new Promise((resolve) => setTimeout(resolve, 60));
      return value;
    };
    const tool = makeTool("work", () => {
      caller.abort("enough");
      return "half done";
    });
    const host = { streamFn: script(answers), tools: [tool], signal: caller.signal, config: { abortGraceMs: 5 } };
    const result = resultsOf(await play(slow, host))[0];
    expect([textOf(result), result?.isError]).toEqual(["half done", true]);
  });

  it("starts the calls of a batch in source order in one tick, up to the limit", async () => {
    const started: string[][] = [];
    let now: string[] | undefined;
    const step: Step = async (name, fn, _info: StepInfo) => {
      if (!now) {
        now = [];
        started.push(now);
        queueMicrotask(() => queueMicrotask(() => (now = undefined)));
      }
      now.push(name.replace("run/", ""));
      await tick();
      return fn({});
    };
    const streamFn = script([[call("work"), call("work"), call("work")], "Done."]);
    const tools = [makeTool("work", () => "x")];
    await play(step, { streamFn, tools });
    expect(started).toEqual([["model:1"], ["tool:1:0:work", "tool:1:1:work", "tool:1:2:work"], ["model:2"]]);
    started.length = 0;
    await play(step, { streamFn, tools, config: { maxParallelToolCalls: 2 } });
    expect(started.slice(1, -1)).toEqual([["tool:1:0:work", "tool:1:1:work"], ["tool:1:2:work"]]);
  });
});

// SPEC 16.1, 14.3
describe("runAgentLoop with durable parts", () => {
  it("leaves no listener on an engine's signal", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners++;
      add(...given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners--;
      remove(...given);
    };
    const run = durable({
      step: (_name, fn) => fn({ signal }),
      streamFn: script([[call("work"), call("work")], "Done."]),
      tools: [makeTool("work", () => "x")],
      prefix: "r",
    });
    const context = { systemPrompt: "", messages: [], tools: run.tools };
    await runAgentLoop([userMessage("go")], context, { model, now: run.now }, () => {}, undefined, run.streamFn);
    expect(listeners).toBe(0);
  });
});
