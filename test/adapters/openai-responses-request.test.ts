import OpenAI from "openai";
import {
  type AssistantMessage,
  emptyUsage,
  type LlmContext,
  type Message,
  type Model,
  type StreamFn,
  type StreamOptions,
  type ToolCall,
  toLlmMessages,
} from "turnloop";
import { openaiResponses } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, hi, quiet, type RawServer, rawServer } from "./helpers.js";
import { responsesModel, responsesWire } from "./openai-wires.js";

const whole = responsesWire.text("ok") + responsesWire.last;
const image = { type: "image", data: "QUJD", mimeType: "image/png" } as const;
const picture = { type: "input_image", detail: "auto", image_url: "data:image/png;base64,QUJD" };
const said = (text: string, textSignature?: string) => ({ type: "text", text, ...(textSignature ? { textSignature } : {}) }) as const;
const input = (text: string) => ({ type: "input_text", text });
const user = (content: (Message & { role: "user" })["content"]): Message => ({ role: "user", content, timestamp: 1 });
const call = (id: string): ToolCall => ({ type: "toolCall", id, name: "shot", arguments: { n: 1 } });
const assistant = (content: AssistantMessage["content"], from: Model = responsesModel): Message => ({
  role: "assistant",
  content,
  api: from.api ?? "openai-responses",
  provider: from.provider,
  model: from.id,
  stopReason: "stop",
  timestamp: 1,
  usage: emptyUsage(),
});
const result = (toolCallId: string, content: (Message & { role: "toolResult" })["content"]): Message => ({
  role: "toolResult",
  toolCallId,
  toolName: "shot",
  content,
  isError: false,
  timestamp: 1,
});
const sealed = { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm" }], encrypted_content: "sealed" };
const thought = (item: object | string, thinking = ""): AssistantMessage["content"][number] => ({
  type: "thinking",
  thinking,
  thinkingSignature: typeof item === "string" ? item : JSON.stringify(item),
});

// SPEC 12.1, 12.2
describe("openaiResponses as a server sees it", () => {
  let server: RawServer;
  let streamFn: StreamFn;

  beforeEach(async () => {
    server = await rawServer();
    streamFn = openaiResponses({ ...quiet, baseURL: server.url });
  });
  afterEach(() => server.close());

  async function sent(context: Partial<LlmContext>, options?: StreamOptions, to = responsesModel): Promise<any> {
    server.answer((res) => void res.end(whole));
    await ask(streamFn, options, { ...hi, ...context }, to);
    return server.requests.at(-1)?.body;
  }

  it("sends what every request has, and no more", async () => {
    expect(await sent({})).toEqual({
      model: "gpt-5-test",
      input: [{ role: "user", content: "hi" }],
      stream: true,
      store: false,
      include: ["reasoning.encrypted_content"],
    });
    expect(server.requests[0]).toMatchObject({ url: "/v1/responses", headers: { authorization: "Bearer key-0" } });
  });

  it("maps options, and passes on those it does not know", async () => {
    const own = { type: "web_search" };
    const declared = { name: "t", description: "d", parameters: { type: "object" } };
    const common = { apiKey: "k", sessionId: "s", maxTokens: 9, temperature: 0, reasoning: "low", toolChoice: { name: "t" } } as const;
    const context = { systemPrompt: "Be\ud800.", tools: [declared] };
    const { input: _, ...body } = await sent(context, { ...common, tools: [own], text: { verbosity: "low" }, store: true, include: [] });
    expect(body).toEqual({
      model: "gpt-5-test",
      stream: true,
      store: true,
      include: [],
      instructions: "Be\ufffd.",
      max_output_tokens: 9,
      temperature: 0,
      reasoning: { effort: "low", summary: "auto" },
      text: { verbosity: "low" },
      tool_choice: { type: "function", name: "t" },
      tools: [own, { type: "function", ...declared, parameters: { type: "object", properties: {} }, strict: false }],
    });
    for (const toolChoice of ["auto", "none", "required"] as const)
      expect((await sent({ tools: [declared] }, { toolChoice })).tool_choice).toBe(toolChoice);
    expect(await sent({ tools: [] }, { toolChoice: "required" })).not.toHaveProperty("tool_choice");
  });

  it.each([
    ["gpt-5-mini", true],
    ["o4-mini", true],
    ["my-deployment", true],
    ["gpt-4.1-mini", false],
    ["openai/gpt-4o", false],
    ["gpt-5-chat-latest", false],
  ])("asks %s for encrypted reasoning: %s", async (id, asked) => {
    expect("include" in (await sent({}, undefined, { ...responsesModel, id }))).toBe(asked);
  });

  it("uses the key, headers and client of each call, without the client's retries", async () => {
    const client = new OpenAI({ apiKey: "own", baseURL: server.url, maxRetries: 5, logLevel: "off" });
    server.answer(
      (res) => void res.end(whole),
      (res) => void res.writeHead(503).end(),
    );
    await ask(openaiResponses({ client }), { apiKey: "key-1", headers: { "x-team": "blue" } });
    expect((await ask(openaiResponses({ client }))).message.errorInfo?.kind).toBe("overloaded");
    expect(server.requests.map(({ headers }) => [headers.authorization, headers["x-team"]])).toEqual([
      ["Bearer key-1", "blue"],
      ["Bearer own", undefined],
    ]);
  });

  it("sends images of users and of results, and leaves out what is empty", async () => {
    const { input: items } = await sent({
      messages: [
        user([said("look"), said(""), image]),
        assistant([said("")]),
        assistant([said("Taking."), call("1"), call("2"), call("3")]),
        result("1", [said("done"), said(""), image]),
        result("2", []),
        result("3", [said("a"), said("b")]),
        result("lone", [said("nobody asked")]),
        user([said("")]),
        user(""),
        user("and \ud800?"),
      ],
    });
    const wire = (call_id: string) => ({ type: "function_call", call_id, name: "shot", arguments: '{"n":1}' });
    const output = (call_id: string, output: unknown) => ({ type: "function_call_output", call_id, output });
    expect(items).toEqual([
      { role: "user", content: [input("look"), picture] },
      { role: "assistant", content: "Taking." },
      wire("1"),
      wire("2"),
      wire("3"),
      output("1", [input("done"), picture]),
      output("2", "(no output)"),
      output("3", "a\nb"),
      { role: "user", content: "and \ufffd?" },
    ]);
  });

  it("sends ids that are valid, at most 64 long, unique, and paired as they were", async () => {
    const long = "call|fc_".repeat(20);
    const ids = ["same", "same", long, `${long}x`, "", "same"];
    const turns = ids.flatMap((id) => [assistant([call(id)]), result(id, [said("r")])]);
    const { input: items } = await sent({ messages: [...hi.messages, ...turns] });
    const of = (type: string) => items.filter((item: any) => item.type === type).map((item: any) => item.call_id);
    const wire = of("function_call");
    expect(of("function_call_output")).toEqual(wire);
    expect(new Set(wire).size).toBe(ids.length);
    for (const id of wire) expect(id).toMatch(/^[\w-]{1,64}$/);
    expect([wire[0], wire[2].length]).toEqual(["same", 64]);
  });

  it("gives reasoning back, in its place, to the api and provider that wrote it and to no other", async () => {
    const silent = { ...sealed, id: "rs_2", summary: [] };
    const open = { type: "reasoning", id: "rs_3", summary: [], content: [{ type: "reasoning_text", text: "Aloud" }] };
    const content = [
      thought(sealed, "Hm"),
      said("a", '{"phase":"commentary"}'),
      thought(silent),
      call("1"),
      thought({ ...open, status: "done" }),
      said("b", "{"),
    ];
    const messages = toLlmMessages([...hi.messages, assistant(content), result("1", [said("r")])]);
    const { input: items } = await sent({ messages });
    const wire = { type: "function_call", call_id: "1", name: "shot", arguments: '{"n":1}' };
    const [a, b] = ["a", "b"].map((text) => ({ role: "assistant", content: text }));
    expect(items.slice(1, -1)).toEqual([sealed, { ...a, phase: "commentary" }, silent, wire, open, b]);
    for (const other of [
      { ...responsesModel, provider: "azure" },
      { ...responsesModel, api: "other" },
    ])
      expect((await sent({ messages }, undefined, other)).input.slice(1, -1)).toEqual([a, wire, b]);
    const unnamed = { id: "gpt-5-test", provider: "openai" };
    expect((await sent({ messages }, undefined, unnamed)).input[1]).toEqual(sealed);
  });

  it.each([
    ["is of another API", "sig"],
    ["is no object", "[1]"],
    ["is of another kind", { ...sealed, type: "message" }],
    ["has no id", { ...sealed, id: 5 }],
    ["has no content, for nothing is stored", { ...sealed, encrypted_content: null }],
  ])("leaves out reasoning whose signature %s", async (_, item) => {
    const { input: items } = await sent({ messages: [...hi.messages, assistant([thought(item), said("a")]), ...hi.messages] });
    expect(items[1]).toEqual({ role: "assistant", content: "a" });
  });

  it("leaves out reasoning that nothing follows: the API refuses it", async () => {
    const messages = [
      ...hi.messages,
      assistant([thought(sealed)]),
      ...hi.messages,
      assistant([said("a"), thought(sealed), said("")]),
      ...hi.messages,
    ];
    const { input: items } = await sent({ messages });
    expect(items.map((item: any) => item.content)).toEqual(["hi", "hi", "a", "hi"]);
  });
});
