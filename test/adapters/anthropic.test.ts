import { LLMock } from "@copilotkit/aimock";
import { type StreamFn, userMessage, withRetry } from "turnloop";
import { anthropicMessages } from "turnloop/anthropic";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { makeTool, outline, run, textOf } from "../helpers.js";
import { askClaude, begin, call, claude, end, text, thinking } from "./anthropic-helpers.js";
import { hi, quiet, rawServer } from "./helpers.js";

// SPEC 12.1, 12.2
describe("anthropicMessages against a mock of Anthropic", () => {
  let mock: LLMock;
  let streamFn: StreamFn;

  beforeEach(async () => {
    mock = new LLMock({ port: 0, chunkSize: 5, strict: true });
    await mock.start();
    streamFn = anthropicMessages({ ...quiet, baseURL: mock.url });
  });
  afterEach(() => mock.stop());

  it("streams thinking and text", async () => {
    mock.onMessage("hi", { content: "Hello there!", reasoning: "Let me think.", usage: { input_tokens: 9, output_tokens: 4 } });
    const { types, message } = await askClaude(streamFn);
    const shown = ["text_start", "text_delta", "text_delta", "text_delta", "text_end"];
    expect(types.filter((type) => !type.startsWith("thinking"))).toEqual(["start", ...shown, "done"]);
    expect(message).toMatchObject({
      stopReason: "stop",
      usage: { input: 9, output: 4, totalTokens: 13 },
      content: [
        { type: "thinking", thinking: "Let me think.", thinkingSignature: expect.stringMatching(/./) },
        { type: "text", text: "Hello there!" },
      ],
    });
  });

  it("names the api it speaks when the model does not", async () => {
    mock.onMessage("hi", { content: "x" });
    const { message } = await askClaude(streamFn, undefined, hi, { id: "m", provider: "p" });
    expect(message).toMatchObject({ api: "anthropic-messages", provider: "p", model: "m" });
  });

  it("streams two parallel calls whose arguments come in pieces", async () => {
    const toolCalls = [
      { id: "toolu_a", name: "weather", arguments: '{"city":"Paris","days":[1,2]}' },
      { id: "toolu_b", name: "clock", arguments: '{"zone":"UTC"}' },
    ];
    mock.onMessage("hi", { toolCalls });
    const { message, events } = await askClaude(streamFn);
    expect(message.stopReason).toBe("toolUse");
    expect(message.content).toEqual(toolCalls.map((asked) => ({ type: "toolCall", ...asked, arguments: JSON.parse(asked.arguments) })));
    const deltas = events.flatMap((event) => (event.type === "toolcall_delta" ? [event] : []));
    for (const [index, asked] of toolCalls.entries()) {
      const own = deltas.filter((event) => event.contentIndex === index);
      expect(own.length).toBeGreaterThan(2);
      expect(own.map(({ delta }) => delta).join("")).toBe(asked.arguments);
    }
  });

  it("says length when the answer was cut by the limit", async () => {
    mock.onMessage("hi", { content: "Once upon", finishReason: "length" });
    expect((await askClaude(streamFn)).message).toMatchObject({ stopReason: "length", content: [{ text: "Once upon" }] });
  });

  it("carries a tool round trip through the loop, with the thinking that the next request has to prove", async () => {
    const asked = { id: "toolu_1", name: "add", arguments: '{"a":2,"b":3}' };
    mock.on({ userMessage: "go", hasToolResult: false }, { reasoning: "Sum.", content: "Looking.", toolCalls: [asked] });
    mock.on({ hasToolResult: true }, { content: "It is 5." });
    const parameters = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
    const add = makeTool("add", async (_id, { a, b }: any) => String(a + b), { parameters });
    const config = { model: claude, streamOptions: { reasoning: "low" as const } };
    const record = await run(streamFn, { tools: [add], systemPrompt: "Be brief.", config });
    expect([record.outcome, textOf(record.messages.at(-1))]).toEqual(["completed", "It is 5."]);
    expect(outline(record.events).filter((line) => line.startsWith("tool_"))).toEqual([
      "tool_execution_start toolu_1",
      "tool_execution_end toolu_1",
    ]);
    expect(mock.getRequests()).toHaveLength(2);
  });

  it.each([429, 529])("is asked again by withRetry after a %i", async (status) => {
    mock.onMessage("go", { content: "Now it works" });
    mock.nextRequestError(status, { message: "later" });
    const onRetry = vi.fn();
    const record = await run(withRetry(streamFn, { minDelayMs: 1, maxDelayMs: 2, onRetry }), { config: { model: claude } });
    expect(textOf(record.messages.at(-1))).toBe("Now it works");
    expect(onRetry).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ info: expect.objectContaining({ status }) }));
    expect([record.outcome, record.messages.length, mock.getRequests().length]).toEqual(["completed", 2, 2]);
  });
});

// SPEC 12.2, 4.4
describe("anthropicMessages in the loop", () => {
  it("sends the whole turn back as the model wrote it, and the results before what steered", async () => {
    const server = await rawServer();
    server.answer(
      (res) =>
        void res.end(begin() + thinking(0, "sig", "Hm") + text(1, "Both.") + call(2, "t1", "ok") + call(3, "t2", "bad") + end("tool_use")),
      (res) => void res.end(begin() + text(0, "Done.") + end()),
    );
    const tools = [
      makeTool("ok", async () => "fine"),
      makeTool("bad", async () => {
        throw new Error("no");
      }),
    ];
    const steering = [[userMessage("hurry")]];
    const config = {
      model: claude,
      streamOptions: { reasoning: "high" as const, maxTokens: 4096 },
      getSteeringMessages: () => steering.shift() ?? [],
    };
    const record = await run(anthropicMessages({ ...quiet, baseURL: server.url, cache: false }), { tools, config });
    await server.close();
    expect([record.outcome, textOf(record.messages.at(-1))]).toEqual(["completed", "Done."]);
    const [first, second] = server.requests.map(({ body }) => body);
    const said = (words: string) => ({ type: "text", text: words });
    expect(second).toEqual({
      ...first,
      thinking: { type: "enabled", budget_tokens: 3072 },
      messages: [
        { role: "user", content: [said("go")] },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm", signature: "sig" },
            said("Both."),
            { type: "tool_use", id: "t1", name: "ok", input: {} },
            { type: "tool_use", id: "t2", name: "bad", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t1", content: [said("fine")] },
            { type: "tool_result", tool_use_id: "t2", content: [said("no")], is_error: true },
            said("hurry"),
          ],
        },
      ],
    });
  });
});

// SPEC 12.1
describe("anthropicMessages without what it needs", () => {
  afterEach(() => void vi.unstubAllEnvs());

  it("says that there is no key", async () => {
    for (const name of ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"]) vi.stubEnv(name, undefined);
    vi.stubEnv("ANTHROPIC_CONFIG_DIR", "/nowhere");
    const { message } = await askClaude(anthropicMessages({ baseURL: "http://127.0.0.1:9", logLevel: "off" }));
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "auth", retryable: false } });
  });
});
