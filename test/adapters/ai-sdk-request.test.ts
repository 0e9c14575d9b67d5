import type { AssistantMessage, LlmContext, Message, Model, StreamOptions, ToolCall } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { describe, expect, it } from "vitest";
import { type FakeModel, fakeModel, finish, streamOf, text, versions } from "./ai-sdk-helpers.js";
import { ask, hi, model as other } from "./helpers.js";

const model: Model = { id: "m", provider: "p" };
const said = (value: string) => ({ type: "text", text: value }) as const;
const image = { type: "image", data: "QUJD", mimeType: "image/png" } as const;
const usage: AssistantMessage["usage"] = {
  ...{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 },
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const assistant = (content: AssistantMessage["content"], from: Partial<AssistantMessage> = {}): AssistantMessage => ({
  ...{ role: "assistant", content, api: "ai-sdk", provider: "p", model: "m", usage, stopReason: "stop", timestamp: 1 },
  ...from,
});
const call = (id: string, extra: Partial<ToolCall> = {}): ToolCall => ({
  type: "toolCall",
  id,
  name: "shot",
  arguments: { n: 1 },
  ...extra,
});
const result = (toolCallId: string, content: (Message & { role: "toolResult" })["content"], isError = false): Message => ({
  ...{ role: "toolResult", toolCallId, toolName: "shot", content, isError, timestamp: 1 },
});
const user = (content: (Message & { role: "user" })["content"]): Message => ({ role: "user", content, timestamp: 1 });

async function send(fake: FakeModel, context: Partial<LlmContext>, options?: StreamOptions, to = model): Promise<any> {
  await ask(aiSdk(fake.model), options, { ...hi, ...context }, to);
  return fake.calls[fake.calls.length - 1];
}

// SPEC 12.1, 12.2
describe.each(versions)("aiSdk as a %s model sees it", (version) => {
  const answering = (provider?: string): FakeModel => fakeModel(version, () => streamOf([...text("0", "ok"), finish(version)]), provider);
  const file = { type: "file", mediaType: "image/png", data: version === "v4" ? { type: "data", data: "QUJD" } : "QUJD" };
  const imageInResult = {
    v2: { type: "media", data: "QUJD", mediaType: "image/png" },
    v3: { type: "image-data", data: "QUJD", mediaType: "image/png" },
    v4: file,
  }[version];

  it("maps options, and passes on those it does not know", async () => {
    const parameters = { type: "object" };
    const search = { type: "provider", id: "openai.web_search", name: "web_search", args: {} };
    const common = { apiKey: "k", sessionId: "s", maxTokens: 9, temperature: 0, reasoning: "low", headers: { "x-team": "blue" } } as const;
    const own = { topP: 0.5, seed: 7, providerOptions: { openai: { store: false } } };
    const fake = answering();
    const tools = [{ name: "t", description: "d", parameters }];
    const { abortSignal, ...sent } = await send(fake, { tools }, { ...common, ...own, tools: [search], toolChoice: { name: "t" } });
    expect(sent).toEqual({
      prompt: [{ role: "user", content: [said("hi")] }],
      tools: [{ type: "function", name: "t", description: "d", inputSchema: { ...parameters, properties: {} } }, search],
      toolChoice: { type: "tool", toolName: "t" },
      maxOutputTokens: 9,
      temperature: 0,
      headers: { "x-team": "blue" },
      ...own,
      ...(version === "v4" ? { reasoning: "low" } : {}),
    });
    expect(abortSignal).toBeInstanceOf(AbortSignal);
    for (const type of ["auto", "none", "required"] as const) {
      expect((await send(fake, { tools }, { toolChoice: type })).toolChoice).toEqual({ type });
    }
    // the AI SDK's own shape, which its users write
    const ofSdk = { type: "tool", toolName: "t" };
    expect((await send(fake, { tools }, { toolChoice: ofSdk as never })).toolChoice).toEqual(ofSdk);
    expect(Object.keys(await send(fake, { tools: [] }, { toolChoice: "required" })).sort()).toEqual(["abortSignal", "prompt"]);
  });

  it("sends images in messages and in results, the results of a batch as one message, and leaves out what is empty", async () => {
    const { prompt } = await send(answering(), {
      systemPrompt: "Be brief.",
      messages: [
        user([said("look"), said(""), image]),
        assistant([said("")]),
        assistant([said("Taking."), call("1"), call("2"), call("3"), call("4")]),
        result("1", [said("done"), image]),
        result("2", []),
        result("3", [said("a"), said(""), said("b")]),
        result("4", [said("no camera")], true),
        result("lone", [said("nobody asked")]),
        user(""),
        user("and \ud800?"),
      ],
    });
    const sentCall = (toolCallId: string) => ({ type: "tool-call", toolCallId, toolName: "shot", input: { n: 1 } });
    const answer = (toolCallId: string, output: object) => ({ type: "tool-result", toolCallId, toolName: "shot", output });
    expect(prompt).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: [said("look"), file] },
      { role: "assistant", content: [said("Taking."), sentCall("1"), sentCall("2"), sentCall("3"), sentCall("4")] },
      {
        role: "tool",
        content: [
          answer("1", { type: "content", value: [said("done"), imageInResult] }),
          answer("2", { type: "text", value: "(no output)" }),
          answer("3", { type: "text", value: "a\nb" }),
          answer("4", { type: "error-text", value: "no camera" }),
        ],
      },
      { role: "user", content: [said("and \ufffd?")] },
    ]);
  });

  it("lets images of results follow for a model that speaks Chat Completions", async () => {
    const { prompt } = await send(answering("openai.chat"), {
      messages: [user("go"), assistant([call("1"), call("2")]), result("1", [image]), result("2", [said("ok")])],
    });
    expect(prompt.slice(2)).toEqual([
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "1",
            toolName: "shot",
            output: { type: "text", value: "(The images follow in the next message.)" },
          },
          { type: "tool-result", toolCallId: "2", toolName: "shot", output: { type: "text", value: "ok" } },
        ],
      },
      { role: "user", content: [said("Images in the result of shot:"), file] },
    ]);
  });

  it("sends ids that are valid, at most 40 long, unique, and paired as they were", async () => {
    const long = "fc|".repeat(30);
    const ids = ["same", "same", long, `${long}x`, "", "same"];
    const { prompt } = await send(answering(), {
      messages: [...hi.messages, ...ids.flatMap((id) => [assistant([call(id)]), result(id, [])])],
    });
    const sent = prompt.flatMap(({ role, content }: any) => (role === "user" ? [] : [content[0].toolCallId]));
    expect(sent.filter((_: string, index: number) => index % 2 === 0)).toEqual(sent.filter((_: string, index: number) => index % 2 === 1));
    expect(new Set(sent).size).toBe(ids.length);
    for (const id of sent) expect(id).toMatch(/^[\w-]{1,40}$/);
  });

  it("replays what it was told about a block only to where it came from", async () => {
    const metadata = { openai: { itemId: "i" } };
    const parts = [
      { type: "reasoning-start", id: "r", providerMetadata: metadata },
      { type: "reasoning-delta", id: "r", delta: "Hm." },
      { type: "reasoning-end", id: "r" },
      { type: "reasoning-delta", id: "plain", delta: "So." },
      { type: "text-start", id: "t", providerMetadata: metadata },
      { type: "text-delta", id: "t", delta: "Yes" },
      { type: "tool-call", toolCallId: "c", toolName: "shot", input: "{}", providerMetadata: metadata },
      finish(version),
    ];
    const fake = fakeModel(version, () => streamOf(parts));
    const { message } = await ask(aiSdk(fake.model), undefined, hi, model);
    const messages = [...hi.messages, JSON.parse(JSON.stringify(message)) as AssistantMessage, result("c", [said("r")])];
    const contents = async (to: FakeModel, as = model) =>
      (await send(to, { messages }, undefined, as)).prompt.slice(1).flatMap((m: any) => m.content);
    const options = { providerOptions: metadata };
    const bare = [
      said("Yes"),
      { type: "tool-call", toolCallId: "c", toolName: "shot", input: {} },
      { type: "tool-result", toolCallId: "c", toolName: "shot", output: { type: "text", value: "r" } },
    ] as const;
    expect(await contents(fake)).toEqual([
      { type: "reasoning", text: "Hm.", ...options },
      { type: "reasoning", text: "So." },
      ...bare.map((part) => ({ ...part, ...options })),
    ]);
    expect(await contents(answering("another.responses"))).toEqual(bare);
    expect(await contents(fake, { ...model, provider: "q" })).toEqual(bare);
    expect(await contents(fake, other)).toEqual(bare);
  });

  it("replays no signature of another adapter, and no reasoning that stands alone", async () => {
    const thinking = (thinkingSignature?: string) =>
      ({ type: "thinking", thinking: "Hm.", ...(thinkingSignature ? { thinkingSignature } : {}) }) as const;
    const own = JSON.stringify({ provider: "fake.responses" });
    const { prompt } = await send(answering(), {
      messages: [
        user("a"),
        assistant([thinking("reasoning_content"), thinking("null"), thinking(), said("b")]),
        user("c"),
        assistant([thinking(own)]),
        user("d"),
      ],
    });
    expect(prompt.map(({ content }: any) => content)).toEqual([[said("a")], [said("b")], [said("c")], [said("d")]]);
  });
});

// SPEC 12.1, 14.4
describe("aiSdk given something else", () => {
  it.each([
    ["openai/gpt-5", /got "openai\/gpt-5"/],
    [undefined, /got undefined/],
    [{ specificationVersion: "v1", doStream() {} }, /got one of specification "v1"/],
    [{ specificationVersion: "v3" }, /specification v2, v3 or v4/],
  ])("says so: %o", (given, words) => {
    expect(() => aiSdk(given as never)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringMatching(words) }),
    );
  });
});
