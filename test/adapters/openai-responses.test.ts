import { LLMock } from "@copilotkit/aimock";
import { type StreamFn, withRetry } from "turnloop";
import { openaiResponses } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { makeTool, run, textOf } from "../helpers.js";
import { ask, hi, quiet } from "./helpers.js";

const model = { id: "gpt-5-mini", provider: "openai", api: "openai-responses" };

// SPEC 12.1, 12.2
describe("openaiResponses against a mock of OpenAI", () => {
  let mock: LLMock;
  let streamFn: StreamFn;
  let received: any[];

  beforeEach(async () => {
    received = [];
    mock = new LLMock({ port: 0, chunkSize: 5 });
    await mock.start();
    // the mock keeps requests in the form of the other API
    const seen: typeof fetch = (url, init) => {
      received.push(JSON.parse(String(init?.body)));
      return fetch(url, init);
    };
    streamFn = openaiResponses({ ...quiet, baseURL: `${mock.url}/v1`, fetch: seen });
  });
  afterEach(() => mock.stop());

  it("streams reasoning and text, and names the api it speaks when the model does not", async () => {
    mock.onMessage("hi", { content: "Hello there!", reasoning: "A greeting.", usage: { input_tokens: 100, output_tokens: 20 } });
    const { message } = await ask(streamFn, { reasoning: "low" }, hi, { id: "gpt-5-mini", provider: "openai" });
    expect(message).toMatchObject({ stopReason: "stop", api: "openai-responses", usage: { input: 100, output: 20, totalTokens: 120 } });
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "A greeting.", thinkingSignature: expect.stringContaining("encrypted_content") },
      { type: "text", text: "Hello there!" },
    ]);
  });

  it("carries a whole tool round trip through the loop, reasoning included", async () => {
    const toolCalls = [
      { id: "call_1", name: "add", arguments: '{"a":2,"b":3}' },
      { id: "call_2", name: "add", arguments: '{"a":1,"b":1}' },
    ];
    mock.on({ userMessage: "go", hasToolResult: false }, { toolCalls, reasoning: "I must add." });
    mock.on({ hasToolResult: true }, { content: "5 and 2." });
    const parameters = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
    const sum = async (_id: string, { a, b }: any) => ({ content: [{ type: "text" as const, text: String(a + b) }], details: 0 });
    const record = await run(streamFn, { tools: [makeTool("add", sum, { parameters })], systemPrompt: "Be brief.", config: { model } });
    expect([record.outcome, textOf(record.messages.at(-1))]).toEqual(["completed", "5 and 2."]);
    const written = record.messages[1] as { content: { thinkingSignature: string }[] };
    expect(received[1].input).toEqual([
      { role: "user", content: "go" },
      JSON.parse(written.content[0]!.thinkingSignature),
      ...toolCalls.map(({ id, name, arguments: args }) => ({ type: "function_call", call_id: id, name, arguments: args })),
      { type: "function_call_output", call_id: "call_1", output: "5" },
      { type: "function_call_output", call_id: "call_2", output: "2" },
    ]);
  });

  it.each([
    [429, {}, { kind: "rate_limit", retryable: true, retryAfterMs: 1000 }],
    [401, { code: "invalid_api_key" }, { kind: "auth", retryable: false }],
    [400, { code: "context_length_exceeded" }, { kind: "context_overflow", retryable: false }],
    [500, {}, { kind: "network", retryable: true }],
    [529, {}, { kind: "overloaded", retryable: true }],
  ])("maps status %i with %o, after one request", async (status, error, info) => {
    mock.nextRequestError(status, { message: "no luck", type: "some_error", ...error });
    const { message, types } = await ask(streamFn, undefined, hi, model);
    expect(message.errorInfo).toEqual({ ...info, status });
    expect([types, message.stopReason, mock.getRequests().length]).toEqual([["start", "error"], "error", 1]);
  });

  it("is asked again by withRetry after a 529", async () => {
    mock.onMessage("go", { content: "Now it works" });
    mock.nextRequestError(529, { message: "later" });
    const onRetry = vi.fn();
    const record = await run(withRetry(streamFn, { minDelayMs: 1, maxDelayMs: 2, onRetry }), { config: { model } });
    expect([textOf(record.messages.at(-1)), onRetry.mock.calls.length]).toEqual(["Now it works", 1]);
  });
});
