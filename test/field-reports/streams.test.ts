/** Field reports I, J and K: stop reasons, how a stream ends, retries. SPEC 2.4, 2.5, 3.3, 3.4, 5.1, 6.3. */
import {
  type AgentLoopConfig,
  type AgentMessage,
  type AssistantMessage,
  dropFailedTail,
  type Message,
  type StreamFn,
  userMessage,
} from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { makeTool, outline, resultsOf, textOf } from "../helpers.js";
import { advance, answer, call, callsOf, finalMessages, macrotasks, play, rawStream, sleep, watchConditions } from "./conditions.js";

watchConditions();

const x = makeTool("x", () => "ran");
const assistants = ({ messages }: { messages: unknown[] }) => (messages as AssistantMessage[]).filter(({ role }) => role === "assistant");

describe("field reports I: stop reasons and empty answers", () => {
  it.each(["stop", "toolUse", "weird", "content_filter", ""])("F45 F46 calls under the stop reason %j are executed", async (stopReason) => {
    const content = [{ text: "let me see" }, call("a", "x"), call("b", "x"), call("c", "x")];
    const played = await play([{ content, stopReason }, "done"], { tools: [x] });
    expect(played.executed).toEqual(["a", "b", "c"]);
    expect(played.requests).toHaveLength(2);
    const known = ["stop", "toolUse"].includes(stopReason);
    expect(played.messages[1]).toMatchObject({ stopReason: known ? stopReason : "toolUse" });
    expect((played.messages[1] as AssistantMessage).rawStopReason).toBe(known ? undefined : stopReason);
  });

  it.each(["toolUse", "weird"])("F46 the stop reason %j without calls just ends the turn", async (stopReason) => {
    const played = await play([{ content: ["text"], stopReason }, "never asked for"]);
    expect(played.requests).toHaveLength(1);
    expect(played.outcome).toBe("completed");
    expect(played.messages[1]).toMatchObject({ stopReason: stopReason === "weird" ? "stop" : "toolUse" });
  });

  it.each(["error", "aborted"])(
    "F46 calls of an answer that ended as %s are not executed, and not in later requests",
    async (stopReason) => {
      const refused = { content: [{ text: "I would " }, call("a", "x")], stopReason, errorMessage: "refusal" };
      const first = await play([refused, "never asked for"], { tools: [x] });
      expect(first.executed).toEqual([]);
      expect(first.outcome).toBe(stopReason);
      expect(first.end.error?.message).toContain("refusal");
      expect(resultsOf(first)).toEqual([]);
      expect(first.requests).toHaveLength(1);
      for (const config of [{}, { convertToLlm: (all: AgentMessage[]) => all as Message[] }]) {
        const second = await play(["ok"], { messages: first.messages, prompts: [userMessage("again")], tools: [x], config });
        expect(second.requests[0]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
        expect(second.requests[0]?.messages[1]?.content).toEqual([{ type: "text", text: "I would " }]);
      }
    },
  );

  it.each([
    ["no content", []],
    ["an empty text", [{ type: "text", text: "" }]],
    ["an empty thinking block", [{ type: "thinking", thinking: "" }]],
  ])("F49 an answer with %s after a tool call ends the run, and is not replayed", async (_name, content) => {
    const withCall = answer({ content: [{ type: "toolCall", id: "a", name: "x", arguments: {} }], stopReason: "toolUse" });
    const first = await play(finalMessages(withCall, answer({ content })), { tools: [x] });
    expect(first.requests).toHaveLength(2);
    expect(first.outcome).toBe("completed");
    const second = await play(["ok"], { messages: first.messages, prompts: [userMessage("and?")], tools: [x] });
    expect(second.requests[0]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "user"]);
  });

  it("F49 an answer of thinking only ends the run", async () => {
    const played = await play([[call("a", "x")], [{ thinking: "done, I think" }], "never asked for"], { tools: [x] });
    expect(played.requests).toHaveLength(2);
    expect(played.outcome).toBe("completed");
  });
});

describe("field reports J: how the stream ends", () => {
  const never = (): Promise<never> => new Promise(() => {});
  const start = { type: "start", partial: answer({}) };
  const hi = [{ type: "text", text: "hi" }];
  const update = { type: "text_delta", contentIndex: 0, delta: "hi", partial: answer({ content: hi }) };
  const done = { type: "done", reason: "stop", message: answer({ content: hi }) };

  it("F48 the message of the done event counts; a result() that never settles is not waited for", async () => {
    const stream = rawStream([start, update, done], undefined, never);
    const played = await play(() => stream);
    expect(played.outcome).toBe("completed");
    expect(textOf(played.messages[1])).toBe("hi");
  });

  it.each([
    ["never settles", never, 1000, /ended early/],
    ["rejects at once", () => Promise.reject(new Error("socket closed")), 0, /socket closed/],
    ["rejects when it is too late", () => sleep(1500).then(() => Promise.reject(new Error("x"))), 1000, /ended early/],
    [
      "throws",
      () => {
        throw new Error("socket closed");
      },
      0,
      /socket closed/,
    ],
    ["gives no message", async () => undefined, 0, /ended early/],
    ["does not exist", undefined, 0, /ended early/],
  ])("F48 a stream without a terminal event whose result() %s is an error turn", async (_name, result, waited, text) => {
    const call = { type: "toolCall", id: "a", name: "x", arguments: {} };
    const partial = answer({ content: [...hi, call] });
    const events = [start, update, { type: "toolcall_end", contentIndex: 1, toolCall: call, partial }];
    let settled = false;
    const running = play(() => rawStream(events, undefined, result), { tools: [x] }).finally(() => {
      settled = true;
    });
    await macrotasks();
    expect(settled).toBe(waited === 0);
    await advance(waited);
    const played = await running;
    await advance(1000);
    expect(played.outcome).toBe("error");
    expect(played.messages[1]).toMatchObject({ stopReason: "error", content: partial.content });
    expect(played.end.error?.message).toMatch(text);
    expect(played.executed).toEqual([]);
  });

  it("F48 a stream without a terminal event whose result() gives the message is an ordinary answer", async () => {
    const played = await play(() => rawStream([start, update], undefined, async () => answer({ content: hi })));
    expect(played.outcome).toBe("completed");
    expect(played.messages[1]).toMatchObject({ stopReason: "stop", content: hi });
  });

  it("F50 a stream that breaks inside a tool call: one failed message, the call neither executed nor sent again", async () => {
    const broken: ScriptedAnswer = {
      content: [{ toolCall: "x", id: "a", rawArgs: '{"p":' }],
      fault: { kind: "throw", afterEvents: 3 },
      errorMessage: "reset",
    };
    const first = await play([broken], { tools: [x] });
    expect(outline(first.events)).toEqual([
      "agent_start",
      "turn_start",
      "message_start user",
      "message_end user",
      "message_start assistant",
      "message_end assistant",
      "turn_end",
      "agent_end error",
    ]);
    expect(first.messages[1]).toMatchObject({ stopReason: "error", errorMessage: "reset", content: [{ type: "toolCall", id: "a" }] });
    const options = { messages: first.messages, tools: [x] };
    for (const second of [
      await play(["ok"], { ...options, prompts: [userMessage("again")] }),
      await play(["ok"], { ...options, messages: dropFailedTail(first.messages), continuing: true }),
    ]) {
      expect(second.requests[0]?.messages.every(({ role }) => role === "user")).toBe(true);
      expect([...first.executed, ...second.executed]).toEqual([]);
    }
  });

  const raise = (how: "now" | "later", thrown: unknown): any => {
    if (how === "later") return Promise.reject(thrown);
    throw thrown;
  };
  const thrown: [string, unknown][] = [
    ["an Error", new Error("hook broke")],
    ["a string", "hook broke"],
    ["undefined", undefined],
    ["an object", Object.create(null)],
  ];

  it.each(thrown)("F51 whatever the model call or its hooks throw (%s) is an error turn, and the next run works", async (_name, error) => {
    for (const how of ["now", "later"] as const) {
      const hook = () => raise(how, error);
      const cases: [string, StreamFn | ScriptedAnswer[], Partial<AgentLoopConfig>][] = [
        ["streamFn", hook, {}],
        ["convertToLlm", ["never asked for"], { convertToLlm: hook }],
        ["transformContext", ["never asked for"], { transformContext: hook }],
        ["getApiKey", ["never asked for"], { getApiKey: hook }],
      ];
      for (const [name, answers, config] of cases) {
        const played = await play(answers, { config });
        expect([name, played.outcome], how).toEqual([name, "error"]);
        expect(played.requests, name).toHaveLength(name === "streamFn" ? 1 : 0);
        expect(assistants(played), name).toMatchObject([{ stopReason: "error", content: [], errorMessage: expect.stringMatching(/./) }]);
        expect(played.end.error?.message, name).toMatch(error === thrown[0]?.[1] ? /hook broke/ : /./);
        const next = await play(["ok"], { messages: played.messages });
        expect(next.outcome, name).toBe("completed");
      }
    }
  });

  it.each(thrown)(
    "F51 whatever a hook between turns throws (%s) ends the run with what was done, and the next run works",
    async (_name, error) => {
      for (const how of ["now", "later"] as const) {
        for (const name of ["prepareNextTurn", "shouldStopAfterTurn", "getSteeringMessages", "getFollowUpMessages"] as const) {
          const played = await play(["answer", "never asked for"], { config: { [name]: () => raise(how, error) } });
          expect([name, played.outcome], how).toEqual([name, "error"]);
          expect(played.end.error?.message).toContain(name);
          expect(played.messages).toMatchObject([{ role: "user" }, { role: "assistant", stopReason: "stop" }]);
          expect(played.requests).toHaveLength(1);
          const next = await play(["ok"], { messages: played.messages });
          expect(next.outcome).toBe("completed");
        }
      }
    },
  );

  const unusable: [string, () => unknown][] = [
    ["undefined", () => undefined],
    ["a promise of undefined", async () => undefined],
    ["null", () => null],
    ["a text", () => "hi"],
    ["an array of events", () => [done]],
    ["an async iterable that throws", () => ({ [Symbol.asyncIterator]: () => raise("now", new Error("x")) })],
    ["an iterator without next()", () => ({ [Symbol.asyncIterator]: () => ({}) })],
    ["no iterator", () => ({ [Symbol.asyncIterator]: () => undefined })],
    ["a next() that throws", () => ({ [Symbol.asyncIterator]: () => ({ next: () => raise("now", new Error("x")) }) })],
    ["a next() that gives nothing", () => ({ [Symbol.asyncIterator]: () => ({ next: async () => undefined }) })],
    ["a done event without message", () => rawStream([{ type: "done", reason: "stop" }])],
    ["an error event without message", () => rawStream([{ type: "error", reason: "error" }])],
    ["events that are none, then the end", () => rawStream([null, 5, {}, { type: "ping" }])],
  ];

  it.each(unusable)("F51 a StreamFn that returns %s gives an error turn", async (_name, make) => {
    const played = await play(make as StreamFn);
    expect(played.outcome).toBe("error");
    expect(assistants(played)).toMatchObject([{ stopReason: "error", content: [], errorMessage: expect.stringMatching(/./) }]);
    expect((await play(["ok"], { messages: played.messages })).outcome).toBe("completed");
  });

  const failed = { type: "error", reason: "error", error: answer({ stopReason: "error", errorMessage: "late trouble" }) };

  it.each([
    ["an update", [update]],
    ["a second done", [{ ...done, message: answer({ content: [{ type: "text", text: "second" }] }) }]],
    ["an error", [failed]],
  ])("F52 %s after done is ignored", async (_name, after) => {
    const stream = rawStream([start, update, done, ...after]);
    const played = await play(() => stream);
    expect(played.outcome).toBe("completed");
    expect(assistants(played)).toMatchObject([{ stopReason: "stop", content: hi }]);
    expect(outline(played.events, { updates: true }).filter((line) => line === "message_update")).toHaveLength(1);
    expect(stream.seen.pulled).toBe(3);
  });

  it("F52 a done after an error is ignored", async () => {
    const played = await play(() => rawStream([start, failed, done]));
    expect(played.outcome).toBe("error");
    expect(assistants(played)).toMatchObject([{ stopReason: "error", errorMessage: "late trouble" }]);
  });

  it("F53 updates out of order begin the message, and the final message is the one of done", async () => {
    const calls = ["a", "b"].map((id) => ({ type: "toolCall", id, name: "x", arguments: { of: id } }));
    const partial = answer({ content: calls });
    const final = answer({ content: [...calls, ...hi], stopReason: "toolUse" });
    const events = [
      { type: "toolcall_end", contentIndex: 1, toolCall: calls[1], partial },
      { type: "text_delta", contentIndex: 2, delta: "h", partial },
      { type: "toolcall_end", contentIndex: 0, toolCall: calls[0], partial },
      { type: "text_start", contentIndex: 7, partial },
      { type: "thinking_delta", contentIndex: -1, delta: "?", partial: answer({ content: [] }) },
      { type: "text_delta", contentIndex: 0, delta: "no partial" },
      { type: "toolcall_end", contentIndex: 9 },
      { type: "start", partial },
      { type: "done", reason: "toolUse", message: final },
    ];
    const streams = [rawStream(events), rawStream([done])];
    const played = await play(() => streams.shift() ?? rawStream([]), { tools: [x] });
    expect(played.outcome).toBe("completed");
    expect(played.messages[1]).toEqual({ ...final, timestamp: expect.any(Number) });
    expect(played.executed).toEqual(["a", "b"]);
    const lines = outline(played.events, { updates: true });
    expect(lines.indexOf("message_update")).toBe(lines.indexOf("message_start assistant") + 1);
    expect(lines.filter((line) => line === "message_start assistant")).toHaveLength(2);
  });
});

describe("field reports K: retries", () => {
  const overload = (fault?: "throw" | "throwSync" | "reject"): ScriptedAnswer =>
    fault
      ? { content: ["half an ans"], errorMessage: "overloaded", fault: { kind: fault, afterEvents: 2 } }
      : { errorMessage: "overloaded", errorInfo: { kind: "overloaded", retryable: true, status: 529 } };

  it.each([undefined, "throw", "throwSync", "reject"] as const)(
    "F54 a retry after an overload (%s) sends the very request that failed, also after a tool result",
    async (fault) => {
      for (const before of [[], [[call("a", "x")]]]) {
        const first = await play([...before, overload(fault)], { tools: [x], systemPrompt: "be brief" });
        expect(first.outcome).toBe("error");
        expect(first.end.error?.message).toBe("overloaded");
        if (!fault) expect(first.end.error?.info).toEqual({ kind: "overloaded", retryable: true, status: 529 });
        const messages = dropFailedTail(first.messages);
        expect(messages).toHaveLength(first.messages.length - 1);
        const second = await play(["ok"], { messages, continuing: true, tools: [x], systemPrompt: "be brief" });
        expect(second.requests[0]).toEqual(first.requests[first.requests.length - 1]);
        expect(second.messages).toMatchObject([{ role: "assistant", stopReason: "stop" }]);
        expect(second.executed).toEqual([]);
      }
    },
  );

  it("F56 answers that break inside a large call, again and again, are each an error and leave no unpaired call", async () => {
    const broken: ScriptedAnswer = {
      content: [{ thinking: "let me write it all" }, { toolCall: "x", id: "big", rawArgs: `{"body":"${"line ".repeat(200)}` }],
      errorMessage: "reset",
      fault: { kind: "throw", afterEvents: 20 },
    };
    const streamFn = scriptedModel([broken, broken, broken, [call("big", "x")], "done"]);
    let messages: AssistantMessage[] = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      const played = await play(streamFn, { messages, prompts: [userMessage(`attempt ${attempt}`)], tools: [x] });
      expect(played.outcome).toBe("error");
      expect(played.messages).toMatchObject([{ role: "user" }, { role: "assistant", stopReason: "error", errorMessage: "reset" }]);
      expect(callsOf(played.messages[1] as AssistantMessage)).toHaveLength(1);
      expect(played.requests[0]?.messages.map(({ role }) => role)).toEqual(Array(attempt).fill("user"));
      messages = [...messages, ...played.messages] as AssistantMessage[];
    }
    const last = await play(streamFn, { messages, prompts: [userMessage("attempt 4")], tools: [x] });
    expect(last.outcome).toBe("completed");
    expect(last.executed).toEqual(["big"]);
    expect(last.requests[0]?.messages).toHaveLength(4);
  });
});
