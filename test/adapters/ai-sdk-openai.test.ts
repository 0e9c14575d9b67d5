import { createOpenAI } from "@ai-sdk/openai";
import { LLMock } from "@copilotkit/aimock";
import { type AssistantMessage, type Model, type StreamFn, withRetry } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { makeTool, outline, run, textOf } from "../helpers.js";
import { ask, calls, hi, priced, type RawServer, rawServer, sse, stop, text } from "./helpers.js";

const model: Model = { id: "gpt-5", provider: "openai" };
const add = makeTool("add", async (_id, { a, b }: any) => ({ content: [{ type: "text", text: String(a + b) }], details: 0 }), {
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
});
const apis = ["chat", "responses"] as const;

// SPEC 12.1, 12.2
describe.each(apis)("aiSdk with @ai-sdk/openai against a mock of OpenAI: %s", (api) => {
  let mock: LLMock;
  let streamFn: StreamFn;

  beforeEach(async () => {
    mock = new LLMock({ port: 0, chunkSize: 5 });
    await mock.start();
    streamFn = aiSdk(createOpenAI({ apiKey: "key-0", baseURL: `${mock.url}/v1` })[api]("gpt-5"));
  });
  afterEach(() => mock.stop());

  const received = (): any[] => mock.getRequests().map(({ body }) => body);

  it("streams text with usage and prices, and asks for its own model", async () => {
    mock.onMessage("hi", { content: "Hello there!", usage: { prompt_tokens: 100, completion_tokens: 20 } });
    const { types, message } = await ask(streamFn, { maxTokens: 9 }, hi, { ...priced, id: "a name of the host's" });
    expect(types).toEqual(["start", "text_start", "text_delta", "text_delta", "text_delta", "text_end", "done"]);
    expect(message).toMatchObject({ stopReason: "stop", model: "a name of the host's", content: [{ type: "text", text: "Hello there!" }] });
    expect(message.usage).toMatchObject({ output: 20, totalTokens: 120 });
    expect(message.usage.cost.output).toBeCloseTo(0.0002, 10);
    expect(received()).toMatchObject([{ model: "gpt-5", stream: true }]);
  });

  it("streams two parallel calls whose arguments come in pieces", async () => {
    const toolCalls = [
      { id: "call_a", name: "weather", arguments: '{"city":"Paris","days":[1,2]}' },
      { id: "call_b", name: "clock", arguments: '{"zone":"UTC"}' },
    ];
    mock.onMessage("hi", { toolCalls });
    const { message, events } = await ask(streamFn);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toMatchObject(toolCalls.map((call) => ({ type: "toolCall", ...call, arguments: JSON.parse(call.arguments) })));
    for (const [index, call] of toolCalls.entries()) {
      const own = events.flatMap((event) => (event.type === "toolcall_delta" && event.contentIndex === index ? [event.delta] : []));
      expect(own.length).toBeGreaterThan(2);
      expect(own.join("")).toBe(call.arguments);
    }
  });

  it.each([
    [429, {}, { kind: "rate_limit", retryable: true, retryAfterMs: 1000 }],
    [429, { code: "insufficient_quota" }, { kind: "rate_limit", retryable: false, retryAfterMs: 1000 }],
    [401, { code: "invalid_api_key" }, { kind: "auth", retryable: false }],
    [400, { code: "context_length_exceeded" }, { kind: "context_overflow", retryable: false }],
    [400, { message: "This model's maximum context length is 8192 tokens." }, { kind: "context_overflow", retryable: false }],
    [400, { code: "content_filter" }, { kind: "refusal", retryable: false }],
    [400, {}, { kind: "invalid_request", retryable: false }],
    [500, {}, { kind: "network", retryable: true }],
    [529, {}, { kind: "overloaded", retryable: true }],
  ])("maps status %i with %o, after one request", async (status, error, info) => {
    mock.nextRequestError(status, { message: "no luck", type: "some_error", ...error });
    const { message, types } = await ask(streamFn);
    expect(message.errorInfo).toEqual({ ...info, status });
    expect(message.errorMessage).toBe((error as { message?: string }).message ?? "no luck");
    expect([types, message.stopReason, received().length]).toEqual([["start", "error"], "error", 1]);
  });

  it("is asked again by withRetry after a 429", async () => {
    mock.onMessage("go", { content: "Now it works" });
    mock.nextRequestError(429, { message: "later" });
    const onRetry = vi.fn();
    const record = await run(withRetry(streamFn, { minDelayMs: 1, maxDelayMs: 2, onRetry }), { config: { model } });
    expect(textOf(record.messages.at(-1))).toBe("Now it works");
    expect(onRetry).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ info: expect.objectContaining({ status: 429 }) }));
  });

  it("carries a whole tool round trip through the loop", async () => {
    const toolCalls = [{ id: "call_1", name: "add", arguments: '{"a":2,"b":3}' }];
    mock.on({ userMessage: "go", hasToolResult: false }, { content: "Looking.", toolCalls });
    mock.on({ hasToolResult: true }, { content: "It is 5." });
    const record = await run(streamFn, { tools: [add], systemPrompt: "Be brief.", config: { model } });
    expect([record.outcome, textOf(record.messages.at(-1))]).toEqual(["completed", "It is 5."]);
    expect(outline(record.events).filter((line) => line.startsWith("tool_"))).toEqual([
      "tool_execution_start call_1",
      "tool_execution_end call_1",
    ]);
    // the mock shows every request in the shape of Chat Completions
    const [first, second] = received();
    expect(first.tools).toEqual([{ type: "function", function: { name: "add", description: "add", parameters: add.parameters } }]);
    expect(first.messages.map(({ content }: any) => content)).toEqual(["Be brief.", "go"]);
    expect(second.messages.at(-1)).toEqual({ role: "tool", tool_call_id: "call_1", content: "5" });
    const asked = { id: "call_1", type: "function", function: { name: "add", arguments: '{"a":2,"b":3}' } };
    expect(second.messages.flatMap((message: any) => message.tool_calls ?? [])).toEqual([asked]);
  });
});

// SPEC 12.1, 12.2
describe("aiSdk with @ai-sdk/openai over two turns, as the server sees it", () => {
  let server: RawServer;
  beforeEach(async () => {
    server = await rawServer();
  });
  afterEach(() => server.close());

  const image = { type: "image", data: "QUJD", mimeType: "image/png" } as const;
  const look = makeTool("look", async () => ({ content: [{ type: "text", text: "A sky." }, image], details: 0 }));
  const url = "data:image/png;base64,QUJD";

  it("Chat Completions: images of a result follow it", async () => {
    server.answer(
      (res) => void res.end(calls({ index: 0, id: "call_1", type: "function", function: { name: "look", arguments: '{"at":1}' } }) + stop),
      (res) => void res.end(text("Blue.") + stop),
    );
    const record = await run(aiSdk(createOpenAI({ apiKey: "k", baseURL: server.url }).chat("gpt-4.1")), {
      tools: [look],
      config: { model },
    });
    expect(textOf(record.messages.at(-1))).toBe("Blue.");
    expect(server.requests[1]?.body.messages).toEqual([
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_1", type: "function", function: { name: "look", arguments: '{"at":1}' } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "A sky." },
      {
        role: "user",
        content: [
          { type: "text", text: "Images in the result of look:" },
          { type: "image_url", image_url: { url } },
        ],
      },
    ]);
  });

  const item = (type: "added" | "done", output_index: number, fields: object) => ({
    type: `response.output_item.${type}`,
    output_index,
    item: fields,
  });
  const reasoned = sse(
    item("added", 0, { type: "reasoning", id: "rs_1", encrypted_content: "early" }),
    { type: "response.reasoning_summary_part.added", item_id: "rs_1", summary_index: 0 },
    { type: "response.reasoning_summary_text.delta", item_id: "rs_1", summary_index: 0, delta: "Look up." },
    { type: "response.reasoning_summary_part.done", item_id: "rs_1", summary_index: 0 },
    item("done", 0, { type: "reasoning", id: "rs_1", encrypted_content: "proof" }),
    item("added", 1, { type: "message", id: "msg_1" }),
    { type: "response.output_text.delta", item_id: "msg_1", delta: "Looking." },
    item("done", 1, { type: "message", id: "msg_1" }),
    item("added", 2, { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: "" }),
    { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 2, delta: '{"at":1}' },
    item("done", 2, { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: '{"at":1}', status: "completed" }),
    { type: "response.completed", response: { usage: { input_tokens: 1, output_tokens: 1 } } },
  );
  const result = {
    type: "function_call_output",
    call_id: "call_1",
    output: [
      { type: "input_text", text: "A sky." },
      { type: "input_image", image_url: url },
    ],
  };
  const called = { type: "function_call", call_id: "call_1", name: "look", arguments: '{"at":1}' };
  const go = { role: "user", content: [{ type: "input_text", text: "go" }] };

  it.each([
    [
      "proofs when it stores nothing",
      false,
      [
        { type: "reasoning", id: "rs_1", encrypted_content: "proof", summary: [{ type: "summary_text", text: "Look up." }] },
        { role: "assistant", content: [{ type: "output_text", text: "Looking." }], id: "msg_1" },
      ],
    ],
    [
      "references to what it stores",
      undefined,
      [
        { type: "item_reference", id: "rs_1" },
        { type: "item_reference", id: "msg_1" },
      ],
    ],
  ])("Responses: it gets %s", async (_, store, replayed) => {
    server.answer(
      (res) => void res.end(reasoned),
      (res) => void res.end(sse({ type: "response.completed", response: { usage: { input_tokens: 1, output_tokens: 1 } } })),
    );
    const streamFn = aiSdk(createOpenAI({ apiKey: "k", baseURL: server.url }).responses("gpt-5"));
    const streamOptions = store === undefined ? {} : { providerOptions: { openai: { store } } };
    const record = await run(streamFn, { tools: [look], config: { model, streamOptions } });
    expect(record.outcome).toBe("completed");
    expect((record.messages[1] as AssistantMessage).content.map(({ type }) => type)).toEqual(["thinking", "text", "toolCall"]);
    const input = server.requests[1]?.body.input;
    expect(input).toEqual([go, ...replayed, expect.objectContaining(called), result]);
  });
});
