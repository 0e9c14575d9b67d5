import { type AgentEvent, type AgentMessage, agentLoop, runAgentLoop, runAgentLoopContinue, TurnLoopError, userMessage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { continueRun, makeTool, model, outline, run, textOf } from "./helpers.js";

const noop = (): void => {};
const context = { systemPrompt: "", messages: [] as AgentMessage[] };
const echo = makeTool("echo", (_id, args) => `echo ${args.x ?? ""}`);

describe("a run", () => {
  it("without tool calls is one turn, and returns the prompt and the answer", async () => {
    // SPEC 4.2, 4.6
    const { events, messages, requests } = await run(["Hello."]);
    expect(outline(events, { updates: true })).toEqual([
      "agent_start",
      "turn_start",
      "message_start user",
      "message_end user",
      "message_start assistant",
      "message_update",
      "message_update",
      "message_update",
      "message_end assistant",
      "turn_end",
      "agent_end completed",
    ]);
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant"]);
    expect(requests).toHaveLength(1);
    expect(requests[0]?.messages.map(textOf)).toEqual(["go"]);
  });

  it("goes on with the results of tool calls until an answer has none", async () => {
    // SPEC 4.4
    const { events, requests, messages } = await run(
      [
        [
          { toolCall: "echo", id: "a" },
          { toolCall: "echo", id: "b" },
        ],
        "done",
      ],
      { tools: [echo] },
    );
    expect(outline(events)).toEqual([
      "agent_start",
      "turn_start",
      "message_start user",
      "message_end user",
      "message_start assistant",
      "message_end assistant",
      "tool_execution_start a",
      "tool_execution_start b",
      "tool_execution_end a",
      "tool_execution_end b",
      "message_start toolResult",
      "message_end toolResult",
      "message_start toolResult",
      "message_end toolResult",
      "turn_end",
      "turn_start",
      "message_start assistant",
      "message_end assistant",
      "turn_end",
      "agent_end completed",
    ]);
    expect(requests[1]?.messages).toEqual(messages.slice(0, 4));
  });

  it("takes steering after each turn and follow-ups when it would end", async () => {
    // SPEC 4.4 (i): the inner loop ends only when there is no steering; the outer one asks for follow-ups
    const steering = [[userMessage("s1")], [], []];
    const followUps = [[userMessage("f1"), userMessage("f2")], []];
    const polls: string[] = [];
    const { requests, outcome } = await run(["one", "two", "three"], {
      config: {
        getSteeringMessages: () => {
          polls.push("steering");
          return steering.shift() ?? [];
        },
        getFollowUpMessages: () => {
          polls.push("followUp");
          return followUps.shift() ?? [];
        },
      },
    });
    expect(polls).toEqual(["steering", "steering", "followUp", "steering", "followUp"]);
    expect(requests.map(({ messages }) => messages.map(textOf))).toEqual([
      ["go"],
      ["go", "one", "s1"],
      ["go", "one", "s1", "two", "f1", "f2"],
    ]);
    expect(outcome).toBe("completed");
  });

  it("continues a transcript, adds nothing of its own and returns only what it added", async () => {
    // SPEC 4.2
    const before = [userMessage("earlier")];
    const { events, messages, requests } = await continueRun(["answer"], { messages: before });
    expect(outline(events)).toEqual([
      "agent_start",
      "turn_start",
      "message_start assistant",
      "message_end assistant",
      "turn_end",
      "agent_end completed",
    ]);
    expect(messages.map(textOf)).toEqual(["answer"]);
    expect(requests[0]?.messages.map(textOf)).toEqual(["earlier"]);
    expect(before).toHaveLength(1);
  });

  it("ends with one agent_end that carries what the promise gives", async () => {
    // SPEC 4.5
    for (const answers of [["ok"], [{ errorMessage: "down" }], [[{ toolCall: "echo" }], "ok"]]) {
      const { events, messages, end } = await run(answers, { tools: [echo] });
      expect(events.filter((event) => event.type === "agent_end")).toHaveLength(1);
      expect(end.messages).toEqual(messages);
    }
  });

  it("tells every outcome", async () => {
    // SPEC 4.5
    const controller = new AbortController();
    const terminating = makeTool("stop", () => ({ content: [], terminate: true }));
    expect((await run(["x"])).outcome).toBe("completed");
    expect((await run([[{ toolCall: "stop" }]], { tools: [terminating] })).outcome).toBe("terminated");
    expect((await run(["x"], { config: { shouldStopAfterTurn: () => true } })).outcome).toBe("stopped");
    expect(
      (await run(["x"], { signal: controller.signal, onEvent: (event) => (event.type === "turn_start" ? controller.abort() : undefined) }))
        .outcome,
    ).toBe("aborted");
    const failed = await run([{ errorMessage: "no credit", errorInfo: { kind: "auth", retryable: false } }]);
    expect(failed.outcome).toBe("error");
    expect(failed.end.error).toEqual({ message: "no credit", info: { kind: "auth", retryable: false } });
  });

  it("lets two runs share one frozen context and config", async () => {
    // SPEC 4.1
    const shared = deepFreeze({ systemPrompt: "s", messages: [userMessage("old")], tools: [echo] });
    const config = deepFreeze({ model, streamOptions: { temperature: 0 } });
    const prompts = deepFreeze([userMessage("go")]);
    const one = runAgentLoop(prompts, shared, config, noop, undefined, scriptedModel([[{ toolCall: "echo", args: { x: 1 } }], "one"]));
    const two = runAgentLoop(prompts, shared, config, noop, undefined, scriptedModel([[{ toolCall: "echo", args: { x: 2 } }], "two"]));
    expect((await one).map(textOf)).toEqual(["go", "", "echo 1", "one"]);
    expect((await two).map(textOf)).toEqual(["go", "", "echo 2", "two"]);
    expect((await runAgentLoopContinue(shared, config, noop, undefined, scriptedModel(["three"]))).map(textOf)).toEqual(["three"]);
    expect(shared.messages).toHaveLength(1);
  });
});

describe("misuse is refused before any event", () => {
  // SPEC 4.3, 14.4
  const start = (overrides: Partial<Record<"prompts" | "context" | "config" | "emit" | "signal" | "streamFn", unknown>>) => {
    const seen: AgentEvent[] = [];
    const argument = {
      prompts: [userMessage("go")],
      context,
      config: { model },
      emit: (event: AgentEvent) => void seen.push(event),
      streamFn: scriptedModel(["x"]),
      ...overrides,
    } as any;
    return {
      seen,
      promise: runAgentLoop(argument.prompts, argument.context, argument.config, argument.emit, argument.signal, argument.streamFn),
    };
  };
  it.each<[string, string, Parameters<typeof start>[0]]>([
    ["no prompts", "no_prompts", { prompts: [] }],
    ["prompts that are no array", "no_prompts", { prompts: userMessage("x") }],
    ["a prompt of an empty text", "no_prompts", { prompts: [userMessage("")] }],
    ["a prompt of no blocks", "no_prompts", { prompts: [userMessage([])] }],
    ["a prompt that is no message", "no_prompts", { prompts: ["hello"] }],
    ["a prompt whose content is a number", "invalid_argument", { prompts: [{ role: "user", content: 5 }] }],
    ["a tool result without content", "invalid_argument", { prompts: [{ role: "toolResult" }] }],
    ["no streamFn", "no_stream_fn", { streamFn: undefined }],
    ["two tools of one name", "duplicate_tool", { context: { ...context, tools: [echo, echo] } }],
    ["a tool without a name", "invalid_tool", { context: { ...context, tools: [{ ...echo, name: "" }] } }],
    ["a tool without execute", "invalid_tool", { context: { ...context, tools: [{ name: "x", parameters: {} }] } }],
    ["a tool that is null", "invalid_tool", { context: { ...context, tools: [null] } }],
    ["no context", "invalid_argument", { context: undefined }],
    ["no messages array", "invalid_argument", { context: { systemPrompt: "" } }],
    ["no model", "invalid_argument", { config: {} }],
    ["a hook that is no function", "invalid_argument", { config: { model, beforeToolCall: true } }],
    ["no calls at once", "invalid_argument", { config: { model, maxParallelToolCalls: 0 } }],
    ["an unknown execution mode", "invalid_argument", { config: { model, toolExecution: "serial" } }],
    ["a negative grace", "invalid_argument", { config: { model, abortGraceMs: -1 } }],
    ["no sink", "invalid_argument", { emit: undefined }],
    ["a controller in place of its signal", "invalid_argument", { signal: new AbortController() }],
  ])("%s: %s", async (_what, code, overrides) => {
    const { seen, promise } = start(overrides);
    const error = await promise.then(
      () => undefined,
      (rejected: unknown) => rejected,
    );
    expect(TurnLoopError.is(error)).toBe(true);
    expect((error as TurnLoopError).code).toBe(code);
    expect((error as TurnLoopError).message).toMatch(/^[A-Z`a-z].*[.]$/s);
    expect(seen).toEqual([]);
  });

  it("a prompt of an image without text is accepted", async () => {
    const image = { type: "image" as const, data: "AA==", mimeType: "image/png" };
    const { messages } = await run(["seen"], { prompts: [userMessage("", { images: [image] })] });
    expect(messages[0]).toMatchObject({ content: [image] });
  });

  it.each<[string, string, AgentMessage[]]>([
    ["an empty context", "empty_context", []],
    ["an assistant-ended one", "cannot_continue_from_assistant", [userMessage("a"), { role: "assistant" } as AgentMessage]],
  ])("continuing %s: %s", async (_what, code, messages) => {
    const seen: AgentEvent[] = [];
    const promise = runAgentLoopContinue(
      { systemPrompt: "", messages },
      { model },
      (event) => void seen.push(event),
      undefined,
      scriptedModel(["x"]),
    );
    await expect(promise).rejects.toMatchObject({ code });
    expect(seen).toEqual([]);
  });

  it("surfaces in the iterable form at the first next() and at result()", async () => {
    // SPEC 4.3, 4.9
    await expect(agentLoop([], context, { model }, undefined, scriptedModel([])).result()).rejects.toMatchObject({ code: "no_prompts" });
    const iterator = agentLoop([], context, { model }, undefined, scriptedModel([]))[Symbol.asyncIterator]();
    await expect(iterator.next()).rejects.toMatchObject({ code: "no_prompts" });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it("is told apart from other errors across two copies of the package by its brand", () => {
    // SPEC 14.4
    const error = new TurnLoopError("no_prompts", "text", { cause: 1 });
    expect(TurnLoopError.is(error)).toBe(true);
    expect(TurnLoopError.is(new Error("x"))).toBe(false);
    expect(TurnLoopError.is(undefined)).toBe(false);
    expect(error).toMatchObject({ name: "TurnLoopError", cause: 1 });
  });
});

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
