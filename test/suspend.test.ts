import { Agent, type AgentEvent, type AgentLoopConfig, type BeforeToolCallResult, TurnLoopError, userMessage } from "turnloop";
import { type Block, scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { deepFreeze } from "./hand-written.js";
import { deferred, makeTool, model, outline, type RunOptions, resultsOf, run, textOf } from "./helpers.js";

const call = (id: string, args: unknown = {}, toolCall = "t"): Block => ({ toolCall, id, args });
const number = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

/** Suspends the calls of these ids. */
const suspend = (...ids: string[]): Partial<AgentLoopConfig> => ({
  beforeToolCall: ({ toolCall }) => (ids.includes(toolCall.id) ? { suspend: true, reason: `ask about ${toolCall.id}` } : undefined),
});

/** One batch of calls, of which `suspended` wait; every tool call answers with its id. */
function batch(calls: string[], suspended: string[], options: RunOptions = {}) {
  const tools = [makeTool("t", (id) => `did ${id}`)];
  const config = { ...suspend(...suspended), ...options.config };
  return run([calls.map((id) => call(id)), "never asked"], { tools, ...options, config });
}

// SPEC 15.2, 5.8
describe("what suspends", () => {
  it.each<[string, unknown, string]>([
    ["suspend: true", { suspend: true }, "suspended"],
    ["suspend: 1", { suspend: 1 }, "ran"],
    ['suspend: "true"', { suspend: "true" }, "ran"],
    ["suspend: {}", { suspend: {} }, "ran"],
    ["suspend: false", { suspend: false }, "ran"],
    ["block and suspend", { block: true, suspend: true, reason: "no" }, "no"],
    ["block: 1 and suspend", { block: 1, suspend: true }, "suspended"],
    ["suspend with arguments that do not fit", { suspend: true, args: { n: "x" } }, "n: expected number"],
    ["suspend with null for arguments", { suspend: true, args: null }, "expected object"],
  ])("%s", async (_name, answer, expected) => {
    const record = await run([[call("a", { n: 1 })], "done"], {
      tools: [makeTool("t", () => "ran", { parameters: number })],
      config: { beforeToolCall: () => answer as BeforeToolCallResult },
    });
    if (expected === "suspended") {
      expect([record.outcome, resultsOf(record)]).toEqual(["suspended", []]);
      return;
    }
    expect(record.outcome).toBe("completed");
    expect(record.end).not.toHaveProperty("pending");
    expect(textOf(resultsOf(record)[0])).toContain(expected);
  });

  it("calls that cannot be executed are answered and nobody is asked about them", async () => {
    const beforeToolCall = vi.fn(() => ({ suspend: true }));
    const record = await run([[call("a", {}, "nowhere"), call("b", { n: "x" }), { toolCall: "t", id: "c", rawArgs: "{" }], "done"], {
      tools: [makeTool("t", () => "ran", { parameters: number })],
      config: { beforeToolCall },
    });
    expect([record.outcome, resultsOf(record).length, beforeToolCall.mock.calls.length]).toEqual(["completed", 3, 0]);
    const cut = await run([{ content: [call("a", { n: 1 })], stopReason: "length" }, "done"], {
      tools: [makeTool("t", () => "ran", { parameters: number })],
      config: { beforeToolCall },
    });
    expect([cut.outcome, beforeToolCall.mock.calls.length]).toEqual(["completed", 0]);
  });

  it.each<[string, (asked: { args: any }) => BeforeToolCallResult, unknown]>([
    ["the model's, validated", () => ({ suspend: true }), { n: 5 }],
    ["those returned, validated", () => ({ suspend: true, args: { n: "7" } }), { n: 7 }],
    ["those edited in place, validated", ({ args }) => Object.assign(args, { n: "8" }) && { suspend: true }, { n: 8 }],
  ])("pending shows the arguments: %s", async (_name, beforeToolCall, args) => {
    const record = await run([[call("a", { n: "5" })]], {
      tools: [makeTool("t", () => "ran", { parameters: number })],
      config: { beforeToolCall },
    });
    const toolCall = { type: "toolCall", id: "a", name: "t", arguments: { n: "5" } };
    expect(record.end.pending).toEqual([{ toolCall, args }]);
    expect(record.messages[1]).toMatchObject({ content: [toolCall] });
  });

  it("the reason is for whoever decides, if it is a text", async () => {
    for (const [reason, shown] of [
      ["costs money", "costs money"],
      ["", ""],
      [5, undefined],
      [{}, undefined],
    ] as const) {
      const record = await run([[call("a")]], {
        tools: [makeTool("t", () => "")],
        config: { beforeToolCall: () => ({ suspend: true, reason: reason as string }) },
      });
      expect(record.end.pending?.[0]?.reason).toBe(shown);
    }
  });

  it("an async schema has validated what pending shows", async () => {
    const validate = async (value: any) => (value.n > 0 ? { value: { n: value.n * 2 } } : { issues: [{ message: "must be positive" }] });
    const tool = makeTool("t", () => "ran", { parameters: { "~standard": { version: 1, vendor: "test", validate } }, jsonSchema: number });
    const beforeToolCall = ({ args }: { args: { n: number } }) => ({ suspend: true, args: { n: args.n - 4 } });
    const record = await run([[call("a", { n: 3 }), call("b", { n: 1 })], "x"], { tools: [tool], config: { beforeToolCall } });
    expect(record.end.pending?.map(({ args }) => args)).toEqual([{ n: 4 }]);
    expect(resultsOf(record).map(textOf)).toEqual([expect.stringContaining("must be positive")]);
  });
});

// SPEC 15.2, 4.5, 4.6
describe("the rest of the batch", () => {
  const everySplit = [
    [["a"], ["b", "c"]],
    [["b"], ["a", "c"]],
    [["c"], ["a", "b"]],
    [["a", "c"], ["b"]],
    [["b", "c"], ["a"]],
    [["a", "b", "c"], []],
  ] as [string[], string[]][];

  it.each(everySplit)("parallel: %j wait; the others are recorded in source order", async (suspended, others) => {
    const record = await batch(["a", "b", "c"], suspended);
    expect(resultsOf(record).map(textOf)).toEqual(others.map((id) => `did ${id}`));
    const turnEnd = record.events.find((event) => event.type === "turn_end");
    expect(turnEnd).toEqual({ type: "turn_end", message: record.messages[1], toolResults: resultsOf(record) });
    expect(record.end).toEqual({
      type: "agent_end",
      messages: record.messages,
      outcome: "suspended",
      pending: suspended.map((id) => ({
        toolCall: { type: "toolCall", id, name: "t", arguments: {} },
        args: {},
        reason: `ask about ${id}`,
      })),
    });
    expect(record.requests.length).toBe(1);
  });

  it("parallel: the whole sequence", async () => {
    const gate = deferred();
    const tools = [makeTool("t", (id) => (id === "a" ? gate.promise.then(() => "late") : "at once"))];
    const { events } = await run([[call("a"), call("b"), call("c")]], {
      tools,
      config: suspend("b"),
      onEvent: (event) => (event.type === "tool_execution_end" && event.toolCallId === "c" ? gate.resolve() : undefined),
    });
    expect(outline(events).slice(6)).toEqual([
      "tool_execution_start a",
      "tool_execution_start b",
      "tool_execution_start c",
      "tool_execution_end c",
      "tool_execution_end a",
      ...["message_start toolResult", "message_end toolResult", "message_start toolResult", "message_end toolResult"],
      "turn_end",
      "agent_end suspended",
    ]);
  });

  it.each([
    ["first", "a", ["s a", "s b", "e b", "s c", "e c", "( b", ") b", "( c", ") c"]],
    ["middle", "b", ["s a", "e a", "( a", ") a", "s b", "s c", "e c", "( c", ") c"]],
    ["last", "c", ["s a", "e a", "( a", ") a", "s b", "e b", "( b", ") b", "s c"]],
  ])("sequential, the %s one waits: the calls after it run, their results come when the batch ends", async (_name, id, expected) => {
    const { events, outcome } = await batch(["a", "b", "c"], [id], { config: { toolExecution: "sequential", ...suspend(id) } });
    const letters = { tool_execution_start: "s", tool_execution_end: "e", message_start: "(", message_end: ")" } as Record<string, string>;
    const shown = events.slice(outline(events, { updates: true }).indexOf("tool_execution_start a")).flatMap((event) => {
      const about =
        "toolCallId" in event ? event.toolCallId : "message" in event && "toolCallId" in event.message && event.message.toolCallId;
      return about ? [`${letters[event.type]} ${about}`] : [];
    });
    expect([shown, outcome]).toEqual([expected, "suspended"]);
  });

  it("a sibling that fails, hangs until its limit, or is blocked is answered as ever", async () => {
    const record = await run([[call("a"), call("b", {}, "slow"), call("c", {}, "bad"), call("d", {}, "no")]], {
      tools: [
        makeTool("t", () => "ran"),
        makeTool("slow", () => new Promise(() => {}), { timeoutMs: 1 }),
        makeTool("bad", () => Promise.reject(new Error("broke"))),
        makeTool("no", () => "ran"),
      ],
      config: {
        beforeToolCall: ({ toolCall }) => (toolCall.id === "a" ? { suspend: true } : toolCall.id === "d" ? { block: true } : undefined),
        toolTimeoutMs: 1,
      },
    });
    expect(resultsOf(record).map(({ toolCallId, isError }) => [toolCallId, isError])).toEqual([
      ["b", true],
      ["c", true],
      ["d", true],
    ]);
    expect(record.end.pending?.map(({ toolCall }) => toolCall.id)).toEqual(["a"]);
  });

  it("afterToolCall runs for the siblings only; no hook and no poll comes after the turn; terminate does not matter", async () => {
    const asked: string[] = [];
    const poll = (name: string) => () => {
      asked.push(name);
      return [userMessage("not now")];
    };
    const record = await run([[call("a"), call("b")], "never"], {
      tools: [makeTool("t", () => ({ content: [], terminate: true }))],
      config: {
        ...suspend("a"),
        afterToolCall: ({ toolCall }) => void asked.push(`after ${toolCall.id}`),
        prepareNextTurn: () => void asked.push("prepareNextTurn"),
        shouldStopAfterTurn: () => asked.push("shouldStopAfterTurn") > 0,
        getSteeringMessages: poll("steering"),
        getFollowUpMessages: poll("followUp"),
      },
    });
    expect([asked, record.outcome]).toEqual([["after b"], "suspended"]);
  });

  it("a later turn may be the one that is suspended", async () => {
    const record = await run([[call("a")], [call("a"), call("b")]], {
      tools: [makeTool("t", (id) => `did ${id}`)],
      config: suspend("b"),
    });
    expect(outline(record.events).filter((line) => /turn|agent|execution/.test(line))).toEqual([
      ...["agent_start", "turn_start", "tool_execution_start a", "tool_execution_end a", "turn_end"],
      ...["turn_start", "tool_execution_start a", "tool_execution_start b", "tool_execution_end a", "turn_end", "agent_end suspended"],
    ]);
  });

  it("the transcript is plain JSON, deep-frozen inputs are not written to, and the events share nothing with it", async () => {
    const prompts = deepFreeze([userMessage("go", { timestamp: 1 })]);
    const config = deepFreeze({ model, ...suspend("a") });
    const seen: AgentEvent[] = [];
    const record = await run([[call("a", { deep: { list: [1] } }), call("b")]], {
      prompts,
      config,
      tools: deepFreeze([makeTool("t", () => "ran")]),
      onEvent: (event) => {
        seen.push(structuredClone(event));
        if (event.type !== "agent_end") return;
        for (const { toolCall, args } of event.pending ?? [])
          for (const given of [toolCall.arguments, args]) given.deep.list.push("written");
      },
    });
    expect(JSON.parse(JSON.stringify(record.messages))).toEqual(record.messages);
    expect(JSON.stringify(record.messages)).not.toContain("written");
    expect(JSON.parse(JSON.stringify(seen))).toEqual(seen);
  });
});

// SPEC 15.2, 15.5, 7
describe("an abort before the batch ends", () => {
  it.each(["parallel", "sequential"] as const)("%s: all calls are answered, nothing waits", async (toolExecution) => {
    const controller = new AbortController();
    const record = await run([[call("a"), call("b"), call("c"), call("d")]], {
      tools: [makeTool("t", (id) => `${id === "b" && controller.abort("enough")}`)],
      config: { toolExecution, ...suspend("a", "c") },
      signal: controller.signal,
    });
    expect([record.outcome, record.end.pending]).toEqual(["aborted", undefined]);
    expect(resultsOf(record).map(({ toolCallId, isError }) => [toolCallId, isError])).toEqual(["a", "b", "c", "d"].map((id) => [id, true]));
    for (const at of [0, 2]) expect(textOf(resultsOf(record)[at])).toMatch(/^Not executed: the run was aborted \(enough\)/);
  });

  it("an abort while the hook thinks, and a hook that suspends at the abort", async () => {
    for (const answer of [{ suspend: true }, new Promise<never>(() => {})]) {
      const controller = new AbortController();
      const beforeToolCall = () => {
        controller.abort();
        return answer;
      };
      const record = await run([[call("a"), call("b")]], {
        tools: [makeTool("t", () => "ran")],
        config: { beforeToolCall },
        signal: controller.signal,
      });
      expect([record.outcome, resultsOf(record).length]).toEqual(["aborted", 2]);
    }
  });

  it("once the batch has ended an abort changes nothing: the calls wait, and the transcript says so", async () => {
    const controller = new AbortController();
    const record = await run([[call("a"), call("b")]], {
      tools: [makeTool("t", () => "ran")],
      config: suspend("a"),
      signal: controller.signal,
      onEvent: (event) => (event.type === "turn_end" ? controller.abort() : undefined),
    });
    expect([record.outcome, resultsOf(record).length]).toEqual(["suspended", 1]);
  });
});

// SPEC 4.10, 15.2, 15.5
describe("a sink that fails", () => {
  it.each<[string, AgentEvent["type"], number, number]>([
    ["before the batch ends, every call is answered", "tool_execution_start", 2, 0],
    ["at a result, the other calls keep waiting", "message_end", 1, 1],
    ["at turn_end too", "turn_end", 1, 1],
  ])("%s", async (_name, type, answered, waiting) => {
    const failure = new Error("disk full");
    const events: AgentEvent[] = [];
    let results = 0;
    const onEvent = (event: AgentEvent): void => {
      events.push(event);
      if (event.type === "message_end" && event.message.role !== "toolResult") return;
      if (event.type === type && results++ === 0) throw failure;
    };
    const error = await batch(["a", "b"], ["a"], { onEvent }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(TurnLoopError.is(error) && [error.code, error.cause, resultsOf({ messages: error.messages ?? [] }).length]).toEqual([
      "sink_failed",
      failure,
      answered,
    ]);
    expect(events.at(-1)).toMatchObject({ type: "agent_end", outcome: "error" });
    expect(events.at(-1)).not.toHaveProperty("pending");
    const agent = new Agent({ model, streamFn: scriptedModel([]), messages: (error as TurnLoopError).messages ?? [] });
    expect(agent.pendingApprovals.length).toBe(waiting);
  });
});
