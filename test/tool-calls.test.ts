import { type AgentToolResult, AssistantMessageBuilder, userMessage } from "turnloop";
import { Type } from "turnloop/schema";
import { afterEach, describe, expect, it, vi } from "vitest";
import { aborted, deferred, makeTool, model, outline, resultsOf, run, textOf } from "./helpers.js";

afterEach(() => {
  vi.useRealTimers();
});

const echo = makeTool("echo", (_id, args) => `echo ${args.x ?? ""}`);
const strict = makeTool("strict", () => "ok", { parameters: Type.Object({ n: Type.Number() }) });

describe("tool calls", () => {
  it.each(["stop", "toolUse", "weird", "content_filter"])("under stop reason %s are executed: the calls decide", async (stopReason) => {
    // SPEC 5.1, 2.3 (F45, F46)
    const { requests, messages, events } = await run([{ content: [{ toolCall: "echo" }, { toolCall: "echo" }], stopReason }, "done"], {
      tools: [echo],
    });
    expect(requests).toHaveLength(2);
    expect(resultsOf({ messages }).map((result) => result.isError)).toEqual([false, false]);
    const known = stopReason === "stop" || stopReason === "toolUse";
    expect(messages[1]).toMatchObject(known ? { stopReason } : { stopReason: "toolUse", rawStopReason: stopReason });
    expect(events.filter((event) => event.type === "turn_end")[0]?.message.stopReason).toBe(known ? stopReason : "toolUse");
  });

  it("that are missing under toolUse just end the turn", async () => {
    // SPEC 5.1
    const { requests, outcome, messages } = await run([{ content: ["hm"], stopReason: "toolUse" }]);
    expect([requests.length, outcome]).toEqual([1, "completed"]);
    expect(messages[1]).toMatchObject({ stopReason: "toolUse" });
  });

  it("are all answered, on every path, with results in source order", async () => {
    // SPEC 5.2, 5.6
    const hook = vi.fn(({ toolCall }) => (toolCall.id === "blocked" ? { block: true, reason: "not today" } : undefined));
    const boom = makeTool("boom", () => {
      throw new Error("exploded");
    });
    const { events, messages } = await run(
      [
        [
          { toolCall: "nope", id: "unknown" },
          { toolCall: "strict", args: { n: "x" }, id: "invalid" },
          { toolCall: "echo", rawArgs: '{"x": ', id: "broken" },
          { toolCall: "echo", id: "blocked" },
          { toolCall: "boom", id: "thrown" },
          { toolCall: "", id: "nameless" },
          { toolCall: "echo", id: "fine", args: { x: 1 } },
        ],
        "done",
      ],
      { tools: [echo, strict, boom], config: { beforeToolCall: hook } },
    );
    const results = resultsOf({ messages });
    expect(results.map((result) => [result.toolCallId, result.isError])).toEqual([
      ["unknown", true],
      ["invalid", true],
      ["broken", true],
      ["blocked", true],
      ["thrown", true],
      ["nameless", true],
      ["fine", false],
    ]);
    const texts = results.map(textOf);
    expect(texts[0]).toBe('Tool "nope" not found. Available tools: echo, strict, boom.');
    expect(texts[1]).toContain('n: expected number, received "x"');
    expect(texts[2]).toContain("must be a JSON object");
    expect(texts[3]).toBe("not today");
    expect(texts[4]).toBe("exploded");
    expect(texts[5]).not.toContain("echo");
    expect(texts[6]).toBe("echo 1");
    // SPEC 5.8: not asked for unknown, invalid or broken calls
    expect(hook.mock.calls.map(([call]) => call.toolCall.id)).toEqual(["blocked", "thrown", "fine"]);
    expect(events.find((event) => event.type === "turn_end")?.toolResults).toEqual(results);
  });

  it("of an answer cut by the output limit are not executed, and the model may try again", async () => {
    // SPEC 5.3
    const execute = vi.fn(() => "ok");
    const hook = vi.fn();
    const cut = {
      content: [
        { toolCall: "t", id: "a" },
        { toolCall: "t", id: "b" },
      ],
      stopReason: "length",
    };
    const { messages, requests, outcome } = await run([cut, [{ toolCall: "t" }], "done"], {
      tools: [makeTool("t", execute)],
      config: { beforeToolCall: hook, afterToolCall: hook },
    });
    expect(execute).toHaveBeenCalledTimes(1);
    expect(hook).toHaveBeenCalledTimes(2);
    const results = resultsOf({ messages });
    expect(results.map((result) => result.isError)).toEqual([true, true, false]);
    expect(textOf(results[0])).toContain("output limit");
    expect([requests.length, outcome]).toEqual([3, "completed"]);
  });

  it("cut in several answers in a row end the run with an error", async () => {
    // SPEC 5.3: three such turns, so three model calls; a good one in between starts the count anew
    const cut = { content: [{ toolCall: "echo" }], stopReason: "length" };
    const poll = vi.fn(() => []);
    const ended = await run([cut, cut, cut, "never"], { tools: [echo], config: { getSteeringMessages: poll } });
    expect([ended.requests.length, ended.outcome]).toEqual([3, "error"]);
    expect(ended.end.error?.message).toContain("3 answers in a row");
    expect(poll).toHaveBeenCalledTimes(2);
    const interrupted = await run([cut, cut, [{ toolCall: "echo" }], cut, cut, "done"], { tools: [echo] });
    expect([interrupted.requests.length, interrupted.outcome]).toEqual([6, "completed"]);
    expect((await run([cut, "never"], { tools: [echo], config: { maxTruncatedTurns: 1 } })).requests).toHaveLength(1);
    expect((await run([{ content: ["cut"], stopReason: "length" }])).outcome).toBe("completed");
  });
});

describe("parallel execution", () => {
  it("starts all calls in source order, ends in completion order, keeps results in source order", async () => {
    // SPEC 5.9 (F58)
    const gates = { a: deferred(), b: deferred(), c: deferred() };
    const started: string[] = [];
    const tool = makeTool("t", async (id) => {
      started.push(id);
      if (started.length === 3) gates.c.resolve();
      await gates[id as "a"].promise;
      if (id === "c") gates.a.resolve();
      if (id === "a") gates.b.resolve();
      return id;
    });
    const { events, messages } = await run([["a", "b", "c"].map((id) => ({ toolCall: "t", id })), "done"], { tools: [tool] });
    expect(started).toEqual(["a", "b", "c"]);
    expect(outline(events).filter((line) => line.startsWith("tool_execution_end"))).toEqual([
      "tool_execution_end c",
      "tool_execution_end a",
      "tool_execution_end b",
    ]);
    expect(resultsOf({ messages }).map(textOf)).toEqual(["a", "b", "c"]);
  });

  it.each([1, 2, 3, 2.5])("runs at most %d calls at once", async (maxParallelToolCalls) => {
    // SPEC 5.9
    let running = 0;
    let most = 0;
    const order: string[] = [];
    const tool = makeTool("t", async (id) => {
      order.push(id);
      most = Math.max(most, ++running);
      await Promise.resolve();
      await Promise.resolve();
      running--;
      return id;
    });
    const ids = ["a", "b", "c", "d", "e", "f", "g"];
    const { messages } = await run([ids.map((id) => ({ toolCall: "t", id })), "done"], { tools: [tool], config: { maxParallelToolCalls } });
    expect(most).toBe(Math.floor(maxParallelToolCalls));
    expect(order).toEqual(ids);
    expect(resultsOf({ messages }).map(textOf)).toEqual(ids);
  });

  it("with a limit survives a thousand calls that settle at once", async () => {
    const tool = makeTool("t", (id) => id);
    const calls = Array.from({ length: 1000 }, (_, i) => ({ toolCall: "t", id: `c${i}` }));
    const { messages } = await run([calls, "done"], { tools: [tool], config: { maxParallelToolCalls: 1 } });
    expect(resultsOf({ messages })).toHaveLength(1000);
  });

  it("asks about each call in order before any of them runs", async () => {
    // SPEC 5.6, 5.9, 16.3: prepared one at a time, then started in one tick
    const log: string[] = [];
    const tool = makeTool("t", async (id) => {
      log.push(`run ${id}`);
      return "ok";
    });
    await run([["a", "b"].map((id) => ({ toolCall: "t", id })), "done"], {
      tools: [tool],
      config: {
        beforeToolCall: async ({ toolCall }) => {
          log.push(`ask ${toolCall.id}`);
          await Promise.resolve();
          log.push(`asked ${toolCall.id}`);
        },
      },
    });
    expect(log).toEqual(["ask a", "asked a", "ask b", "asked b", "run a", "run b"]);
  });

  it("is given up for the whole batch when one tool is sequential, or the run is", async () => {
    // SPEC 5.9 (F59): each call prepared, executed, and its result message sent before the next
    const tool = makeTool("t", async (id) => id);
    const single = makeTool("single", async (id) => id, { executionMode: "sequential" });
    const calls = [
      { toolCall: "t", id: "a" },
      { toolCall: "single", id: "b" },
    ];
    const expected = ["a", "b"].flatMap((id) => [
      `tool_execution_start ${id}`,
      `tool_execution_end ${id}`,
      "message_start toolResult",
      "message_end toolResult",
    ]);
    const byTool = await run([calls, "done"], { tools: [tool, single] });
    const byRun = await run([calls, "done"], {
      tools: [tool, { ...single, executionMode: "parallel" }],
      config: { toolExecution: "sequential" },
    });
    for (const { events } of [byTool, byRun]) expect(outline(events).slice(6, 14)).toEqual(expected);
  });

  it("terminates the run only when every result says so, and steering still gets its turn", async () => {
    // SPEC 5.9
    const done = makeTool("done", () => ({ content: [], terminate: true }));
    const both = await run([[{ toolCall: "done" }, { toolCall: "done" }], "never"], { tools: [done] });
    expect([both.outcome, both.requests.length]).toEqual(["terminated", 1]);
    const one = await run([[{ toolCall: "done" }, { toolCall: "echo" }], "yes"], { tools: [done, echo] });
    expect([one.outcome, one.requests.length]).toEqual(["completed", 2]);
    const queue = [[userMessage("wait")]];
    const steered = await run([[{ toolCall: "done" }], "ok"], {
      tools: [done],
      config: { getSteeringMessages: () => queue.shift() ?? [] },
    });
    expect([steered.outcome, steered.requests.length]).toEqual(["completed", 2]);
    const blocked = await run([[{ toolCall: "echo" }], "never"], {
      tools: [echo],
      config: { beforeToolCall: () => ({ block: true, terminate: true }) },
    });
    expect(blocked.outcome).toBe("terminated");
  });
});

describe("updates", () => {
  it("come in order while the call runs, and do nothing afterwards", async () => {
    // SPEC 5.10 (F28, F30)
    let late: ((partial: AgentToolResult) => void) | undefined;
    const tool = makeTool("t", async (id, _args, _signal, onUpdate) => {
      late = onUpdate;
      onUpdate({ content: [{ type: "text", text: `${id}1` }] });
      await Promise.resolve();
      onUpdate({ content: [{ type: "text", text: `${id}2` }] });
      return "final";
    });
    const { events, messages } = await run(
      [
        [
          { toolCall: "t", id: "a", args: { k: 1 } },
          { toolCall: "t", id: "b" },
        ],
        "done",
      ],
      {
        tools: [tool],
        onEvent: (event) => {
          if (event.type === "turn_end") late?.({ content: [] });
        },
      },
    );
    const updates = events.filter((event) => event.type === "tool_execution_update");
    expect(updates.map((event) => [event.toolCallId, event.args, event.partialResult.content[0].text])).toEqual([
      ["a", { k: 1 }, "a1"],
      ["b", {}, "b1"],
      ["a", { k: 1 }, "a2"],
      ["b", {}, "b2"],
    ]);
    expect(resultsOf({ messages }).map(textOf)).toEqual(["final", "final"]);
  });
});

describe("results", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const thrower = (value: unknown) => () => {
    throw value;
  };
  it.each<[string, () => any, string, boolean]>([
    ["a string", () => "plain", "plain", false],
    ["a promise of a string", async () => "plain", "plain", false],
    ["content as a string", () => ({ content: "text" }), "text", false],
    ["no content", () => ({}), "", false],
    ["content undefined", () => ({ content: undefined }), "", false],
    ["string blocks", () => ({ content: ["a", "b"] }), "ab", false],
    [
      "unknown blocks",
      () => ({ content: [{ type: "resource" }, null] }),
      '[content that is neither text nor image: {"type":"resource"}][content that is neither text nor image: null]',
      false,
    ],
    ["isError", () => ({ content: "bad", isError: true }), "bad", true],
    ["undefined", () => undefined, 'Tool "t" returned undefined', true],
    ["null", () => null, 'Tool "t" returned null', true],
    ["a number", () => 5, 'Tool "t" returned 5', true],
    ["an array", () => ["x"], 'Tool "t" returned ["x"]', true],
    ["content of a number", () => ({ content: 5 }), 'Tool "t" returned', true],
    [
      "a throwing getter",
      () => ({
        get content() {
          throw new Error("getter");
        },
      }),
      "getter",
      true,
    ],
    ["throw Error", thrower(new Error("broken")), "broken", true],
    ["throw string", thrower("just text"), "just text", true],
    ["throw undefined", thrower(undefined), "unknown error (undefined was thrown)", true],
    ["throw null", thrower(null), "unknown error (null was thrown)", true],
    ["throw Symbol", thrower(Symbol("odd")), "Symbol(odd)", true],
    ["throw an object without prototype", thrower(Object.assign(Object.create(null), { code: 7 })), '{"code":7}', true],
    ["throw an empty Error", thrower(new Error("")), "Error", true],
    [
      "throw an Error with a throwing message",
      thrower(
        Object.defineProperty(new Error(), "message", {
          get() {
            throw 1;
          },
        }),
      ),
      "unknown error",
      true,
    ],
    ["throw an Error with a circular cause", thrower(new Error("outer", { cause: circular })), "outer", true],
    ["reject", () => Promise.reject(new Error("later")), "later", true],
    [
      "a thenable that throws",
      () => ({
        get then() {
          throw new Error("then");
        },
      }),
      "then",
      true,
    ],
  ])("%s: one well-formed result", async (_what, execute, text, isError) => {
    // SPEC 5.11 (F24, F25)
    const { messages, outcome } = await run([[{ toolCall: "t", id: "own" }], "done"], { tools: [makeTool("t", execute)] });
    const [result] = resultsOf({ messages });
    expect(result?.toolCallId).toBe("own");
    expect(result?.isError).toBe(isError);
    expect(textOf(result)).toContain(text);
    expect(Array.isArray(result?.content)).toBe(true);
    expect(outcome).toBe("completed");
  });

  it("keep images, usage and details; details are never copied or serialised", async () => {
    // SPEC 2.1, 5.11 (F26, F93)
    const details = { circular, big: 10n };
    const content = [
      { type: "text" as const, text: "a" },
      { type: "image" as const, data: "AA==", mimeType: "image/png" },
      { type: "text" as const, text: "b" },
    ];
    const { messages, requests, events } = await run([[{ toolCall: "t" }], "done"], {
      tools: [makeTool("t", () => ({ content, details }))],
    });
    const [result] = resultsOf({ messages });
    expect(result?.details).toBe(details);
    expect(result?.content).toEqual(content);
    expect(requests[1]?.messages[2]).toMatchObject({ content });
    const end = events.find((event) => event.type === "tool_execution_end");
    expect(end?.result.details).toBe(details);
  });
});

describe("time limits", () => {
  it("abort the call's own signal and answer with the limit; siblings and the run go on", async () => {
    // SPEC 5.13 (F21)
    vi.useFakeTimers();
    const signals: Record<string, AbortSignal> = {};
    const after = vi.fn();
    const tool = makeTool(
      "t",
      (id, _args, signal) => {
        signals[id] = signal;
        return new Promise((resolve) => setTimeout(() => resolve(`done ${id}`), id === "slow" ? 80 : 29));
      },
      { timeoutMs: 30 },
    );
    const promise = run(
      [
        [
          { toolCall: "t", id: "slow" },
          { toolCall: "t", id: "fast" },
        ],
        "ok",
      ],
      { tools: [tool], config: { afterToolCall: after } },
    );
    await vi.advanceTimersByTimeAsync(100);
    const { messages, outcome } = await promise;
    const [slow, fast] = resultsOf({ messages });
    expect([slow?.isError, fast?.isError, outcome]).toEqual([true, false, "completed"]);
    expect(textOf(slow)).toContain("30 ms");
    expect([signals["slow"]?.aborted, signals["fast"]?.aborted]).toEqual([true, false]);
    expect(after).toHaveBeenCalledTimes(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])("of %d are none", async (timeoutMs) => {
    vi.useFakeTimers();
    const tool = makeTool("t", () => new Promise((resolve) => setTimeout(() => resolve("late"), 1e6)), { timeoutMs });
    const promise = run([[{ toolCall: "t" }], "ok"], { tools: [tool], config: { toolTimeoutMs: 5 } });
    await vi.advanceTimersByTimeAsync(1e6);
    expect(resultsOf(await promise).map(textOf)).toEqual(["late"]);
  });

  it("of the run apply to tools without their own, and pass the run's abort on", async () => {
    vi.useFakeTimers();
    const controller = new AbortController();
    const tool = makeTool("t", async (_id, _args, signal) => `heard ${String(await aborted(signal))}`);
    const first = run([[{ toolCall: "t" }], "ok"], { tools: [tool], config: { toolTimeoutMs: 40 } });
    await vi.advanceTimersByTimeAsync(40);
    expect(textOf(resultsOf(await first)[0])).toContain("40 ms");
    const second = run([[{ toolCall: "t" }], "ok"], { tools: [tool], signal: controller.signal, config: { toolTimeoutMs: 40 } });
    await vi.advanceTimersByTimeAsync(10);
    controller.abort("why");
    await vi.advanceTimersByTimeAsync(0);
    expect(textOf(resultsOf(await second)[0])).toBe("heard why");
  });
});

it("a call gets its turn and its place in the batch", async () => {
  const positions: unknown[] = [];
  const tool = makeTool("t", (_id, _args, _signal, _update, call) => {
    positions.push(call);
    return "ok";
  });
  await run([[{ toolCall: "t" }, { toolCall: "t" }], [{ toolCall: "t" }], "done"], { tools: [tool] });
  expect(positions).toEqual([
    { turn: 1, index: 0 },
    { turn: 1, index: 1 },
    { turn: 2, index: 0 },
  ]);
});

it("tools that appear, change or go during a run count from the next turn on", async () => {
  // SPEC 8.6: context.tools is read anew for each turn
  const tools = [
    makeTool("first", () => {
      tools.push(makeTool("second", () => "second ran"));
      return "ok";
    }),
  ];
  const { requests, messages } = await run([[{ toolCall: "first" }, { toolCall: "second" }], [{ toolCall: "second" }], "done"], { tools });
  expect(requests.map((request) => request.tools?.map((tool) => tool.name))).toEqual([["first"], ["first", "second"], ["first", "second"]]);
  expect(resultsOf({ messages }).map((result) => result.isError)).toEqual([false, true, false]);
  const doubled = await run([[{ toolCall: "double" }], "never"], { tools: duplicated() });
  expect([doubled.outcome, doubled.end.error?.message]).toEqual(["error", expect.stringContaining('Two tools are named "double"')]);
});

function duplicated() {
  const tools = [
    makeTool("double", () => {
      tools.push(makeTool("double", () => ""));
      return "ok";
    }),
  ];
  return tools;
}

it("a StreamFn that streams calls out of order gets them answered in the final order", async () => {
  // SPEC 3.3, 5.2
  async function* streamFn(_model: unknown, context: { messages: unknown[] }) {
    const builder = new AssistantMessageBuilder(model);
    if (context.messages.length > 1) return yield* builder.done();
    yield* builder.toolCallStart("a", "echo");
    yield* builder.toolCallDelta('{"x":1}');
    yield* builder.toolCallStart("b", "echo");
    yield* builder.done();
  }
  expect(resultsOf(await run(streamFn, { tools: [echo] })).map((result) => result.toolCallId)).toEqual(["a", "b"]);
});
