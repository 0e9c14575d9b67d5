/** Field reports A: orphaned calls and broken pairing. SPEC 2.6, 5.2, 7.4. */
import { type AgentMessage, type AssistantMessage, type ToolResultMessage, TurnLoopError, userMessage } from "turnloop";
import { describe, expect, it } from "vitest";
import { aborted, deferred, makeTool, outline, resultsOf, textOf } from "../helpers.js";
import { abortError, answer, call, callsOf, play, watchConditions } from "./conditions.js";

watchConditions();

const modes = ["parallel", "sequential"] as const;

describe("field reports A: calls and their results", () => {
  it.each(modes)("F01 an abort while a tool runs (%s) leaves a transcript that the next prompt can use", async (toolExecution) => {
    const controller = new AbortController();
    const started = deferred();
    const slow = makeTool("slow", async (_id, _args, signal) => {
      started.resolve();
      await aborted(signal);
      throw abortError();
    });
    const running = play([[call("a", "slow")]], { tools: [slow], signal: controller.signal, config: { toolExecution } });
    await started.promise;
    controller.abort("user pressed stop");
    const first = await running;
    expect(outline(first.events)).toEqual([
      "agent_start",
      "turn_start",
      "message_start user",
      "message_end user",
      "message_start assistant",
      "message_end assistant",
      "tool_execution_start a",
      "tool_execution_end a",
      "message_start toolResult",
      "message_end toolResult",
      "turn_end",
      "agent_end aborted",
    ]);
    expect(resultsOf(first)).toMatchObject([{ toolCallId: "a", isError: true }]);
    expect(textOf(resultsOf(first)[0])).toMatch(/aborted \(user pressed stop\).*may have partly run/);

    const second = await play(["ok"], { messages: first.messages, prompts: [userMessage("go on")], tools: [slow] });
    expect(second.outcome).toBe("completed");
    expect(second.requests[0]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "user"]);
    expect(second.executed).toEqual([]);
  });

  const batchOf = (count: number) => Array.from({ length: count }, (_, i) => call(`c${i}`, "x"));

  it.each([3, 311])("F02 an abort in the first of %i sequential calls answers all of them", async (count) => {
    const controller = new AbortController();
    const x = makeTool("x", async (_id, _args, signal) => {
      controller.abort("enough");
      await aborted(signal);
      throw abortError();
    });
    const played = await play([batchOf(count)], { tools: [x], signal: controller.signal, config: { toolExecution: "sequential" } });
    const [first, ...others] = resultsOf(played);
    expect(played.outcome).toBe("aborted");
    expect(played.requests).toHaveLength(1);
    expect(played.executed).toEqual(["c0"]);
    expect(first).toMatchObject({ toolCallId: "c0", isError: true });
    expect(textOf(first)).toMatch(/aborted/);
    expect(others.map(({ toolCallId }) => toolCallId)).toEqual(batchOf(count).flatMap((_, i) => (i > 0 ? [`c${i}`] : [])));
    for (const other of others) expect(textOf(other)).toMatch(/Not executed: .*aborted \(enough\)/);
    expect(textOf(first)).not.toMatch(/not executed/i);
  });

  it("F02 an abort while the second of three parallel calls is prepared executes none and answers all", async () => {
    const controller = new AbortController();
    const asked: string[] = [];
    const played = await play([batchOf(3)], {
      tools: [makeTool("x", () => "ran")],
      signal: controller.signal,
      config: {
        beforeToolCall: ({ toolCall }) => {
          asked.push(toolCall.id);
          if (toolCall.id === "c1") controller.abort("enough");
        },
      },
    });
    expect(asked).toEqual(["c0", "c1"]);
    expect(played.executed).toEqual([]);
    expect(played.outcome).toBe("aborted");
    expect(played.requests).toHaveLength(1);
    expect(resultsOf(played).map(({ toolCallId, isError }) => [toolCallId, isError])).toEqual([
      ["c0", true],
      ["c1", true],
      ["c2", true],
    ]);
    for (const result of resultsOf(played)) expect(textOf(result)).toMatch(/Not executed: .*aborted \(enough\)/);
  });

  it.each([
    ["returns a text", () => "The operation was aborted"],
    ["returns a result that says isError: false", () => ({ content: [{ type: "text" as const, text: "all done" }], isError: false })],
    ["throws an error of its own class", () => Promise.reject(new RangeError("oops"))],
  ])("F04 a tool that hides the abort (%s) is still marked as an error, because the signal decides", async (_name, hide) => {
    const controller = new AbortController();
    const x = makeTool("x", async (_id, _args, signal) => {
      controller.abort(new Error("stop"));
      await aborted(signal);
      return hide();
    });
    const played = await play([[call("a", "x")]], { tools: [x], signal: controller.signal });
    expect(played.outcome).toBe("aborted");
    expect(resultsOf(played)).toMatchObject([{ toolCallId: "a", isError: true }]);
    expect(played.events.find(({ type }) => type === "tool_execution_end")).toMatchObject({ isError: true, result: { isError: true } });
    expect(textOf(resultsOf(played)[0])).toMatch(/The operation was aborted|all done|oops/);
  });

  it("F05 a denied call is an error with its reason, its sibling an ordinary result", async () => {
    const played = await play([[call("a", "mail", { to: 1 }), call("b", "mail", { to: 2 })], "ok"], {
      tools: [makeTool("mail", () => "sent")],
      config: { beforeToolCall: ({ args }) => (args.to === 2 ? { block: true, reason: "not to this address" } : undefined) },
    });
    expect(played.executed).toEqual(["a"]);
    expect(resultsOf(played)).toMatchObject([
      { toolCallId: "a", isError: false },
      { toolCallId: "b", isError: true },
    ]);
    expect(textOf(resultsOf(played)[1])).toBe("not to this address");
    expect(played.requests[1]?.messages.slice(2)).toMatchObject([{ isError: false }, { isError: true }]);
  });

  it.each([
    ["parallel", {}],
    ["sequential", { config: { toolExecution: "sequential" as const } }],
    ["in a continued run", { continuing: true, messages: [userMessage("go")] }],
    ["with a time limit of its own", { config: { toolTimeoutMs: 60_000 } }],
  ])("F06 the abort reaches execute with the caller's reason (%s)", async (_name, options) => {
    const controller = new AbortController();
    const reason = new Error("window closed");
    const started = deferred<AbortSignal>();
    const probe = makeTool("probe", async (_id, _args, signal) => {
      started.resolve(signal);
      await aborted(signal);
      return "stopped";
    });
    const running = play([[call("a", "probe")]], { ...options, tools: [probe], signal: controller.signal });
    const signal = await started.promise;
    expect(signal).toBeInstanceOf(AbortSignal);
    expect(signal.aborted).toBe(false);
    controller.abort(reason);
    expect(signal.reason).toBe(reason);
    expect((await running).outcome).toBe("aborted");
  });

  const crashed: AgentMessage[] = [
    userMessage("go", { timestamp: 1 }),
    answer({
      content: ["a", "b"].map((id) => ({ type: "toolCall", id, name: "x", arguments: {} })),
      stopReason: "toolUse",
    }),
    { role: "toolResult", toolCallId: "a", toolName: "x", content: [{ type: "text", text: "A" }], isError: false, timestamp: 1 },
  ];

  it.each([
    ["a prompt", { prompts: [userMessage("continue")] }],
    ["runAgentLoopContinue", { continuing: true }],
  ])("F07 a transcript cut by a crash is repaired in the request only (%s) and nothing runs again", async (_name, options) => {
    const played = await play(["ok"], { ...options, messages: crashed, tools: [makeTool("x", () => "again")] });
    const [, call, a, b] = played.requests[0]?.messages ?? [];
    expect(callsOf(call as AssistantMessage)).toHaveLength(2);
    expect(a).toEqual(crashed[2]);
    expect(b).toMatchObject({ role: "toolResult", toolCallId: "b", toolName: "x", isError: true });
    expect(textOf(b)).toMatch(/No result was recorded.*Do not assume/);
    expect(played.executed).toEqual([]);
    expect(resultsOf(played)).toEqual([]);
  });

  it("F07 continuing a transcript that ends in an assistant message is refused before any event", async () => {
    const played = await play(["ok"], { continuing: true, messages: crashed.slice(0, 2) });
    expect(TurnLoopError.is(played.rejection)).toBe(true);
    expect(played.rejection?.code).toBe("cannot_continue_from_assistant");
    expect(played.requests).toEqual([]);
  });

  it.each([
    ["the assistant message without its results", (all: AgentMessage[]) => all.filter(({ role }) => role !== "assistant"), ["user"]],
    [
      "one of two results only",
      (all: AgentMessage[]) => [all[0], all[1], all[2]] as AgentMessage[],
      ["user", "assistant", "toolResult a", "toolResult b"],
    ],
    [
      "the results in the wrong order and place",
      (all: AgentMessage[]) => [all[3], all[0], all[1], all[3], all[2], all[2]] as AgentMessage[],
      ["user", "assistant", "toolResult a", "toolResult b"],
    ],
    [
      "a user message between a call and its results",
      (all: AgentMessage[]) => [all[0], all[1], all[0], all[2], all[3]] as AgentMessage[],
      ["user", "assistant", "toolResult a", "toolResult b", "user"],
    ],
  ])("F08 history trimming that leaves %s never reaches the model unrepaired", async (_name, trim, expected) => {
    const b: ToolResultMessage = { ...(crashed[2] as ToolResultMessage), toolCallId: "b" };
    const messages = [...crashed, b];
    const before = structuredClone(messages);
    const stored: number[] = [];
    const config = {
      transformContext: (all: AgentMessage[]) => {
        const kept = [...trim(all.slice(0, 4)), ...all.slice(4)];
        all.length = 0;
        return kept;
      },
      shouldStopAfterTurn: ({ context }: { context: { messages: AgentMessage[] } }) => stored.push(context.messages.length) < 0,
    };
    const played = await play(["ok"], { messages, config });
    const request = played.requests[0]?.messages ?? [];
    expect(request.map((message) => (message.role === "toolResult" ? `toolResult ${message.toolCallId}` : message.role))).toEqual([
      ...expected,
      "user",
    ]);
    expect(played.outcome).toBe("completed");
    expect(messages).toEqual(before);
    expect(stored).toEqual([messages.length + 2]);
  });

  it("F09 the loop names the call of a result, whatever the tool's value says", async () => {
    const claim = { content: [{ type: "text", text: "P" }], toolCallId: "b", toolName: "q", role: "user", id: "b" } as never;
    const played = await play([[call("a", "p"), call("b", "q")], "ok"], {
      tools: [makeTool("p", () => claim), makeTool("q", () => "Q")],
    });
    expect(resultsOf(played)).toMatchObject([
      { role: "toolResult", toolCallId: "a", toolName: "p", content: [{ text: "P" }] },
      { role: "toolResult", toolCallId: "b", toolName: "q", content: [{ text: "Q" }] },
    ]);
    expect(outline(played.events).filter((line) => line.startsWith("tool_execution_end"))).toEqual([
      "tool_execution_end a",
      "tool_execution_end b",
    ]);
  });
});
