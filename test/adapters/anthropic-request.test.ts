import Anthropic from "@anthropic-ai/sdk";
import {
  type AssistantMessage,
  emptyUsage,
  type LlmContext,
  type Message,
  type Model,
  type StreamFn,
  type StreamOptions,
  type ToolCall,
  userMessage,
} from "turnloop";
import { anthropicMessages } from "turnloop/anthropic";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { askClaude, claude, ok } from "./anthropic-helpers.js";
import { hi, quiet, type RawServer, rawServer } from "./helpers.js";

let server: RawServer;
let streamFn: StreamFn;
let plain: StreamFn;

beforeEach(async () => {
  server = await rawServer();
  streamFn = anthropicMessages({ ...quiet, baseURL: server.url });
  plain = anthropicMessages({ ...quiet, baseURL: server.url, cache: false });
});
afterEach(() => server.close());

/** The body of a request, without cache marks unless `from` says otherwise. */
async function sent(context: Partial<LlmContext>, options?: StreamOptions, to = claude, from = plain): Promise<any> {
  server.answer((res) => void res.end(ok));
  await askClaude(from, options, { ...hi, ...context }, to);
  return server.requests.at(-1)?.body;
}

const tools = [{ name: "t", description: "d", parameters: { type: "object", properties: { a: { type: "number" } } } }];
const said = (text: string) => ({ type: "text", text }) as const;
const image = { type: "image", data: "QUJD", mimeType: "image/png" } as const;
const picture = { type: "image", source: { type: "base64", media_type: "image/png", data: "QUJD" } };
const call = (id: string): ToolCall => ({ type: "toolCall", id, name: "shot", arguments: { n: 1 } });
const use = (id: string) => ({ type: "tool_use", id, name: "shot", input: { n: 1 } });

function assistant(content: AssistantMessage["content"], more: Partial<AssistantMessage> = {}, from: Model = claude): AssistantMessage {
  const { api = "", provider, id } = from;
  return { role: "assistant", content, api, provider, model: id, stopReason: "stop", timestamp: 1, usage: emptyUsage(), ...more };
}

function result(toolCallId: string, content: (Message & { role: "toolResult" })["content"], isError = false): Message {
  return { role: "toolResult", toolCallId, toolName: "shot", content, isError, timestamp: 1 };
}

// SPEC 12.1
describe("anthropicMessages and credentials", () => {
  it("uses the key and headers of each call, in place of any other credential", async () => {
    server.answer(...Array.from({ length: 7 }, () => (res: { end(body: string): unknown }) => void res.end(ok)));
    const own = new Anthropic({ apiKey: "own", baseURL: server.url, logLevel: "off" });
    const token = anthropicMessages({ authToken: "token", logLevel: "off", baseURL: server.url });
    await Promise.all([askClaude(streamFn, { apiKey: "key-1" }), askClaude(streamFn, { apiKey: "key-2", headers: { "x-team": "blue" } })]);
    for (const from of [streamFn, token]) await askClaude(from);
    await askClaude(token, { apiKey: "key-3" });
    await askClaude(anthropicMessages({ client: own }), { apiKey: "key-4" });
    await askClaude(anthropicMessages({ client: own }));
    const keys = server.requests.map(({ headers }) => `${headers.authorization} ${headers["x-team"] ?? ""}`.trim());
    expect(keys.slice(0, 2).sort()).toEqual(["Bearer key-1", "Bearer key-2 blue"]);
    expect(keys.slice(2)).toEqual(["key-0", "token", "key-3", "key-4", "own"].map((key) => `Bearer ${key}`));
  });

  it("turns off the retries of a client of the host's own", async () => {
    server.answer((res) => void res.writeHead(529).end());
    const client = new Anthropic({ apiKey: "own", baseURL: server.url, maxRetries: 5, logLevel: "off" });
    expect((await askClaude(anthropicMessages({ client }), { apiKey: "k" })).message.errorInfo?.kind).toBe("overloaded");
    expect(server.requests).toHaveLength(1);
  });
});

// SPEC 12.2
describe("anthropicMessages mapping options", () => {
  it("maps what every StreamFn knows, and passes on the rest", async () => {
    const common = {
      apiKey: "k",
      sessionId: "s",
      maxTokens: 9,
      temperature: 0,
      stop_sequences: ["END"],
      top_p: 0.5,
      metadata: { user_id: "u" },
    };
    expect(await sent({ tools, systemPrompt: "Be brief." }, { ...common, toolChoice: { name: "t" } })).toEqual({
      model: "claude-test",
      stream: true,
      max_tokens: 9,
      temperature: 0,
      stop_sequences: ["END"],
      top_p: 0.5,
      metadata: { user_id: "u" },
      system: [said("Be brief.")],
      messages: [{ role: "user", content: [said("hi")] }],
      tools: [{ name: "t", description: "d", input_schema: tools[0]?.parameters }],
      tool_choice: { type: "tool", name: "t" },
    });
    expect(await sent({ tools: [], systemPrompt: " " }, { toolChoice: "required" })).toEqual({
      model: "claude-test",
      stream: true,
      max_tokens: 8192,
      messages: [{ role: "user", content: [said("hi")] }],
    });
  });

  it.each([
    ["auto", "auto"],
    ["none", "none"],
    ["required", "any"],
  ] as const)("sends toolChoice %s as %s", async (toolChoice, type) => {
    expect((await sent({ tools }, { toolChoice })).tool_choice).toEqual({ type });
  });

  it("takes null for an option that is not given", async () => {
    const body = await sent({ tools }, { toolChoice: null, reasoning: null } as unknown as StreamOptions);
    expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model", "stream", "tools"]);
  });

  it("puts the provider's own tools first, and makes every schema that of an object", async () => {
    const search = { type: "web_search_20250305", name: "web_search" };
    const body = await sent({ tools: [{ name: "x", description: "", parameters: {} }] }, { tools: [search] });
    expect(body.tools).toEqual([search, { name: "x", description: "", input_schema: { type: "object", properties: {} } }]);
  });

  it.each([
    [{}, undefined, 8192],
    [{ maxTokens: 64_000 }, undefined, 64_000],
    [{ maxTokens: 64_000 }, { maxTokens: 5 }, 5],
    [{ maxTokens: 64_000 }, { max_tokens: 6 }, 6],
  ])("of model %o and options %o makes max_tokens %i", async (model, options, expected) => {
    expect((await sent({}, options, { ...claude, ...model })).max_tokens).toBe(expected);
  });

  it.each([
    ["minimal", 64_000, 1024],
    ["low", 64_000, 2048],
    ["medium", 64_000, 8192],
    ["high", 64_000, 16_384],
    ["xhigh", 64_000, 32_768],
    ["xhigh", 8192, 6144],
    ["high", 1025, 1024],
  ] as const)(
    "thinks for reasoning %s and max_tokens %i at most %i tokens, at the API's own temperature",
    async (reasoning, maxTokens, budget) => {
      const body = await sent({}, { reasoning, maxTokens, temperature: 0.2 });
      expect([body.thinking, body.max_tokens, body.temperature]).toEqual([
        { type: "enabled", budget_tokens: budget },
        maxTokens,
        undefined,
      ]);
    },
  );

  it.each([
    ["there is no room", { maxTokens: 1024 }],
    ["any tool is forced", { toolChoice: "required" }],
    ["one tool is forced", { toolChoice: { name: "t" } }],
    ["the host turned it off", { thinking: { type: "disabled" } }],
  ] as const)("does not think when %s", async (_, options) => {
    const { thinking, temperature } = await sent({ tools }, { reasoning: "low", temperature: 0.2, ...options });
    expect([thinking, temperature]).toEqual([(options as StreamOptions)["thinking"], 0.2]);
  });

  it("leaves a host's own thinking option as it is", async () => {
    const own = { thinking: { type: "adaptive" }, output_config: { effort: "max" }, toolChoice: "required" } as const;
    const body = await sent({ tools }, { reasoning: "low", temperature: 0.2, ...own });
    expect(body).toMatchObject({ thinking: own.thinking, output_config: own.output_config, tool_choice: { type: "any" } });
    expect(body).not.toHaveProperty("temperature");
  });

  it("does not begin to think in the middle of a tool loop", async () => {
    const thought = { type: "thinking", thinking: "Hm", thinkingSignature: "s" } as const;
    const loop = (first: AssistantMessage["content"]) => [...hi.messages, assistant([...first, call("1")]), result("1", [])];
    const more = [assistant([call("2")]), result("2", [])];
    const on = { type: "enabled", budget_tokens: 2048 };
    const cases: [Message[], unknown][] = [
      [loop([]), undefined],
      [[...loop([]), userMessage("steered")], undefined],
      [[...loop([]), assistant([said("done")]), ...hi.messages], on],
      [[...loop([thought]), ...more], on],
      [loop([{ ...thought, redacted: true }]), on],
    ];
    for (const [messages, thinking] of cases) expect((await sent({ messages }, { reasoning: "low" })).thinking).toEqual(thinking);
  });
});

// SPEC 12.2
describe("anthropicMessages marking what the provider may cache", () => {
  const mark = { cache_control: { type: "ephemeral" } };
  const marked = (context: Partial<LlmContext>, options?: StreamOptions) => sent(context, options, claude, streamFn);

  it("marks system prompt, last tool and last message", async () => {
    const two = [...tools, { ...tools[0], name: "u" }] as LlmContext["tools"] & object;
    const messages = [...hi.messages, assistant([call("1")]), result("1", [said("r")])];
    const body = await marked({ systemPrompt: "Be brief.", tools: two, messages });
    expect(body.system).toEqual([{ ...said("Be brief."), ...mark }]);
    expect(body.tools.map((tool: object) => "cache_control" in tool)).toEqual([false, true]);
    expect(body.messages[0].content).toEqual([said("hi")]);
    expect(body.messages[2].content).toEqual([{ type: "tool_result", tool_use_id: "1", content: [said("r")], ...mark }]);
    expect(JSON.stringify(two) + JSON.stringify(messages)).not.toContain("cache_control");
    expect(JSON.stringify(await sent({ systemPrompt: "Be brief.", tools: two, messages }))).not.toContain("cache_control");
  });

  it("marks neither thinking nor an empty text nor anything of the host's", async () => {
    const thinking = [{ type: "thinking", thinking: "Hm", thinkingSignature: "s" } as const];
    const own = { system: [said("own")], tools: [{ type: "bash_20250124", name: "bash" }] };
    const before = JSON.stringify(own);
    const body = await marked({ messages: [...hi.messages, assistant([...thinking, said("so")])] }, own);
    expect(body).toMatchObject(own);
    expect(JSON.stringify(own)).toBe(before);
    expect(body.messages[1].content).toEqual([
      { type: "thinking", thinking: "Hm", signature: "s" },
      { ...said("so"), ...mark },
    ]);
    expect((await marked({ messages: [userMessage([image, said("")])] })).messages).toEqual([
      { role: "user", content: [{ ...picture, ...mark }] },
    ]);
    expect((await marked({ messages: [...hi.messages, assistant(thinking)] })).messages).toEqual([
      { role: "user", content: [{ ...said("hi"), ...mark }] },
    ]);
    expect((await marked({ messages: [] })).messages).toEqual([]);
  });
});

// SPEC 12.1, 12.2, 2.7
describe("anthropicMessages sending a transcript", () => {
  it("sends results and what follows them as one message, images where they belong, and nothing that is empty", async () => {
    const { messages } = await sent({
      messages: [
        userMessage([said("look"), said(" \n"), image]),
        userMessage("and \ud800?"),
        assistant([said(" ")]),
        assistant([said("Ta"), said("king."), call("1"), call("2"), call("3")]),
        result("2", [], true),
        result("1", [said("done"), said(""), { ...image, mimeType: "image/JPG" }]),
        result("lone", [said("nobody asked")]),
        userMessage("go on"),
        userMessage(""),
        assistant([said("Half")], { stopReason: "error" }),
        assistant([said("Whole")]),
        userMessage("thanks"),
      ],
    });
    const results = [
      {
        type: "tool_result",
        tool_use_id: "1",
        content: [said("done"), { ...picture, source: { ...picture.source, media_type: "image/jpeg" } }],
      },
      { type: "tool_result", tool_use_id: "2", content: [said("(no output)")], is_error: true },
      { type: "tool_result", tool_use_id: "3", content: [said(expect.stringContaining("No result was recorded"))], is_error: true },
    ];
    expect(messages).toEqual([
      { role: "user", content: [said("look"), picture, said("and \ufffd?")] },
      { role: "assistant", content: [said("Ta"), said("king."), use("1"), use("2"), use("3")] },
      { role: "user", content: [...results, said("go on")] },
      { role: "assistant", content: [said("Half"), said("Whole")] },
      { role: "user", content: [said("thanks")] },
    ]);
  });

  const thought = { type: "thinking", thinking: "Hm", thinkingSignature: "s" } as const;
  const thinks = { type: "thinking", thinking: "Hm", signature: "s" };
  it.each<[string, AssistantMessage["content"], object[]]>([
    ["what was said behind a call before it", [thought, said("a"), call("1"), said("b")], [thinks, said("a"), said("b"), use("1")]],
    ["thinking behind a call before it", [call("1"), thought, call("2")], [thinks, use("1"), use("2")]],
    ["no thinking that nothing follows", [said("a"), thought, { ...thought, redacted: true }, said(" ")], [said("a")]],
    ["nothing of an answer that was thinking only", [thought], []],
  ])("sends %s: the API refuses anything else for ever", async (_, content, expected) => {
    const { messages } = await sent({ messages: [...hi.messages, assistant(content), userMessage("on")] });
    expect(messages.flatMap((message: any) => (message.role === "assistant" ? message.content : []))).toEqual(expected);
  });

  it("sends the images of failed results behind the results: the API takes them in no other place", async () => {
    const messages = [
      ...hi.messages,
      assistant([call("1"), call("2"), call("3")]),
      result("1", [said("No."), image], true),
      result("2", [image], true),
      result("3", [image]),
      userMessage("on"),
    ];
    const answer = (id: string, content: object[], failed = true) => ({
      ...{ type: "tool_result", tool_use_id: id, content },
      ...(failed && { is_error: true }),
    });
    const label = said("Images in the result of shot:");
    expect((await sent({ messages })).messages.at(-1).content).toEqual([
      answer("1", [said("No.")]),
      answer("2", [said("(The images follow the results.)")]),
      answer("3", [picture], false),
      ...[label, picture, label, picture, said("on")],
    ]);
    expect((await sent({ messages: messages.slice(0, -1) })).messages.at(-1).content).toHaveLength(7);
  });

  it("says in place of an image of a type which the API does not read that there was one", async () => {
    const drawing = { ...image, mimeType: "image/svg+xml" };
    const { messages } = await sent({ messages: [userMessage([drawing, { ...image, mimeType: "image/png; q=1" }])] });
    expect(messages[0].content).toEqual([said("(An image of type image/svg+xml was left out: it cannot be read.)"), picture]);
  });

  it("sends well-formed text and names, whoever calls", async () => {
    const odd = { name: "f", description: "\ud800", parameters: { type: "object", properties: { a: { description: "\ud800" } } } };
    const body = await sent({
      systemPrompt: "Be \ud800.",
      tools: [odd],
      messages: [...hi.messages, assistant([{ ...call("1"), name: "" }])],
    });
    expect(JSON.stringify(body)).not.toMatch(/\\ud800/);
    expect(body.messages[1].content[0].name).toBe("unnamed");
  });

  it("sends ids that are valid, at most 64 long, unique, and paired as they were", async () => {
    const long = "fc|".repeat(30);
    const ids = ["same", "same", long, `${long}x`, "", "same"];
    const batches = ids.flatMap((id) => [assistant([call(id)]), result(id, [said("r")])]);
    const { messages } = await sent({ messages: [...hi.messages, ...batches, assistant([call("same"), call("same")])] });
    const blocks = messages.flatMap(({ content }: any) => content);
    const asked: string[] = blocks.flatMap(({ type, id }: any) => (type === "tool_use" ? [id] : []));
    expect(blocks.flatMap(({ tool_use_id }: any) => tool_use_id ?? [])).toEqual(asked);
    expect([asked.length, new Set(asked).size, asked[0]]).toEqual([8, 8, "same"]);
    for (const id of asked) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  });

  it("gives thinking back as it was, to the api and provider that wrote it and to no other", async () => {
    const content: AssistantMessage["content"] = [
      { type: "thinking", thinking: "Hm", thinkingSignature: "s1" },
      { type: "thinking", thinking: "[hidden]", thinkingSignature: "data", redacted: true },
      { type: "thinking", thinking: "", thinkingSignature: "s2" },
      { type: "thinking", thinking: "unsigned" },
      said("a"),
    ];
    const transcript = [
      ...hi.messages,
      ...[claude, { ...claude, id: "another" }, { ...claude, api: "x" }, { ...claude, provider: "x" }].flatMap((from) => [
        assistant(content, {}, from),
        ...hi.messages,
      ]),
      assistant(content, { stopReason: "aborted" }),
      ...hi.messages,
    ];
    const replayed = [
      { type: "thinking", thinking: "Hm", signature: "s1" },
      { type: "redacted_thinking", data: "data" },
      { type: "thinking", thinking: "", signature: "s2" },
      said("a"),
    ];
    for (const to of [claude, { id: "m", provider: "anthropic" }]) {
      const { messages } = await sent({ messages: transcript }, undefined, to);
      const answers = messages.filter(({ role }: any) => role === "assistant").map((message: any) => message.content);
      expect(answers).toEqual([replayed, replayed, [said("a")], [said("a")], [said("a")]]);
    }
  });
});
