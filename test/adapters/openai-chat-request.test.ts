import OpenAI, { AzureOpenAI } from "openai";
import type { AssistantMessage, LlmContext, Message, Model, StreamFn, StreamOptions, ToolCall } from "turnloop";
import { openaiChat } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ask, chunk, hi, model, quiet, type RawServer, rawServer, sse, stop, text } from "./helpers.js";

// SPEC 12.1, 12.2
describe("openaiChat as a server sees it", () => {
  let server: RawServer;
  let streamFn: StreamFn;

  beforeEach(async () => {
    server = await rawServer();
    streamFn = openaiChat({ ...quiet, baseURL: server.url });
  });
  afterEach(() => server.close());

  it("uses the key and headers of each call", async () => {
    const answer = (res: { end(body: string): unknown }): void => void res.end(text("ok") + stop);
    server.answer(answer, answer, answer, answer, answer);
    const own = new OpenAI({ apiKey: "own", baseURL: server.url, logLevel: "off" });
    await Promise.all([ask(streamFn, { apiKey: "key-1" }), ask(streamFn, { apiKey: "key-2", headers: { "x-team": "blue" } })]);
    await ask(streamFn);
    await ask(openaiChat({ client: own }), { apiKey: "key-3" });
    await ask(openaiChat({ client: own }));
    const sent = server.requests.map(({ headers }) => `${headers.authorization} ${headers["x-team"] ?? ""}`.trim());
    expect(sent.slice(0, 2).sort()).toEqual(["Bearer key-1", "Bearer key-2 blue"]);
    expect(sent.slice(2)).toEqual(["Bearer key-0", "Bearer key-3", "Bearer own"]);
  });

  it("uses the key of each call with a client for Azure, at the same deployment and version", async () => {
    const azure = { apiVersion: "2025-01-01", baseURL: server.url, deployment: "mine", logLevel: "off" } as const;
    const withToken = new AzureOpenAI({ ...azure, azureADTokenProvider: async () => "token" });
    for (const client of [new AzureOpenAI({ ...azure, apiKey: "own" }), withToken]) {
      server.answer((res) => void res.end(text("ok") + stop));
      expect((await ask(openaiChat({ client }), { apiKey: "key-1" })).message.errorMessage).toBeUndefined();
      const { url, headers } = server.requests.at(-1)!;
      expect([url, headers["api-key"]]).toEqual(["/v1/deployments/mine/chat/completions?api-version=2025-01-01", "key-1"]);
    }
  });

  it("turns off the retries of a client of the host's own", async () => {
    server.answer((res) => void res.writeHead(503).end());
    const client = new OpenAI({ apiKey: "own", baseURL: server.url, maxRetries: 5, logLevel: "off" });
    expect((await ask(openaiChat({ client }), { apiKey: "k" })).message.errorInfo?.kind).toBe("overloaded");
    expect(server.requests).toHaveLength(1);
  });

  async function sent(context: Partial<LlmContext>, options?: StreamOptions, to = model): Promise<any> {
    server.answer((res) => void res.end(text("ok") + stop));
    await ask(streamFn, options, { ...hi, ...context }, to);
    return server.requests.at(-1)?.body;
  }

  it("maps options, and passes on those it does not know", async () => {
    const tools = [{ name: "t", description: "d", parameters: { type: "object" } }];
    const common = { apiKey: "k", sessionId: "s", maxTokens: 9, temperature: 0, reasoning: "low", seed: 7, top_p: 0.5 } as const;
    const { messages, ...body } = await sent({ tools }, { ...common, toolChoice: { name: "t" } });
    expect(body).toEqual({
      model: "gpt-test",
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 9,
      temperature: 0,
      reasoning_effort: "low",
      seed: 7,
      top_p: 0.5,
      tool_choice: { type: "function", function: { name: "t" } },
      tools: [{ type: "function", function: { ...tools[0], parameters: { type: "object", properties: {} } } }],
    });
    for (const toolChoice of ["auto", "none", "required"] as const)
      expect((await sent({ tools }, { toolChoice })).tool_choice).toBe(toolChoice);
    expect(Object.keys(await sent({ tools: [] }, { toolChoice: "required", stream_options: undefined })).sort()).toEqual([
      "messages",
      "model",
      "stream",
    ]);
  });

  it.each([
    ["https://api.openai.com/v1", "max_completion_tokens"],
    ["https://me.openai.azure.com/openai", "max_completion_tokens"],
    ["http://localhost:11434/v1", "max_tokens"],
    ["https://openai.com.example.org/v1", "max_tokens"],
  ])("asks %s for %s", async (baseURL, field) => {
    const fetch = vi.fn(async (_url: unknown, _init?: RequestInit) => new Response(text("ok") + stop));
    await ask(openaiChat({ ...quiet, baseURL, fetch }), { maxTokens: 5 });
    expect(JSON.parse(String(fetch.mock.calls[0]?.[1]?.body))).toMatchObject({ [field]: 5 });
  });

  const assistant = (content: AssistantMessage["content"], from = model): AssistantMessage => ({
    role: "assistant",
    content,
    api: from.api ?? "",
    provider: from.provider,
    model: from.id,
    stopReason: "stop",
    timestamp: 1,
    usage: {
      input: 0,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 0,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
  });
  const result = (toolCallId: string, content: (Message & { role: "toolResult" })["content"]): Message => ({
    role: "toolResult",
    toolCallId,
    toolName: "shot",
    content,
    isError: false,
    timestamp: 1,
  });
  const image = { type: "image", data: "QUJD", mimeType: "image/png" } as const;
  const url = { type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } };
  const said = (value: string) => ({ type: "text", text: value }) as const;

  it("sends images as data URLs, those of tool results after the whole batch, and leaves out what is empty", async () => {
    const call = (id: string): ToolCall => ({ type: "toolCall", id, name: "shot", arguments: {} });
    const { messages } = await sent({
      messages: [
        { role: "user", content: [said("look"), said(""), image], timestamp: 1 },
        assistant([said("")]),
        assistant([said("Ta"), said("king."), call("1"), call("2")]),
        result("1", [said("done"), image]),
        result("2", []),
        result("lone", [said("nobody asked")]),
        { role: "user", content: [said("")], timestamp: 1 },
        { role: "user", content: [said("and \ud800?")], timestamp: 1 },
      ],
    });
    const wire = (id: string) => ({ id, type: "function", function: { name: "shot", arguments: "{}" } });
    expect(messages).toEqual([
      { role: "user", content: [said("look"), url] },
      { role: "assistant", content: "Taking.", tool_calls: [wire("1"), wire("2")] },
      { role: "tool", tool_call_id: "1", content: "done" },
      { role: "tool", tool_call_id: "2", content: "(no output)" },
      { role: "user", content: [said("Images in the result of shot:"), url] },
      { role: "user", content: "and \ufffd?" },
    ]);
  });

  it("sends ids that are valid, at most 40 long, unique, and paired as they were", async () => {
    const long = "fc|".repeat(30);
    const ids = ["same", "same", long, `${long}x`, "", "same"];
    const turns = ids.flatMap((id) => [assistant([{ type: "toolCall", id, name: "shot", arguments: {} }]), result(id, [said("r")])]);
    const { messages } = await sent({ messages: [...hi.messages, ...turns] });
    const wire = messages.flatMap((message: any) => message.tool_calls?.map(({ id }: any) => id) ?? []);
    expect(messages.flatMap((message: any) => message.tool_call_id ?? [])).toEqual(wire);
    expect(wire).toHaveLength(ids.length);
    expect(new Set(wire).size).toBe(ids.length);
    for (const id of wire) expect(id).toMatch(/^[\w-]{1,40}$/);
    expect(wire[0]).toBe("same");
  });

  it("gives reasoning back to the provider that wrote it, in the field it came in, and to no other", async () => {
    const thought = (thinkingSignature: string, from?: Model) =>
      assistant([{ type: "thinking", thinking: "Hm", thinkingSignature }, said("a")], from);
    const from = [
      thought("reasoning_content"),
      thought("reasoning"),
      thought("sig"),
      thought("reasoning", { ...model, api: "x" }),
      thought("reasoning", { ...model, provider: "x" }),
    ];
    const { messages } = await sent({ messages: [...hi.messages, ...from, ...hi.messages] });
    const plain = { role: "assistant", content: "a" };
    expect(messages.slice(1, -1)).toEqual([{ ...plain, reasoning_content: "Hm" }, { ...plain, reasoning: "Hm" }, plain, plain, plain]);
    const own = { id: "m", provider: "openai" };
    const again = await sent({ messages: [...hi.messages, ...from.slice(0, 1), ...hi.messages] }, undefined, own);
    expect(again.messages[1]).toEqual({ ...plain, reasoning_content: "Hm" });
  });

  it("sends the declared tools behind those of the host, and only well-formed text", async () => {
    const own = { type: "web_search" };
    const declared = { name: "t", description: "d\udc00", parameters: {} };
    const body = await sent({ systemPrompt: "Be\ud800.", tools: [declared] }, { tools: [own], toolChoice: "required" });
    expect(body.tools).toEqual([
      own,
      { type: "function", function: { ...declared, description: "d\ufffd", parameters: { type: "object", properties: {} } } },
    ]);
    expect([body.tool_choice, body.messages[0].content]).toEqual(["required", "Be\ufffd."]);
    expect(await sent({}, { tools: [own], toolChoice: "none" })).toMatchObject({ tools: [own], tool_choice: "none" });
  });

  it("sends names that a model made up as providers accept them, and declared ones as they are", async () => {
    const names = ["my.tool", "functions.shot", "", "ä b", "n".repeat(70)];
    const content = names.map((name, n): ToolCall => ({ type: "toolCall", id: `c${n}`, name, arguments: {} }));
    const tools = [{ name: "my.tool", description: "d", parameters: {} }];
    const { messages } = await sent({ tools, messages: [...hi.messages, assistant(content)] });
    const sentNames = messages[1].tool_calls.map((call: any) => call.function.name);
    expect(sentNames).toEqual(["my.tool", "functions_shot", "unnamed", "__b", "n".repeat(64)]);
  });

  it.each([
    ["https://api.mistral.ai/v1", "openai"],
    ["http://localhost:8000/v1", "mistral"],
  ])("sends ids of nine letters and digits, the only ones Mistral takes, to %s of provider %s", async (baseURL, provider) => {
    const fetch = vi.fn(async (_url: unknown, _init?: RequestInit) => new Response(text("ok") + stop));
    const ids = ["abcDEF123", "call_1", "abcDEF123", "000000001", ""];
    const batches = ids.flatMap((id) => [assistant([{ type: "toolCall", id, name: "shot", arguments: {} }]), result(id, [said("r")])]);
    for (const messages of [batches.slice(0, 6), batches]) {
      await ask(openaiChat({ ...quiet, baseURL, fetch }), {}, { messages: [...hi.messages, ...messages] }, { ...model, provider });
    }
    const [early, late] = fetch.mock.calls.map(([, init]) => JSON.parse(String(init?.body)).messages);
    const asked = late.flatMap(({ tool_calls = [] }: any) => tool_calls.map(({ id }: any) => id));
    expect(asked).toEqual(["abcDEF123", "000000001", "000000002", "000000003", "000000004"]);
    expect(late.flatMap(({ tool_call_id = [] }: any) => tool_call_id)).toEqual(asked);
    expect(late.slice(0, early.length)).toEqual(early);
  });

  it("takes null for an option that is not given", async () => {
    const none = { toolChoice: null, reasoning: null } as unknown as StreamOptions;
    const body = await sent({ tools: [{ name: "t", description: "d", parameters: {} }] }, none);
    expect(Object.keys(body).sort()).toEqual(["messages", "model", "stream", "stream_options", "tools"]);
  });

  it("gives back what a server sent beside a call, to the server that did", async () => {
    const extra_content = { google: { thought_signature: "abc" } };
    const call = { index: 0, id: "c", function: { name: "shot", arguments: "{}" }, extra_content };
    server.answer((res) => void res.end(sse(chunk({ tool_calls: [call] }, "tool_calls"))));
    const { message } = await ask(streamFn);
    const messages = [...hi.messages, message as AssistantMessage, result("c", [])];
    expect((await sent({ messages })).messages[1].tool_calls[0]).toMatchObject({ id: "c", extra_content });
    const other = await sent({ messages }, undefined, { ...model, provider: "other" });
    expect(other.messages[1].tool_calls[0]).not.toHaveProperty("extra_content");
  });
});
