/** Field reports S, U and W: copies and growth (counted, never timed), payloads, custom messages. SPEC 2.5, 4.8, 5.11, 6.1, 6.2. */
import { getEventListeners } from "node:events";
import { type AgentMessage, type AssistantMessage, type StreamFn, type ToolResultMessage, userMessage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { makeTool, outline, resultsOf, textOf } from "../helpers.js";
import { answer, call, finalMessages, hostQueue, macrotasks, play, watchConditions } from "./conditions.js";

watchConditions();

/** An object that counts how often its keys are listed, which every copy of it does. */
function counted<T extends object>(value: T, counts: { copies: number }): T {
  return new Proxy(value, {
    ownKeys: (target) => {
      counts.copies++;
      return Reflect.ownKeys(target);
    },
  });
}

describe("field reports S: copies and growth", () => {
  const finished = Array.from({ length: 40 }, (_, i) => ({ text: `${i} `.repeat(500) }));

  it.each([500, 1000, 2000])("F86 %i deltas copy their own block only, and earlier snapshots stay as they were", async (deltas) => {
    const long = Array.from({ length: deltas }, (_, i) => String.fromCharCode(97 + (i % 26))).join("");
    const blocks = finished.flatMap((block, i) => [block, { thinking: `${i}` }]);
    const played = await play(scriptedModel([[...blocks, { text: long }]], { chunkSize: 1 }));
    const updates = played.events.flatMap((event) => (event.type === "message_update" ? [event] : []));
    const own = updates.filter(
      ({ message, assistantMessageEvent }) => message.content.length === 81 && assistantMessageEvent.type === "text_delta",
    );
    expect(own.map(({ message }) => (message.content[80] as { text: string }).text.length)).toEqual(long.split("").map((_, i) => i + 1));
    // the 80 finished blocks are the same objects in each of these snapshots, and at most one block is new
    expect(new Set(own.flatMap(({ message }) => message.content.slice(0, 80))).size).toBe(80);
    expect(new Set(own.flatMap(({ message }) => message.content)).size).toBe(80 + deltas);
    expect(textOf({ ...played.messages[1], content: (played.messages[1] as AssistantMessage).content.slice(80) } as AgentMessage)).toBe(
      long,
    );
  });

  it.each([500, 2000])("F86 a StreamFn that writes to one live partial costs no more for %i deltas: one block a delta", async (deltas) => {
    const others = { copies: 0 };
    const own = { copies: 0 };
    const streamFn: StreamFn = async function* () {
      const live = { type: "text", text: "" };
      const content = [...Array.from({ length: 40 }, () => counted({ type: "text", text: "done" }, others)), counted(live, own)];
      const partial = answer({ content });
      yield { type: "start", partial };
      for (let i = 0; i < deltas; i++) {
        live.text += "x";
        yield { type: "text_delta", contentIndex: 40, delta: "x", partial };
      }
      yield { type: "done", reason: "stop", message: partial };
    };
    const played = await play(streamFn);
    expect(others.copies).toBeLessThanOrEqual(40 * 4);
    expect(own.copies).toBeLessThanOrEqual(deltas + 4);
    const texts = played.events.flatMap((event) => (event.type === "message_update" ? [event.message.content[40]] : []));
    expect(texts.map((block) => (block as { text: string }).text.length)).toEqual(Array.from({ length: deltas }, (_, i) => i + 1));
  });

  it("F87 the arguments of a call streamed in 20,000 deltas are not parsed by the loop, and rarely copied", async () => {
    const parse = vi.spyOn(JSON, "parse");
    const counts = { copies: 0 };
    const values = 800;
    const deltas = 20_000;
    const args = counted(Object.fromEntries(Array.from({ length: values }, (_, i) => [`k${i}`, i])), counts);
    const streamFn: StreamFn = async function* () {
      const content = [{ type: "toolCall", id: "a", name: "x", arguments: args }];
      const partial = answer({ content });
      yield { type: "start", partial };
      for (let i = 0; i < deltas; i++) yield { type: "toolcall_delta", contentIndex: 0, delta: "1", partial };
      yield { type: "done", reason: "toolUse", message: answer({ content, stopReason: "toolUse" }) };
    };
    const answers = [streamFn, scriptedModel(["ok"])];
    const parsedBefore = parse.mock.calls.length;
    const played = await play((...request) => (answers.shift() as StreamFn)(...request), {
      tools: [makeTool("x", (_id, params) => `${Object.keys(params).length}`)],
      keepUpdates: false,
    });
    expect(parse.mock.calls.length - parsedBefore).toBeLessThan(10);
    expect(counts.copies * values).toBeLessThan(20 * (deltas + values)); // a copy each delta would be 16,000,000
    expect(resultsOf(played).map(textOf)).toEqual([String(values)]);
  });

  it("F88 each request holds each result once, and grows by one turn at a time", async () => {
    const big = makeTool("big", (id) => id.repeat(5 * 1024));
    const turns = Array.from({ length: 5 }, (_, i) => [call(`c${i}`, "big")]);
    const played = await play([...turns, "done"], { tools: [big] });
    const ids = turns.map((_, i) => `c${i}`);
    played.requests.forEach(({ messages }, n) => {
      const results = messages.filter((message): message is ToolResultMessage => message.role === "toolResult");
      expect(results.map(({ toolCallId }) => toolCallId)).toEqual(ids.slice(0, n));
    });
    const sizes = played.requests.map(({ messages }) => JSON.stringify(messages).length);
    const growth = sizes.slice(1).map((size, i) => size - (sizes[i] as number));
    for (const by of growth) expect(Math.abs(by - (growth[0] as number))).toBeLessThan(100);
  });

  const keepLast = (messages: AgentMessage[]): AgentMessage[] => messages.slice(-20);

  it("F89 3,000 turns with a trimmed context keep requests small and add no listener as they go", async () => {
    const turns = 3000;
    const sizes: number[] = [];
    const listeners: number[] = [];
    let calls = 0;
    const streamFn: StreamFn = (_model, { messages }, options) => {
      sizes.push(messages.length);
      listeners.push(getEventListeners(options?.signal as AbortSignal, "abort").length);
      const block = ++calls < turns ? { type: "toolCall", id: `c${calls}`, name: "x", arguments: {} } : { type: "text", text: "done" };
      return finalMessages(answer({ content: [block] }))(_model, { messages });
    };
    const hooks = { beforeToolCall: async () => {}, afterToolCall: async () => {}, prepareNextTurn: async () => {} };
    const played = await play(streamFn, {
      tools: [makeTool("x", async () => "ran", { timeoutMs: 1000 })],
      config: { ...hooks, transformContext: keepLast },
      keepUpdates: false,
    });
    expect(played.executed).toHaveLength(turns - 1);
    expect(played.messages).toHaveLength(2 * turns);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(21); // one more: the made-up result of a call whose result is cut off
    expect(new Set(listeners)).toEqual(new Set([0]));
    expect(played.peakListeners).toBe(1);
  });

  const gc = (globalThis as { gc?: () => void }).gc;

  it.runIf(gc)("F89 the streams and requests of earlier turns can be collected while the run goes on", async () => {
    const streams: WeakRef<object>[] = [];
    let alive = Number.POSITIVE_INFINITY;
    const streamFn: StreamFn = async (requestModel, context) => {
      if (streams.length === 500) {
        await macrotasks();
        gc?.();
        alive = streams.filter((stream) => stream.deref()).length;
      }
      const content = [streams.length < 500 ? { type: "toolCall", id: "a", name: "x", arguments: {} } : { type: "text", text: "done" }];
      const stream = await finalMessages(answer({ content }))(requestModel, context);
      streams.push(new WeakRef(stream));
      return stream;
    };
    await play(streamFn, { tools: [makeTool("x", () => "ran")], config: { transformContext: keepLast }, keepUpdates: false });
    expect(alive).toBeLessThan(20);
  });
});

describe("field reports U: payloads", () => {
  it("F92 a result that afterToolCall cuts down is what messages, events and requests hold", async () => {
    const huge = "x".repeat(50 * 1024 * 1024);
    const details = { raw: huge };
    const cut = `${"x".repeat(64 * 1024)} [cut]`;
    const stringify = vi.spyOn(JSON, "stringify");
    const played = await play([[call("a", "cat")], "ok"], {
      tools: [makeTool("cat", () => ({ content: [{ type: "text", text: huge }], details }))],
      config: {
        afterToolCall: ({ result }) => ({ content: [{ type: "text", text: `${textOf(result as never).slice(0, 64 * 1024)} [cut]` }] }),
      },
    });
    const written = stringify.mock.results.filter(({ value }) => typeof value === "string" && value.length > 1024 * 1024);
    expect(written).toEqual([]);
    const [result] = resultsOf(played);
    const end = played.events.find((event) => event.type === "tool_execution_end");
    for (const held of [result, end?.type === "tool_execution_end" && end.result, played.requests[1]?.messages[2]]) {
      expect(textOf(held as AgentMessage) === cut).toBe(true);
    }
    expect(result?.details === details).toBe(true);
    expect(result?.isError).toBe(false);
  });

  it("F93 images in a result reach the model as images, in order and by value", async () => {
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const content = [
      { type: "text" as const, text: "before" },
      { type: "image" as const, data: png, mimeType: "image/png" },
      { type: "text" as const, text: "after" },
    ];
    const tools = [makeTool("screenshot", () => ({ content }))];
    for (const config of [{}, { afterToolCall: () => ({ isError: false }) }, { convertToLlm: (all: AgentMessage[]) => all as never }]) {
      const played = await play([[call("a", "screenshot")], "ok"], { tools, config });
      expect(resultsOf(played)[0]?.content).toEqual(content);
      expect(played.requests[1]?.messages[2]?.content).toEqual(content);
    }
  });
});

describe("field reports W: custom messages", () => {
  const note = (text: string): AgentMessage => ({ role: "note", text, data: { list: [1] }, timestamp: 1 }) as unknown as AgentMessage;
  const dropNotes = (messages: AgentMessage[]) => messages.filter(({ role }) => (role as string) !== "note") as never[];
  const history: AgentMessage[] = [
    userMessage("go", { timestamp: 1 }),
    note("before the call"),
    answer({ content: [{ type: "toolCall", id: "a", name: "x", arguments: {} }], stopReason: "toolUse" }),
    note("between call and result"),
    { role: "toolResult", toolCallId: "a", toolName: "x", content: [{ type: "text", text: "ran" }], isError: false, timestamp: 1 },
    note("after the result"),
  ];
  const x = makeTool("x", () => "ran");

  it.each([
    ["the default convertToLlm", {}],
    ["a convertToLlm that drops them", { convertToLlm: dropNotes }],
  ])("F97 custom messages get events and stay in the transcript; no request has one (%s)", async (_name, config) => {
    const queue = hostQueue();
    const steering = [[note("steered")]];
    const played = await play([[call("b", "x")], "ok", "never asked for"], {
      messages: history,
      prompts: [note("a note first"), userMessage("and now?")],
      tools: [x],
      config: { ...config, getSteeringMessages: () => steering.shift() ?? queue.poll() },
    });
    expect(played.outcome).toBe("completed");
    expect(played.messages.map(({ role }) => role as string)).toEqual(["note", "user", "assistant", "toolResult", "note", "assistant"]);
    expect(outline(played.events).filter((line) => line.endsWith(" note"))).toEqual(
      Array(2).fill(["message_start note", "message_end note"]).flat(),
    );
    expect(played.messages[0]).toEqual(note("a note first"));
    expect(played.requests.map(({ messages }) => messages.map(({ role }) => role))).toEqual([
      ["user", "assistant", "toolResult", "user"],
      ["user", "assistant", "toolResult", "user", "assistant", "toolResult"],
    ]);
  });

  it("F97 a transcript whose converted end the model can answer is continued, whatever notes follow", async () => {
    const played = await play(["ok"], { messages: history, continuing: true });
    expect(played.requests[0]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult"]);
    expect(played.outcome).toBe("completed");
  });

  const answered = [userMessage("go"), answer({ content: [{ type: "text", text: "done" }] })];

  it.each([
    ["a prompt of custom messages only", { prompts: [note("alone")] }, /empty/],
    ["a continued transcript of custom messages only", { messages: [note("alone")], continuing: true }, /empty/],
    ["a convertToLlm that drops everything", { config: { convertToLlm: () => [] } }, /empty/],
    [
      "a continued transcript that ends in an assistant message and a note",
      { messages: [...answered, note("x")], continuing: true },
      /ends in an assistant message/,
    ],
    ["a prompt of custom messages after an answer", { messages: answered, prompts: [note("x")] }, /ends in an assistant message/],
  ])("F97 %s gives a clear error and no model call", async (_name, options, text) => {
    const played = await play(["never asked for"], options);
    expect(played.outcome).toBe("error");
    expect(played.requests).toEqual([]);
    expect(played.end.error?.message).toMatch(text);
    expect(played.messages[played.messages.length - 1]).toMatchObject({ role: "assistant", content: [], stopReason: "error" });
  });
});
