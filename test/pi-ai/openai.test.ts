import { LLMock } from "@copilotkit/aimock";
import * as earendil from "@earendil-works/pi-ai";
import * as mariozechner from "@mariozechner/pi-ai";
import type { StreamFn } from "turnloop";
import { testStreamFn } from "turnloop/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { type RawServer, rawServer } from "../adapters/helpers.js";
import { makeTool, outline, type RunOptions, run, textOf } from "../helpers.js";
import { bodies } from "./bodies.js";

type PiModel = mariozechner.Model<"openai-completions">;

function modelAt(baseUrl: string): PiModel {
  return {
    id: "gpt-test",
    name: "Test",
    api: "openai-completions",
    provider: "openai",
    baseUrl,
    reasoning: false,
    input: ["text", "image"],
    cost: { input: 1, output: 10, cacheRead: 0.5, cacheWrite: 2 },
    contextWindow: 100_000,
    maxTokens: 1000,
  };
}

// SPEC 2.3
describe.each([
  ["@mariozechner/pi-ai 0.73", mariozechner],
  ["@earendil-works/pi-ai 0.74", earendil],
])("%s's OpenAI provider", (_, { streamSimple }) => {
  let mock: LLMock;

  beforeEach(async () => {
    mock = new LLMock({ port: 0, chunkSize: 5 });
    await mock.start();
  });
  afterEach(() => mock.stop());

  const runAgainst = (options: RunOptions = {}, baseUrl = `${mock.url}/v1`) =>
    run(streamSimple, {
      ...options,
      config: { model: modelAt(baseUrl), apiKey: "key-0", streamOptions: { maxRetries: 0 }, ...options.config },
    });

  it("carries a tool round trip", async () => {
    const args = '{"a":2,"b":3}';
    mock.on(
      { userMessage: "go", hasToolResult: false },
      { content: "Looking.", toolCalls: [{ id: "call_1", name: "add", arguments: args }] },
    );
    mock.on({ hasToolResult: true }, { content: "It is 5." });
    const parameters = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
    const add = makeTool("add", (_id, { a, b }) => String(a + b), { parameters });
    const record = await runAgainst({ tools: [add], systemPrompt: "Be brief." });
    expect(record.outcome).toBe("completed");
    expect(outline(record.events).filter((line) => line.startsWith("tool_"))).toEqual([
      "tool_execution_start call_1",
      "tool_execution_end call_1",
    ]);
    expect(textOf(record.messages.at(-1))).toBe("It is 5.");
    const [first, second] = mock.getRequests().map(({ body }): any => body);
    expect(first).toMatchObject({
      model: "gpt-test",
      tools: [{ type: "function", function: { name: "add", description: "add", parameters } }],
    });
    expect(second.messages.slice(1)).toMatchObject([
      { role: "user", content: "go" },
      { role: "assistant", tool_calls: [{ id: "call_1", type: "function", function: { name: "add", arguments: args } }] },
      { role: "tool", tool_call_id: "call_1", content: "5" },
    ]);
  });

  it.each([401, 429, 500])("ends a run with outcome error for status %i", async (status) => {
    mock.nextRequestError(status, { message: "no luck", type: "some_error" });
    const { outcome, messages } = await runAgainst();
    expect([outcome, messages.length]).toEqual(["error", 2]);
    expect(messages[1]).toMatchObject({ stopReason: "error", content: [], errorMessage: expect.stringContaining("no luck") });
  });

  const servers: RawServer[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.close())));
  const answering = async (scenario: keyof typeof bodies) => {
    const server = await rawServer();
    servers.push(server);
    return { url: server.url, requests: server.requests, closed: server.answer(bodies[scenario]) };
  };

  it("sends the key of the loop, cancels its request on abort, and keeps the text", async () => {
    const controller = new AbortController();
    const { url, requests, closed } = await answering("hang");
    const onEvent: RunOptions["onEvent"] = (event) => {
      if (event.type === "message_update" && textOf(event.message).endsWith("blue.")) controller.abort();
    };
    const { outcome, messages } = await runAgainst({ signal: controller.signal, onEvent }, url);
    await closed;
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(["Bearer key-0"]);
    expect([outcome, textOf(messages[1])]).toEqual(["aborted", "The sea is wide, the sea is deep, the sea is blue."]);
  });

  // SPEC 13.3
  const speaking = async (scenario: keyof typeof bodies): Promise<StreamFn> => {
    const { url } = await answering(scenario);
    const options = { apiKey: "key-0", maxRetries: 0 };
    return (_model, context, given) => streamSimple(modelAt(url), context, { ...given, ...options });
  };
  testStreamFn("streamSimple", speaking, { test, expect, livePartials: true });
});
