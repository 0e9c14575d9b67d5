import type { ToolCall } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { describe, expect, it } from "vitest";
import { answerOf, contentOf, fakeModel, finish, streamOf, text, versions } from "./ai-sdk-helpers.js";
import { ask, hi, priced } from "./helpers.js";

const signed = (metadata?: object) => JSON.stringify({ provider: "fake.responses", ...(metadata ? { metadata } : {}) });
const callPart = (id: string, input: unknown, extra = {}) => ({ type: "tool-call", toolCallId: id, toolName: "t", input, ...extra });
const inputPart = (kind: string, id: string, extra = {}) => ({ type: `tool-input-${kind}`, id, ...extra });
const inputs = (id: string, ...deltas: string[]) => [
  inputPart("start", id, { toolName: "t" }),
  ...deltas.map((delta) => inputPart("delta", id, { delta })),
  inputPart("end", id),
];
const call = (id: string, args: object, extra: Partial<ToolCall> = {}) => ({ type: "toolCall", id, name: "t", arguments: args, ...extra });

// SPEC 12.1, 12.2
describe.each(versions)("aiSdk reading a %s model", (version) => {
  it("streams reasoning, text and calls with their signatures, and counts and prices the usage", async () => {
    const parts = [
      { type: "stream-start", warnings: [{ type: "other", message: "ignored" }] },
      { type: "response-metadata", id: "r", modelId: "other" },
      { type: "reasoning-start", id: "1", providerMetadata: { p: { itemId: "rs" } } },
      { type: "reasoning-delta", id: "1", delta: "Hm" },
      { type: "reasoning-delta", id: "1", delta: "m." },
      { type: "reasoning-end", id: "1", providerMetadata: { p: { itemId: "rs", proof: "x" } } },
      ...text("1", "Hel", "lo"),
      ...inputs("c1", '{"a":', "[1]}"),
      callPart("c1", '{"a":[1]}', { providerMetadata: { p: { thought: "y" } } }),
      finish(version, "tool-calls"),
    ];
    const { model } = fakeModel(version, () => streamOf(parts));
    const { message, types } = await ask(aiSdk(model), undefined, hi, { ...priced, api: undefined } as never);
    expect(message).toMatchObject({ api: "ai-sdk", provider: "openai", model: "gpt-test", stopReason: "toolUse" });
    expect(message).not.toHaveProperty("rawStopReason");
    expect(message.content).toEqual([
      { type: "thinking", thinking: "Hmm.", thinkingSignature: signed({ p: { itemId: "rs", proof: "x" } }) },
      { type: "text", text: "Hello" },
      call("c1", { a: [1] }, { thoughtSignature: signed({ p: { thought: "y" } }) }),
    ]);
    expect(types).toEqual(
      ["start", "thinking_start", "thinking_delta", "thinking_delta", "thinking_end"].concat(
        ["text_start", "text_delta", "text_delta", "text_end"],
        ["toolcall_start", "toolcall_delta", "toolcall_delta", "toolcall_end", "done"],
      ),
    );
    expect(message.usage).toMatchObject({ input: 40, output: 7, cacheRead: 60, cacheWrite: 0, totalTokens: 107 });
    expect(message.usage.cost.total).toBeCloseTo((40 + 70 + 30) / 1e6, 12);
  });

  it.each([
    ["in one part only", [callPart("a", '{"x":1}'), callPart("b", "")], [call("a", { x: 1 }), call("b", {})]],
    ["with an object as input", [callPart("a", { x: 1 }), callPart("b", undefined)], [call("a", { x: 1 }), call("b", {})]],
    [
      "announced without pieces",
      [...inputs("a"), ...inputs("b"), callPart("a", "{}"), callPart("b", '{"y":2}')],
      [call("a", {}), call("b", { y: 2 })],
    ],
    [
      "interleaved",
      [
        inputPart("start", "a", { toolName: "t" }),
        inputPart("start", "b", { toolName: "t" }),
        inputPart("delta", "b", { delta: '{"y":' }),
        inputPart("delta", "a", { delta: '{"x":"}"' }),
        inputPart("delta", "b", { delta: "2}" }),
        inputPart("delta", "a", { delta: "}" }),
        callPart("b", '{"y":2}'),
        callPart("a", '{"x":"}"}'),
      ],
      [call("a", { x: "}" }), call("b", { y: 2 })],
    ],
    [
      "closed late, a signature with the first",
      [...inputs("a", "{}"), ...inputs("b", "{}"), callPart("a", "{}", { providerMetadata: { p: { s: 1 } } }), callPart("b", "{}")],
      [call("a", {}, { thoughtSignature: signed({ p: { s: 1 } }) }), call("b", {})],
    ],
    ["whose whole differs from its pieces", [...inputs("a", '{"x":1'), callPart("a", '{"x":12}')], [call("a", { x: 12 })]],
    [
      "in plain pieces, JSON as a whole",
      [
        inputPart("start", "a", { toolName: "t", inputEncoding: "text" }),
        inputPart("delta", "a", { delta: "ls -l" }),
        inputPart("end", "a"),
        callPart("a", '{"x":"ls -l"}'),
      ],
      [call("a", { x: "ls -l" })],
    ],
    ["without its last part", [...inputs("a", '{"x":1}')], [call("a", { x: 1 })]],
    [
      "whose whole has another name",
      [...inputs("a", '{"x":1}'), callPart("a", '{"x":1}', { toolName: "u" })],
      [call("a", { x: 1 }, { name: "u" })],
    ],
    ["without ids", [callPart("", "{}"), callPart("", "{}")], [call("call_0", {}), call("call_1", {})]],
    [
      "that is not JSON",
      [callPart("a", '{"x":')],
      [call("a", {}, { argumentsError: expect.stringContaining("must be a JSON object") as string })],
    ],
  ])("reads calls %s", async (_, parts, expected) => {
    expect(await contentOf(version, parts)).toEqual(expected);
  });

  it("leaves out what the provider executed itself", async () => {
    const { message } = await answerOf(version, [
      inputPart("start", "s", { toolName: "search", providerExecuted: true }),
      inputPart("delta", "s", { delta: '{"q":1}' }),
      inputPart("end", "s"),
      callPart("s", '{"q":1}', { providerExecuted: true }),
      { type: "tool-result", toolCallId: "s", toolName: "search", result: { hits: 1 } },
      ...inputs("late", "{}"),
      callPart("late", "{}", { providerExecuted: true }),
      { type: "tool-approval-request", approvalId: "x", toolCallId: "s" },
      { type: "source", sourceType: "url", id: "1", url: "https://example.org" },
      { type: "file", mediaType: "image/png", data: "QUJD" },
      { type: "ping" },
      ...text("0", "Found it."),
      finish(version),
    ]);
    expect(message).toMatchObject({ stopReason: "stop", content: [{ type: "text", text: "Found it." }] });
    expect(message.content).toHaveLength(1);
  });

  it("keeps blocks of one type apart, and redacted reasoning", async () => {
    const redacted = { a: { redactedData: "secret" } };
    const parts = [
      { type: "reasoning-start", id: "0" },
      { type: "reasoning-delta", id: "0", delta: "One" },
      { type: "reasoning-delta", id: "0", delta: "", providerMetadata: { a: { signature: "sig" } } },
      { type: "reasoning-end", id: "0" },
      { type: "reasoning-start", id: "1", providerMetadata: redacted },
      { type: "reasoning-end", id: "1" },
      { type: "reasoning-start", id: "2" },
      { type: "reasoning-end", id: "2" },
      ...text("3", "Two"),
      { type: "text-start", id: "4", providerMetadata: { a: { itemId: "msg" } } },
      { type: "text-delta", id: "4", delta: "Three" },
    ];
    expect(await contentOf(version, parts)).toEqual([
      { type: "thinking", thinking: "One", thinkingSignature: signed({ a: { signature: "sig" } }) },
      { type: "thinking", thinking: "", thinkingSignature: signed(redacted) },
      { type: "text", text: "Two" },
      { type: "text", text: "Three", textSignature: signed({ a: { itemId: "msg" } }) },
    ]);
  });

  it("goes on with a text that another block came into, and takes deltas nobody announced", async () => {
    const delta = (id: string, words: string) => ({ type: "text-delta", id, delta: words });
    const parts = [delta("1", "A"), { type: "reasoning-delta", id: "2", delta: "B" }, delta("1", "C"), { type: "text-end", id: "9" }, null];
    expect(await contentOf(version, parts)).toEqual([
      { type: "text", text: "A" },
      { type: "thinking", thinking: "B", thinkingSignature: signed() },
      { type: "text", text: "C" },
    ]);
  });

  it("keeps what a provider says of a block only after another one began", async () => {
    const parts = [
      { type: "reasoning-start", id: "1" },
      { type: "reasoning-delta", id: "1", delta: "Hm" },
      { type: "text-start", id: "2" },
      { type: "text-delta", id: "2", delta: "So" },
      { type: "reasoning-end", id: "1", providerMetadata: { a: { signature: "late" } } },
      ...inputs("c", "{}"),
      { type: "text-end", id: "2", providerMetadata: { a: { itemId: "msg" } } },
      callPart("c", "{}"),
    ];
    expect(await contentOf(version, parts)).toEqual([
      { type: "thinking", thinking: "Hm", thinkingSignature: signed({ a: { signature: "late" } }) },
      { type: "text", text: "So", textSignature: signed({ a: { itemId: "msg" } }) },
      call("c", {}),
    ]);
  });

  it("shows the second of two parallel calls while it is written", async () => {
    const parts = [...inputs("a", '{"x":1}'), inputPart("start", "b", { toolName: "t" }), inputPart("delta", "b", { delta: '{"y' })];
    const { model } = fakeModel(version, () => streamOf(parts, "hang"));
    const seen: string[] = [];
    for await (const event of await aiSdk(model)(priced, hi)) {
      if (event.type === "toolcall_start" || event.type === "toolcall_end") seen.push(`${event.type} ${event.contentIndex}`);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(["toolcall_start 0", "toolcall_end 0", "toolcall_start 1"]);
  });

  it.each([
    ["length", "max_tokens", "length", undefined],
    ["tool-calls", "tool_use", "stop", undefined],
    ["other", "eos", "stop", version === "v2" ? "other" : "eos"],
  ] as const)("reads the reason %s", async (unified, raw, stopReason, rawStopReason) => {
    const { message } = await answerOf(version, [...text("1", "x"), finish(version, unified, raw)]);
    expect([message.stopReason, message.rawStopReason]).toEqual([stopReason, rawStopReason]);
  });

  it("names the provider's own word for an error it does not explain", async () => {
    const { message } = await answerOf(version, [...text("1", "x"), finish(version, "error", "MALFORMED_FUNCTION_CALL")]);
    const own = version === "v2" ? "explain." : "explain (MALFORMED_FUNCTION_CALL).";
    expect(message.errorMessage).toBe(`The provider ended the answer with an error it did not ${own}`);
  });

  const overload = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  it.each([
    ["was filtered", [finish(version, "content-filter", "refusal")], "refusal", false, /content filter/],
    ["ends in an error it does not explain", [finish(version, "error")], "network", true, /did not explain/],
    ["ends without a finish", [], "network", true, /ended early/],
    [
      "gives no reason to finish",
      [{ type: "finish", finishReason: version === "v2" ? "unknown" : { unified: "other", raw: undefined } }],
      "network",
      true,
      /ended early/,
    ],
    ["was interrupted", [{ type: "finish", finishReason: { unified: "interrupted", raw: undefined } }], "network", true, /ended early/],
    ["has nothing in its finish", [{ type: "finish" }], "network", true, /ended early/],
    ["reports an overload", [overload, finish(version, "error")], "overloaded", true, /^Overloaded$/],
    ["reports a text", [{ type: "error", error: "rate limit reached" }, ...text("2", "more")], "rate_limit", true, /^rate limit reached$/],
    [
      "reports a frame",
      [{ type: "error", error: { type: "error", error: { code: "server_error", message: "oops" } } }],
      "network",
      true,
      /^oops$/,
    ],
    ["reports nothing", [{ type: "error", error: undefined }], "unknown", false, /unknown error/],
  ])("keeps the text of an answer that %s", async (_, ending, kind, retryable, words) => {
    const { message } = await answerOf(version, [...text("1", "Half"), ...ending]);
    expect(message).toMatchObject({ stopReason: "error", content: [{ type: "text", text: "Half" }], errorInfo: { kind, retryable } });
    expect(message.errorMessage).toMatch(words);
  });
});

// SPEC 2.3, 12.2
describe("aiSdk reading a v2 model's reason for a word it does not know", () => {
  it.each([
    [[], "stop"],
    [[callPart("a", "{}")], "toolUse"],
  ])("takes an answer whose tokens were counted for a whole one", async (calls, stopReason) => {
    const usage = { inputTokens: 5, outputTokens: 7, totalTokens: 12 };
    const { message } = await answerOf("v2", [...text("1", "x"), ...calls, { type: "finish", finishReason: "unknown", usage }]);
    expect(message).toMatchObject({ stopReason, rawStopReason: "unknown", usage: { input: 5, output: 7 } });
  });

  it("takes one whose tokens were not counted for cut off", async () => {
    const usage = { inputTokens: 5, outputTokens: undefined, totalTokens: undefined };
    const { message } = await answerOf("v2", [...text("1", "x"), { type: "finish", finishReason: "unknown", usage }]);
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true }, usage: { input: 5 } });
  });
});

// SPEC 12.2
describe("aiSdk reading usage", () => {
  const flat = (inputTokens?: number, cachedInputTokens?: number) => ({ inputTokens, outputTokens: 1, totalTokens: 1, cachedInputTokens });
  it.each([
    ["the cache apart, when it is the greater", flat(10, 500), undefined, { input: 10, cacheRead: 500, cacheWrite: 0, output: 1 }],
    ["the cache within", flat(500, 10), undefined, { input: 490, cacheRead: 10, cacheWrite: 0, output: 1 }],
    ["Anthropic's in v2", flat(500, 10), { anthropic: { cacheCreationInputTokens: 7 } }, { input: 500, cacheRead: 10, cacheWrite: 7 }],
    ["Bedrock's in v2", flat(500, 10), { bedrock: { usage: { cacheWriteInputTokens: 7 } } }, { input: 500, cacheRead: 10, cacheWrite: 7 }],
    [
      "reasoning beside the output",
      { inputTokens: 10, outputTokens: 5, totalTokens: 22, reasoningTokens: 7 },
      undefined,
      { input: 10, output: 12, totalTokens: 22 },
    ],
    [
      "reasoning within the output",
      { inputTokens: 10, outputTokens: 12, totalTokens: 22, reasoningTokens: 7 },
      undefined,
      { input: 10, output: 12, totalTokens: 22 },
    ],
    [
      "a total with more than reasoning in it",
      { inputTokens: 10, outputTokens: 5, totalTokens: 40, reasoningTokens: 7 },
      undefined,
      { input: 10, output: 12 },
    ],
    ["nothing known", flat(), undefined, { input: 0, cacheRead: 0, cacheWrite: 0 }],
    [
      "totals only",
      { inputTokens: { total: 100, cacheRead: 30, cacheWrite: 20 }, outputTokens: { text: 3, reasoning: 4 } },
      undefined,
      { input: 50, cacheRead: 30, cacheWrite: 20, output: 7, totalTokens: 107 },
    ],
  ])("%s", async (_, usage, providerMetadata, expected) => {
    const { message } = await answerOf("v2", [{ type: "finish", finishReason: "stop", usage, providerMetadata }]);
    expect(message.usage).toMatchObject(expected);
  });
});
