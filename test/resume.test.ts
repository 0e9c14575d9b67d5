import { type AgentLoopConfig, type AgentTool, userMessage } from "turnloop";
import { describe, expect, it, vi } from "vitest";
import { answer, deepFreeze, toolCall } from "./hand-written.js";
import { deferred, makeTool, outline, resultsOf, resumeRun, textOf } from "./helpers.js";
import { approve, cut, deny, result, resultOf, resumed } from "./resume-helpers.js";

const number = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

/** A tool "t" that notes the arguments it gets. */
function noting(extra: Partial<AgentTool> = {}): { got: unknown[]; tools: AgentTool[] } {
  const got: unknown[] = [];
  return { got, tools: [makeTool("t", (_id, args) => `ran ${got.push(args)}`, extra)] };
}

// SPEC 15.3
describe("the events of a resumed run", () => {
  it("no second start; ends as they come; results in source order; turn_end with the answer and the results added here", async () => {
    const gate = deferred();
    const messages = cut(["a", "b", "c", "d"], ["b"]);
    const record = await resumed(messages, [result("d", "given"), deny("c", "no"), approve("a")], {
      tools: [makeTool("t", () => gate.promise.then(() => "late"))],
      onEvent: (event) => (event.type === "tool_execution_end" && event.toolCallId === "d" ? gate.resolve() : undefined),
    });
    expect(outline(record.events)).toEqual([
      ...["agent_start", "turn_start", "tool_execution_end c", "tool_execution_end d", "tool_execution_end a"],
      ...["message_start toolResult", "message_end toolResult", "message_start toolResult", "message_end toolResult"],
      ...["message_start toolResult", "message_end toolResult", "turn_end"],
      ...["turn_start", "message_start assistant", "message_end assistant", "turn_end", "agent_end completed"],
    ]);
    expect(resultsOf(record).map((message) => [message.toolCallId, textOf(message), message.isError])).toEqual([
      ["a", "late", false],
      ["c", "no", true],
      ["d", "given", false],
    ]);
    const turnEnd = record.events.find((event) => event.type === "turn_end");
    expect(turnEnd).toEqual({ type: "turn_end", message: messages[1], toolResults: resultsOf(record) });
    expect(record.requests[0]?.messages.map((message) => ("toolCallId" in message ? message.toolCallId : message.role))).toEqual([
      "user",
      "assistant",
      "a",
      "b",
      "c",
      "d",
    ]);
    expect(record.messages.map(({ role }) => role)).toEqual(["toolResult", "toolResult", "toolResult", "assistant"]);
  });

  it("sequential: each call is ended and recorded before the next one is prepared", async () => {
    const record = await resumed(cut(["a", "b"]), [approve("b"), approve("a")], { config: { toolExecution: "sequential" } });
    expect(outline(record.events).slice(2, 8)).toEqual([
      ...["tool_execution_end a", "message_start toolResult", "message_end toolResult"],
      ...["tool_execution_end b", "message_start toolResult", "message_end toolResult"],
    ]);
  });

  it("updates come live", async () => {
    const tool = makeTool("t", (_id, _args, _signal, onUpdate) => `${onUpdate({ content: [] })}`);
    const { events } = await resumed(cut(["a"]), [approve("a")], { tools: [tool] });
    expect(outline(events, { updates: true }).slice(2, 4)).toEqual(["tool_execution_update a", "tool_execution_end a"]);
  });

  it("from (g) onward it is a turn like any other: hooks, steering, stop, follow-ups", async () => {
    const seen: unknown[] = [];
    const polls = [[userMessage("steer")], [], [], []];
    const config: Partial<AgentLoopConfig> = {
      prepareNextTurn: ({ message, toolResults, newMessages, context }) =>
        void seen.push([message.content.length, toolResults.map(textOf), newMessages.length, context.messages.length]),
      shouldStopAfterTurn: ({ turn }) => void seen.push(turn) as never,
      getSteeringMessages: () => polls.shift() ?? [],
      getFollowUpMessages: vi.fn(() => []).mockReturnValueOnce([userMessage("more")] as never),
    };
    const record = await resumeRun([approve("b")], ["one", "two"], {
      messages: cut(["a", "b"], ["a"]),
      tools: [makeTool("t", () => "ran")],
      config,
    });
    expect(seen).toEqual([[2, ["ran"], 1, 4], 1, [1, [], 3, 6], 2, [1, [], 5, 8], 3]);
    expect(record.messages.map(textOf)).toEqual(["ran", "steer", "one", "more", "two"]);
  });

  it("shouldStopAfterTurn may end it before any model call", async () => {
    const record = await resumed(cut(["a"]), [approve("a")], { config: { shouldStopAfterTurn: () => true } });
    expect([record.outcome, record.requests.length, record.messages.length]).toEqual(["stopped", 0, 1]);
  });

  it.each([
    ["all of this half ask for the end", [result("a", { content: [], terminate: true })], "terminated"],
    ["one does not", [result("a", { content: [], terminate: true }), deny("b")], "completed"],
  ])("terminate counts the results of this half: %s", async (_name, decisions, outcome) => {
    const ids = decisions.map(({ toolCallId }) => toolCallId);
    expect((await resumed(cut(["x", ...ids], ["x"]), decisions)).outcome).toBe(outcome);
  });

  it("another call may be suspended in the next turn", async () => {
    const record = await resumeRun([approve("a")], [[{ toolCall: "t", id: "b" }], "done"], {
      messages: cut(["a"]),
      tools: [makeTool("t", (id) => `did ${id}`)],
      config: { beforeToolCall: ({ toolCall }) => ({ suspend: toolCall.id === "b" }) },
    });
    expect([record.outcome, record.end.pending?.map(({ toolCall }) => toolCall.id)]).toEqual(["suspended", ["b"]]);
    const messages = [...cut(["a"]), ...record.messages];
    const next = await resumed(messages, [deny("b")]);
    expect(next.outcome).toBe("completed");
  });
});

// SPEC 15.3
describe("each decision", () => {
  it("approve prepares again from the transcript: prepareArguments and validation, but beforeToolCall is not asked", async () => {
    const beforeToolCall = vi.fn();
    const got: unknown[] = [];
    const tool = makeTool("t", (_id, args, _signal, _onUpdate, position) => String(got.push([args, position])), {
      parameters: number,
      prepareArguments: (args: any) => ({ n: args.m }),
    });
    const messages = [
      userMessage("go"),
      answer([{ type: "text", text: "x" }, toolCall("t", {}, "a"), toolCall("t", { m: "5" }, "b")]),
      resultOf("a"),
    ];
    const afterToolCall = vi.fn(() => ({ details: "looked at" }));
    const record = await resumed(messages, [approve("b")], { tools: [tool], config: { beforeToolCall, afterToolCall } });
    expect(got).toEqual([[{ n: 5 }, { turn: 1, index: 1 }]]);
    expect(beforeToolCall).not.toHaveBeenCalled();
    const [asked] = afterToolCall.mock.calls[0] as unknown as [object];
    expect(asked).toMatchObject({ toolCall: { id: "b" }, args: { n: 5 }, assistantMessage: messages[1] });
    expect(resultsOf(record)[0]).toMatchObject({ details: "looked at" });
  });

  it.each<[string, unknown, unknown]>([
    ["coerced", { n: "7" }, { n: 7 }],
    ["as JSON text", '{"n":8}', { n: 8 }],
    ["with keys that could reach a prototype left out", JSON.parse('{"n":1,"__proto__":{"x":1}}'), { n: 1 }],
  ])("edited arguments are validated, without prepareArguments: %s", async (_name, args, expected) => {
    const prepareArguments = vi.fn();
    const { got, tools } = noting({ parameters: number, prepareArguments });
    await resumed(cut(["a"]), [deepFreeze(approve("a", args))], { tools });
    expect(got).toEqual([expected]);
    expect(prepareArguments).not.toHaveBeenCalled();
  });

  it("edited arguments are the call's own: a tool that writes to them writes to nobody's", async () => {
    const args = { n: 1, list: [1] };
    const tool = makeTool("t", (_id, given: any) => String(given.list.push(2)));
    await resumed(cut(["a"]), [approve("a", args)], { tools: [tool] });
    expect(args).toEqual({ n: 1, list: [1] });
  });

  it("null for arguments is an edit, also where a schema takes anything", async () => {
    const { got, tools } = noting({ parameters: {} });
    await resumed(cut(["a"]), [approve("a", null)], { tools });
    expect(got).toEqual([null]);
  });

  it("a call whose arguments were broken runs only with edited ones", async () => {
    const broken = { ...toolCall("t", {}, "a"), argumentsError: "The arguments are no object." };
    const messages = [userMessage("go"), answer([broken])];
    const { got, tools } = noting();
    const refused = await resumed(messages, [approve("a")], { tools });
    expect([textOf(resultsOf(refused)[0]), got]).toEqual(["The arguments are no object.", []]);
    await resumed(messages, [approve("a", { n: 1 })], { tools });
    expect(got).toEqual([{ n: 1 }]);
  });

  it.each<[string, AgentTool[], RegExp]>([
    ["the tool is gone", [], /"t" not found/],
    ["its schema has changed", [makeTool("t", () => "ran", { parameters: number })], /n: required/],
    [
      "its preparation throws",
      [makeTool("t", () => "ran", { prepareArguments: () => Promise.reject(new Error("x")) })],
      /prepareArguments/,
    ],
    ["it throws", [makeTool("t", () => Promise.reject(new Error("broke")))], /^broke$/],
    ["it exceeds its limit", [makeTool("t", () => new Promise(() => {}), { timeoutMs: 1 })], /limit of 1 ms/],
  ])("an approved call fails as any call: %s", async (_name, tools, text) => {
    const record = await resumed(cut(["a"]), [approve("a")], { tools });
    expect([record.outcome, resultsOf(record)[0]?.isError]).toEqual(["completed", true]);
    expect(textOf(resultsOf(record)[0])).toMatch(text);
  });

  it("calls of a length answer are not executed, whatever was approved", async () => {
    const execute = vi.fn(() => "ran");
    const record = await resumed(
      cut(["a", "b", "c"], [], { stopReason: "length" }),
      [approve("a"), deny("b", "no"), result("c", "given")],
      {
        tools: [makeTool("t", execute)],
      },
    );
    expect(resultsOf(record).map(textOf)).toEqual([expect.stringContaining("output limit"), "no", "given"]);
    expect(execute).not.toHaveBeenCalled();
    const once = await resumed(cut(["a"], [], { stopReason: "length" }), [approve("a")], { config: { maxTruncatedTurns: 1 } });
    expect(once.outcome).toBe("error");
  });

  it.each<[string, unknown, unknown]>([
    ["a text", "given", { content: [{ type: "text", text: "given" }], isError: false }],
    ["content that is a text", { content: "given" }, { content: [{ type: "text", text: "given" }], isError: false }],
    ["a failure", { content: [], isError: true, details: 1 }, { content: [], isError: true, details: 1 }],
    ["nothing", undefined, { isError: true, content: [{ text: expect.stringContaining('Tool "t" returned undefined') }] }],
    ["another call's id", { content: [], toolCallId: "x", role: "user" }, { toolCallId: "a", role: "toolResult", toolName: "t" }],
  ])("a supplied result is normalised, without afterToolCall: %s", async (_name, value, expected) => {
    const afterToolCall = vi.fn();
    const execute = vi.fn(() => "ran");
    const tools = [makeTool("t", execute)];
    const record = await resumed(cut(["a"]), [result("a", value)], { tools, config: { afterToolCall } });
    expect(resultsOf(record)[0]).toMatchObject(expected as object);
    expect([afterToolCall.mock.calls.length, execute.mock.calls.length]).toEqual([0, 0]);
  });

  it("a denial says so to the model; a reason takes the place of that text", async () => {
    const record = await resumed(cut(["a", "b", "c"]), [deny("a"), deny("b", ""), deny("c", "too risky")]);
    const text = "Not executed: the user denied this tool call.";
    expect(resultsOf(record).map((message) => [textOf(message), message.isError])).toEqual([
      [text, true],
      [text, true],
      ["too risky", true],
    ]);
  });

  it("parallel limits, sequential tools and the tool's clock hold for what is approved", async () => {
    let running = 0;
    let most = 0;
    const tool = makeTool("t", async () => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      return "ran";
    });
    const ids = ["a", "b", "c", "d"];
    const record = await resumed(
      cut(ids),
      ids.map((id) => approve(id)),
      { tools: [tool], config: { maxParallelToolCalls: 2, now: () => 77 } },
    );
    expect([most, resultsOf(record).map(({ timestamp }) => timestamp)]).toEqual([2, [77, 77, 77, 77]]);
  });
});

// SPEC 15.3, 7.5
describe("aborts", () => {
  it("with an aborted signal denials and results are recorded, approved calls are answered as not executed", async () => {
    const execute = vi.fn(() => "ran");
    const record = await resumed(cut(["a", "b", "c"]), [approve("a"), deny("b", "no"), result("c", "given")], {
      tools: [makeTool("t", execute)],
      signal: AbortSignal.abort("enough"),
    });
    expect(resultsOf(record).map(textOf)).toEqual(["Not executed: the run was aborted (enough) before this call started.", "no", "given"]);
    expect([record.outcome, record.requests.length, execute.mock.calls.length]).toEqual(["aborted", 0, 0]);
    expect(outline(record.events).at(-2)).toBe("turn_end");
  });

  it.each(["parallel", "sequential"] as const)("an abort while the approved calls run, %s", async (toolExecution) => {
    const controller = new AbortController();
    const tools = [makeTool("t", (id) => `${id === "a" && controller.abort()}`)];
    const record = await resumed(cut(["a", "b", "c"]), [approve("a"), approve("b"), result("c", "given")], {
      tools,
      signal: controller.signal,
      config: { toolExecution },
    });
    expect(resultsOf(record).map((message) => [message.toolCallId, message.isError])).toEqual([
      ["a", true],
      ["b", true],
      ["c", false],
    ]);
    expect(record.outcome).toBe("aborted");
  });

  it("an abort ends it also while a schema validates edited arguments for ever", async () => {
    const controller = new AbortController();
    const validate = (): Promise<never> => {
      queueMicrotask(() => controller.abort());
      return new Promise(() => {});
    };
    const execute = vi.fn(() => "ran");
    const tool = makeTool("t", execute, { parameters: { "~standard": { version: 1, vendor: "test", validate } }, jsonSchema: number });
    const record = await resumed(cut(["a"]), [approve("a", { n: 1 })], { tools: [tool], signal: controller.signal });
    expect([record.outcome, execute.mock.calls.length, resultsOf(record).length]).toEqual(["aborted", 0, 1]);
  });
});
