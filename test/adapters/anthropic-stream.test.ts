import type { AssistantMessage, AssistantMessageEvent, StreamFn } from "turnloop";
import { anthropicMessages } from "turnloop/anthropic";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { textOf } from "../helpers.js";
import { askClaude, begin, call, claude, delta, deltas, end, start, stopped, text, thinking, wire } from "./anthropic-helpers.js";
import { hi, quiet, type RawServer, rawServer } from "./helpers.js";

const { says, inputs, thinks, signs } = deltas;

let server: RawServer;
let streamFn: StreamFn;

beforeEach(async () => {
  server = await rawServer();
  streamFn = anthropicMessages({ ...quiet, baseURL: server.url });
});
afterEach(() => server.close());

function answers(...bodies: string[]): void {
  server.answer(...bodies.map((body) => (res: { end(body: string): unknown }) => void res.end(body)));
}

// SPEC 12.2, 3.2
describe("anthropicMessages reading a stream", () => {
  it("makes thinking, text and parallel calls of one answer, each block from its start to its end", async () => {
    answers(
      begin() +
        thinking(0, "sig-1", "Let me ", "see.") +
        text(1, "Look", "ing.") +
        call(2, "toolu_a", "weather", '{"city":', '"Paris"}') +
        wire({ type: "ping" }) +
        call(3, "toolu_b", "clock") +
        end("tool_use"),
    );
    const { types, message } = await askClaude(streamFn);
    const block = (name: string, deltaCount: number): string[] => [
      `${name}_start`,
      ...Array(deltaCount).fill(`${name}_delta`),
      `${name}_end`,
    ];
    expect(types).toEqual([
      "start",
      ...block("thinking", 3),
      ...block("text", 2),
      ...block("toolcall", 2),
      ...block("toolcall", 0),
      "done",
    ]);
    expect(message).toEqual({
      role: "assistant",
      api: "anthropic-messages",
      provider: "anthropic",
      model: "claude-test",
      timestamp: expect.any(Number),
      stopReason: "toolUse",
      usage: expect.objectContaining({ input: 10, output: 5 }),
      content: [
        { type: "thinking", thinking: "Let me see.", thinkingSignature: "sig-1" },
        { type: "text", text: "Looking." },
        { type: "toolCall", id: "toolu_a", name: "weather", arguments: { city: "Paris" } },
        { type: "toolCall", id: "toolu_b", name: "clock", arguments: {} },
      ],
    });
  });

  it("keeps neighbouring blocks of one kind apart, so that each thought keeps its own signature", async () => {
    const redacted = (index: number, data: string): string => start(index, { type: "redacted_thinking", data }) + stopped(index);
    answers(
      begin() +
        thinking(0, "s0", "One.") +
        redacted(1, "secret-1") +
        redacted(2, "secret-2") +
        thinking(3, "s3") +
        text(4, "A") +
        text(5, "B") +
        end(),
    );
    const { message, types } = await askClaude(streamFn);
    expect(message.content).toEqual([
      { type: "thinking", thinking: "One.", thinkingSignature: "s0" },
      { type: "thinking", thinking: "", thinkingSignature: "secret-1", redacted: true },
      { type: "thinking", thinking: "", thinkingSignature: "secret-2", redacted: true },
      { type: "thinking", thinking: "", thinkingSignature: "s3" },
      { type: "text", text: "A" },
      { type: "text", text: "B" },
    ]);
    expect(types.filter((type) => type.endsWith("_start"))).toHaveLength(6);
  });

  it("shows interleaved blocks one after the other, losing nothing", async () => {
    const pieces = [
      start(0, { type: "text", text: "" }),
      start(1, { type: "tool_use", id: "t1", name: "a", input: {} }),
      start(2, { type: "thinking", thinking: "", signature: "" }),
      inputs(1, '{"n"'),
      says(0, "Hel"),
      thinks(2, "Hm"),
      inputs(1, ":1}"),
      stopped(1),
      says(0, "lo"),
      signs(2, "sig"),
      stopped(0),
      stopped(2),
    ];
    answers(begin() + pieces.join("") + end("tool_use"));
    const { message, types } = await askClaude(streamFn);
    expect(message.content).toEqual([
      { type: "text", text: "Hello" },
      { type: "toolCall", id: "t1", name: "a", arguments: { n: 1 } },
      { type: "thinking", thinking: "Hm", thinkingSignature: "sig" },
    ]);
    expect(types.filter((type) => /_(start|end)$/.test(type))).toEqual(
      ["text", "toolcall", "thinking"].flatMap((name) => [`${name}_start`, `${name}_end`]),
    );
  });

  it.each([
    ["starts a block with content", start(0, { type: "text", text: "He" }) + says(0, "llo") + stopped(0), { type: "text", text: "Hello" }],
    ["closes no block", start(0, { type: "text", text: "" }) + says(0, "Hello"), { type: "text", text: "Hello" }],
    [
      "gives no index",
      wire(
        { type: "content_block_start", content_block: { type: "text", text: "" } },
        { type: "content_block_delta", delta: { type: "text_delta", text: "Hello" } },
      ),
      { type: "text", text: "Hello" },
    ],
    [
      "sends a call's input whole",
      start(0, { type: "tool_use", id: "t", name: "x", input: { a: [1] } }) + stopped(0),
      { type: "toolCall", id: "t", name: "x", arguments: { a: [1] } },
    ],
    [
      "sends broken input",
      call(0, "t", "x", '{"a": '),
      { type: "toolCall", id: "t", name: "x", arguments: {}, argumentsError: expect.stringContaining("JSON object") },
    ],
    [
      "sends deltas of unknown kinds and blocks",
      delta(7, { type: "text_delta", text: "lost" }) +
        start(0, { type: "new_thing" }) +
        delta(0, { type: "new_delta" }) +
        stopped(0) +
        text(1, "Hello"),
      { type: "text", text: "Hello" },
    ],
  ])("reads a server that %s", async (_, blocks, block) => {
    answers(begin() + blocks + end(null));
    expect((await askClaude(streamFn)).message).toMatchObject({
      stopReason: block.type === "toolCall" ? "toolUse" : "stop",
      content: [block],
    });
  });

  it("shows each delta before the next one has been sent", async () => {
    let send!: (bytes: string) => void;
    server.answer((res) => {
      send = (bytes) => void res.write(bytes);
      send(begin() + start(0, { type: "tool_use", id: "t", name: "x", input: {} }));
    });
    const next: string[] = [inputs(0, '{"a":'), inputs(0, "1}"), stopped(0), end("tool_use")];
    const seen: AssistantMessageEvent<string>["type"][] = [];
    for await (const event of await streamFn(claude, hi)) {
      seen.push(event.type);
      if (["toolcall_start", "toolcall_delta", "toolcall_end"].includes(event.type)) send(next.shift() as string);
    }
    expect(seen).toEqual(["start", "toolcall_start", "toolcall_delta", "toolcall_delta", "toolcall_end", "done"]);
  });

  it("ends an answer whose body stays open after its last event", async () => {
    const closed = server.answer((res) => void res.write(begin() + text(0, "All") + end()));
    expect((await askClaude(streamFn)).message).toMatchObject({ stopReason: "stop", content: [{ text: "All" }] });
    await closed;
  });
});

// SPEC 12.2
describe("anthropicMessages counting tokens", () => {
  const cost = { input: 1, output: 10, cacheRead: 0.5, cacheWrite: 2 };
  const cached = { cache_read_input_tokens: 300, cache_creation_input_tokens: 40 };

  it.each([
    ["at the start", { input_tokens: 20, output_tokens: 1, ...cached }, { output_tokens: 7 }],
    ["at the end", { input_tokens: 0, output_tokens: 0 }, { input_tokens: 20, output_tokens: 7, ...cached }],
    [
      "at the start, and nulls and zeros later",
      { input_tokens: 20, output_tokens: 1, ...cached },
      { input_tokens: 0, cache_read_input_tokens: null, output_tokens: 7 },
    ],
  ])("takes the counts that come %s", async (_, first, last) => {
    answers(begin(first) + text(0, "x") + end("end_turn", last));
    const { usage } = (await askClaude(streamFn, {}, hi, { ...claude, cost })).message;
    expect(usage).toMatchObject({ input: 20, output: 7, cacheRead: 300, cacheWrite: 40, totalTokens: 367 });
    expect(usage.cost.total).toBeCloseTo((20 + 70 + 150 + 80) / 1e6, 12);
  });
});

// SPEC 12.2, 2.3
describe("anthropicMessages telling why an answer ended", () => {
  it.each([
    ["end_turn", text(0, "x"), { stopReason: "stop" }],
    ["end_turn", call(0, "t", "x"), { stopReason: "toolUse" }],
    ["tool_use", text(0, "x"), { stopReason: "stop" }],
    ["max_tokens", call(0, "t", "x", '{"a'), { stopReason: "length" }],
    ["model_context_window_exceeded", text(0, "x"), { stopReason: "length", rawStopReason: "model_context_window_exceeded" }],
    ["stop_sequence", text(0, "x"), { stopReason: "stop", rawStopReason: "stop_sequence" }],
    ["constructor", text(0, "x"), { stopReason: "stop", rawStopReason: "constructor" }],
  ])("%s", async (reason, blocks, expected) => {
    answers(begin() + blocks + end(reason));
    const { message } = await askClaude(streamFn);
    expect({ stopReason: message.stopReason, rawStopReason: message.rawStopReason }).toEqual({ rawStopReason: undefined, ...expected });
  });

  it.each([
    [{ explanation: "Not this.", category: "cyber" }, /^Not this\.$/],
    [{ explanation: null, category: "bio" }, /refused.*bio/],
    [null, /refused/],
  ])("a refusal with %o is an error turn that keeps the text", async (stop_details, words) => {
    answers(begin() + text(0, "Well, ") + end("refusal", { output_tokens: 3 }, { stop_details }));
    const { message } = await askClaude(streamFn);
    expect(message).toMatchObject({ stopReason: "error", content: [{ text: "Well, " }], errorInfo: { kind: "refusal", retryable: false } });
    expect(message.errorMessage).toMatch(words);
    expect(message.usage.output).toBe(3);
  });
});

// SPEC 12.2
describe("anthropicMessages and a model that pauses", () => {
  const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search" };
  const found = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [{ type: "web_search_result", url: "https://x.y" }] };
  const citation = { type: "web_search_result_location", url: "https://x.y" };
  const pausing =
    begin({ input_tokens: 10, output_tokens: 1 }, { container: { id: "box_1", expires_at: "later" } }) +
    thinking(0, "sig", "Search.") +
    start(1, { ...search, input: {} }) +
    inputs(1, '{"query":') +
    inputs(1, '"x"}') +
    stopped(1) +
    start(2, found) +
    stopped(2) +
    start(3, { type: "text", text: "", citations: [] }) +
    says(3, "So ") +
    delta(3, { type: "citations_delta", citation }) +
    stopped(3) +
    text(4, "\n") +
    end("pause_turn", { output_tokens: 20 });

  it("sends back all it wrote and goes on in the same message", async () => {
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    answers(pausing, begin({ input_tokens: 50, output_tokens: 1 }) + text(0, "it is.") + end("end_turn", { output_tokens: 6 }));
    const { message, types } = await askClaude(streamFn, { tools, temperature: 0.5 });
    expect(message).toMatchObject({ stopReason: "stop", usage: { input: 60, output: 26, totalTokens: 86 } });
    expect(message.rawStopReason).toBeUndefined();
    expect(textOf(message as AssistantMessage)).toBe("So \nit is.");
    expect([types.filter((type) => type === "start"), types.filter((type) => type === "done")]).toEqual([["start"], ["done"]]);
    const [first, second] = server.requests.map(({ body }) => body);
    const content = [
      { type: "thinking", thinking: "Search.", signature: "sig" },
      { ...search, input: { query: "x" } },
      found,
      { type: "text", text: "So ", citations: [citation] },
    ];
    expect(second).toEqual({ ...first, container: "box_1", messages: [...first.messages, { role: "assistant", content }] });
    expect(first).toMatchObject({ tools, temperature: 0.5 });
  });

  it("asks five times at most, then ends with what there is", async () => {
    answers(...Array.from({ length: 7 }, (_, n) => begin() + text(0, `${n} `) + end("pause_turn")));
    const { message } = await askClaude(streamFn);
    expect(message).toMatchObject({ stopReason: "stop", rawStopReason: "pause_turn", usage: { input: 60, output: 30 } });
    expect([textOf(message as AssistantMessage), server.requests.length]).toEqual(["0 1 2 3 4 5 ", 6]);
    expect(server.requests.at(-1)?.body.messages.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant"]);
  });

  it("lets the loop answer the calls of a paused answer, and repeats the request when nothing was written", async () => {
    answers(begin() + call(0, "t", "x") + end("pause_turn"));
    expect((await askClaude(streamFn)).message).toMatchObject({ stopReason: "toolUse", rawStopReason: "pause_turn" });
    answers(begin() + end("pause_turn"), begin() + text(0, "x") + end());
    expect((await askClaude(streamFn)).message).toMatchObject({ stopReason: "stop", content: [{ text: "x" }] });
    expect(server.requests[2]?.body).toEqual(server.requests[1]?.body);
  });

  it("keeps what came before a continuation that fails or is aborted", async () => {
    const controller = new AbortController();
    server.answer(
      (res) => void res.end(pausing),
      (res) => void res.writeHead(529).end(),
      (res) => void res.end(pausing),
      () => controller.abort(),
    );
    const failed = await askClaude(streamFn);
    expect(failed.message).toMatchObject({ stopReason: "error", errorInfo: { kind: "overloaded", status: 529, retryable: true } });
    const aborted = await askClaude(streamFn, { signal: controller.signal });
    expect(aborted.message).toMatchObject({ stopReason: "aborted" });
    for (const { message } of [failed, aborted]) expect(textOf(message as AssistantMessage)).toBe("So \n");
  });
});
