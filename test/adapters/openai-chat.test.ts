import { LLMock } from "@copilotkit/aimock";
import { type StreamFn, withRetry } from "turnloop";
import { openaiChat } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { makeTool, outline, run, textOf } from "../helpers.js";
import { ask, hi, model, priced, quiet } from "./helpers.js";

// SPEC 12.1, 12.2
describe("openaiChat against a mock of OpenAI", () => {
  let mock: LLMock;
  let streamFn: StreamFn;

  beforeEach(async () => {
    mock = new LLMock({ port: 0, chunkSize: 5 });
    await mock.start();
    streamFn = openaiChat({ ...quiet, baseURL: `${mock.url}/v1` });
  });
  afterEach(() => mock.stop());

  const received = (): any[] => mock.getRequests().map(({ body }) => body);

  it("streams text, and counts and prices the usage of the last chunk", async () => {
    mock.onMessage("hi", {
      content: "Hello there!",
      usage: { prompt_tokens: 100, completion_tokens: 20, prompt_tokens_details: { cached_tokens: 60 } },
    });
    const { types, message } = await ask(streamFn, undefined, hi, priced);
    expect(types).toEqual(["start", "text_start", "text_delta", "text_delta", "text_delta", "text_end", "done"]);
    expect(message).toMatchObject({ stopReason: "stop", content: [{ type: "text", text: "Hello there!" }], model: "gpt-test" });
    const { cacheRead, input, output, totalTokens } = message.usage;
    expect(input + cacheRead).toBe(100);
    expect([output, totalTokens]).toEqual([20, 120]);
    expect(message.usage.cost.output).toBeCloseTo(0.0002, 10);
    expect(received()).toMatchObject([{ model: "gpt-test", stream: true, stream_options: { include_usage: true } }]);
  });

  it("names the api it speaks when the model does not", async () => {
    mock.onMessage("hi", { content: "x" });
    expect((await ask(streamFn, undefined, hi, { id: "m", provider: "p" })).message).toMatchObject({
      api: "openai-completions",
      model: "m",
    });
  });

  it("streams reasoning as thinking", async () => {
    mock.onMessage("hi", { content: "42", reasoning: "Let me think." });
    const { message } = await ask(streamFn);
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "Let me think." },
      { type: "text", text: "42" },
    ]);
  });

  it("streams two parallel calls whose arguments come in pieces", async () => {
    const toolCalls = [
      { id: "call_a", name: "weather", arguments: '{"city":"Paris","days":[1,2]}' },
      { id: "call_b", name: "clock", arguments: '{"zone":"UTC"}' },
    ];
    mock.onMessage("hi", { toolCalls });
    const { message, events } = await ask(streamFn);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toEqual(toolCalls.map((call) => ({ type: "toolCall", ...call, arguments: JSON.parse(call.arguments) })));
    const deltas = events.flatMap((event) => (event.type === "toolcall_delta" ? [event] : []));
    for (const [index, call] of toolCalls.entries()) {
      const own = deltas.filter((event) => event.contentIndex === index);
      expect(own.length).toBeGreaterThan(2);
      expect(own.map(({ delta }) => delta).join("")).toBe(call.arguments);
    }
  });

  it("says length when the answer was cut by the limit", async () => {
    mock.onMessage("hi", { content: "Once upon", finishReason: "length" });
    expect((await ask(streamFn)).message).toMatchObject({ stopReason: "length", content: [{ text: "Once upon" }] });
  });

  it.each([
    [429, {}, { kind: "rate_limit", retryable: true, retryAfterMs: 1000 }],
    [429, { code: "insufficient_quota" }, { kind: "rate_limit", retryable: false, retryAfterMs: 1000 }],
    [401, { code: "invalid_api_key" }, { kind: "auth", retryable: false }],
    [403, {}, { kind: "auth", retryable: false }],
    [400, { code: "context_length_exceeded" }, { kind: "context_overflow", retryable: false }],
    [400, { message: "This model's maximum context length is 8192 tokens." }, { kind: "context_overflow", retryable: false }],
    [400, { code: "content_filter" }, { kind: "refusal", retryable: false }],
    [400, {}, { kind: "invalid_request", retryable: false }],
    [404, {}, { kind: "invalid_request", retryable: false }],
    [422, {}, { kind: "invalid_request", retryable: false }],
    [408, {}, { kind: "timeout", retryable: true }],
    [500, {}, { kind: "network", retryable: true }],
    [500, { message: "The engine is currently overloaded" }, { kind: "overloaded", retryable: true }],
    [503, {}, { kind: "overloaded", retryable: true }],
    [529, {}, { kind: "overloaded", retryable: true }],
  ])("maps status %i with %o, after one request", async (status, error, info) => {
    mock.nextRequestError(status, { message: "no luck", type: "some_error", ...error });
    const { message, types } = await ask(streamFn);
    expect(message.errorInfo).toEqual({ ...info, status });
    expect(message.errorMessage).toContain((error as { message?: string }).message ?? "no luck");
    expect([types, message.stopReason, received().length]).toEqual([["start", "error"], "error", 1]);
  });

  it("carries a whole tool round trip through the loop", async () => {
    mock.on(
      { userMessage: "go", hasToolResult: false },
      { content: "Looking.", toolCalls: [{ id: "call_1", name: "add", arguments: '{"a":2,"b":3}' }] },
    );
    mock.on({ hasToolResult: true }, { content: "It is 5." });
    const parameters = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
    const add = makeTool("add", async (_id, { a, b }: any) => ({ content: [{ type: "text", text: String(a + b) }], details: 0 }), {
      parameters,
    });
    const record = await run(streamFn, { tools: [add], systemPrompt: "Be brief.", config: { model } });
    expect(record.outcome).toBe("completed");
    expect(outline(record.events).filter((line) => line.startsWith("tool_"))).toEqual([
      "tool_execution_start call_1",
      "tool_execution_end call_1",
    ]);
    expect(textOf(record.messages.at(-1))).toBe("It is 5.");
    const [first, second] = received();
    const opening = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "go" },
    ];
    expect(first.messages).toEqual(opening);
    expect(first.tools).toEqual([{ type: "function", function: { name: "add", description: "add", parameters } }]);
    const asked = { id: "call_1", type: "function", function: { name: "add", arguments: '{"a":2,"b":3}' } };
    expect(second.messages).toEqual([
      ...opening,
      { role: "assistant", content: "Looking.", tool_calls: [asked] },
      { role: "tool", tool_call_id: "call_1", content: "5" },
    ]);
  });

  it.each([429, 529])("is asked again by withRetry after a %i", async (status) => {
    mock.onMessage("go", { content: "Now it works" });
    mock.nextRequestError(status, { message: "later" });
    const onRetry = vi.fn();
    const record = await run(withRetry(streamFn, { minDelayMs: 1, maxDelayMs: 2, onRetry }), { config: { model } });
    expect(textOf(record.messages.at(-1))).toBe("Now it works");
    expect(onRetry).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ info: expect.objectContaining({ status }) }));
    expect([record.outcome, record.messages.length, received().length]).toEqual(["completed", 2, 2]);
  });
});
describe("openaiChat without what it needs", () => {
  afterEach(() => void vi.unstubAllEnvs());

  it("says that there is no key", async () => {
    vi.stubEnv("OPENAI_API_KEY", undefined);
    const { message } = await ask(openaiChat({ baseURL: "http://127.0.0.1:9" }));
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "auth", retryable: false } });
  });
});
