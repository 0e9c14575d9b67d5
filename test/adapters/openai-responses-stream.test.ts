import type { AssistantMessageEvent, StreamFn } from "turnloop";
import { openaiResponses } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, hi, quiet, type RawServer, rawServer, sse } from "./helpers.js";
import { added, delta, ends, events, itemDone, responsesModel } from "./openai-wires.js";

const reasoning = (id: string, ...summary: string[]) => ({
  type: "reasoning",
  id,
  summary: summary.map((text) => ({ type: "summary_text", text })),
  encrypted_content: `sealed ${id}`,
});
const call = (n: number, args: string) => ({ type: "function_call", id: `fc_${n}`, call_id: `call_${n}`, name: `t${n}`, arguments: args });
const said = (...texts: string[]) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: texts.map((text) => ({ type: "output_text", text, annotations: [] })),
});
const summary = (index: number, text: string, summary_index = 0): string =>
  delta("reasoning_summary_text", index, text, { summary_index, content_index: undefined });
const args = (index: number, text: string): string => delta("function_call_arguments", index, text);

// SPEC 12.2
describe("openaiResponses reading events", () => {
  let server: RawServer;
  let streamFn: StreamFn;

  beforeEach(async () => {
    server = await rawServer();
    streamFn = openaiResponses({ ...quiet, baseURL: server.url });
  });
  afterEach(() => server.close());

  async function read(body: string, model = responsesModel) {
    server.answer((res) => void res.end(body));
    const answer = await ask(streamFn, undefined, hi, model);
    const open: number[] = [];
    for (const event of answer.events as AssistantMessageEvent[]) {
      if (!("contentIndex" in event)) continue;
      if (event.type.endsWith("_start")) open.push(event.contentIndex);
      expect(open.at(-1)).toBe(event.contentIndex);
      if (event.type.endsWith("_end")) open.pop();
      expect(open.length).toBeLessThan(2);
    }
    return answer;
  }

  it("reads a whole answer: summaries, two texts, a call, usage", async () => {
    const thought = reasoning("rs_1", "First.", "Second.");
    const body =
      events({ type: "response.created", response: {} }, { type: "response.in_progress", response: {} }) +
      added(0, { type: "reasoning", id: "rs_1", summary: [] }) +
      events({ type: "response.reasoning_summary_part.added", output_index: 0, summary_index: 0 }) +
      summary(0, "Fir") +
      summary(0, "st.") +
      summary(0, "Second.", 1) +
      itemDone(0, thought) +
      added(1, { ...said(), phase: "commentary" }) +
      delta("output_text", 1, "Loo") +
      delta("output_text", 1, "king.") +
      itemDone(1, { ...said("Looking."), phase: "commentary" }) +
      added(2, said()) +
      delta("output_text", 2, "Now.") +
      itemDone(2, said("Now.")) +
      added(3, call(1, "")) +
      args(3, '{"a":') +
      args(3, "1}") +
      events({ type: "response.function_call_arguments.done", output_index: 3, arguments: '{"a":1}' }) +
      itemDone(3, call(1, '{"a":1}')) +
      ends("completed", {
        output: [thought],
        usage: { input_tokens: 100, output_tokens: 30, total_tokens: 130, input_tokens_details: { cached_tokens: 60 } },
      });
    const priced = { ...responsesModel, cost: { input: 1, output: 10, cacheRead: 0.5, cacheWrite: 2 } };
    const { message, types } = await read(body, priced);
    expect(message).toMatchObject({ stopReason: "toolUse", api: "openai-responses", provider: "openai", model: "gpt-5-test" });
    expect(message.content).toEqual([
      { type: "thinking", thinking: "First.\n\nSecond.", thinkingSignature: JSON.stringify(thought) },
      { type: "text", text: "Looking.", textSignature: '{"phase":"commentary"}' },
      { type: "text", text: "Now." },
      { type: "toolCall", id: "call_1", name: "t1", arguments: { a: 1 } },
    ]);
    expect(message.usage).toMatchObject({ input: 40, output: 30, cacheRead: 60, cacheWrite: 0, totalTokens: 130 });
    expect(message.usage.cost.total).toBeCloseTo((40 + 300 + 30) / 1e6, 12);
    const thinking = ["thinking_start", "thinking_delta", "thinking_delta", "thinking_delta", "thinking_end"];
    const texts = ["text_start", "text_delta", "text_delta", "text_end", "text_start", "text_delta", "text_end"];
    const calls = ["toolcall_start", "toolcall_delta", "toolcall_delta", "toolcall_end"];
    expect(types).toEqual(["start", ...thinking, ...texts, ...calls, "done"]);
  });

  it("keeps each of several reasoning items, also one that shows nothing", async () => {
    const open = { type: "reasoning", id: "rs_3", summary: [], content: [{ type: "reasoning_text", text: "Aloud." }] };
    const items = [reasoning("rs_1"), reasoning("rs_2", "Seen."), open];
    const body = [
      added(0, { type: "reasoning", id: "rs_1", summary: [] }) + itemDone(0, items[0]!),
      added(1, { type: "web_search_call", id: "ws_1" }) + itemDone(1, { type: "web_search_call", id: "ws_1" }),
      itemDone(2, items[1]!),
      delta("reasoning_text", 3, "Aloud.", { item_id: "rs_3" }) + itemDone(3, open),
      added(4, said()) + delta("output_text", 4, "x") + ends("completed"),
    ];
    const { message } = await read(body.join(""));
    const thinking = ["", "Seen.", "Aloud."];
    expect(message.content).toEqual([
      ...items.map((item, n) => ({ type: "thinking", thinking: thinking[n], thinkingSignature: JSON.stringify(item) })),
      { type: "text", text: "x" },
    ]);
  });

  const begin = added(0, call(0, "")) + added(1, call(1, ""));
  const done = itemDone(0, call(0, '{"s":"}{"}')) + itemDone(1, call(1, '{"n":[1]}'));
  it.each([
    ["interleaved", begin + args(1, '{"n":') + args(0, '{"s":"}') + args(1, "[1]}") + args(0, '{"}') + done],
    ["said twice", begin + done + done + args(0, "{}")],
    ["with the second one done first", begin + args(1, '{"n":[1]}') + itemDone(1, call(1, '{"n":[1]}')) + args(0, '{"s":"}{"}') + done],
    ["in their last events only", done],
    ["whose deltas are not all there", begin + args(0, '{"s":') + done],
    ["in the last event of all", ""],
    [
      "in the last events of their arguments, those of the calls never coming",
      begin +
        args(1, '{"n":') +
        events(
          { type: "response.function_call_arguments.done", output_index: 0, arguments: '{"s":"}{"}' },
          { type: "response.function_call_arguments.done", output_index: 1, arguments: '{"n":[1]}' },
        ),
    ],
    [
      "all of index 0",
      added(0, call(0, "")) +
        args(0, '{"s":"}{"}') +
        itemDone(0, call(0, '{"s":"}{"}')) +
        added(0, call(1, "")) +
        args(0, '{"n":') +
        itemDone(0, call(1, '{"n":[1]}')),
    ],
    [
      "by the items' ids",
      events(
        { type: "response.output_item.added", item: call(0, "") },
        { type: "response.output_item.added", item: call(1, "") },
        { type: "response.function_call_arguments.delta", item_id: "fc_1", delta: '{"n":[1]' },
        { type: "response.function_call_arguments.delta", item_id: "fc_0", delta: '{"s":"}{"}' },
        { type: "response.function_call_arguments.delta", item_id: "fc_1", delta: "}" },
      ),
    ],
    ["whose ids change from event to event", begin.replaceAll("fc_", "x_") + args(1, '{"n":[1]}') + args(0, '{"s":"}{"}') + done],
  ])("reads calls %s", async (_, body) => {
    const output = [call(0, '{"s":"}{"}'), call(1, '{"n":[1]}')];
    const { message } = await read(body + ends("completed", { output }));
    expect(message.content).toEqual([
      { type: "toolCall", id: "call_0", name: "t0", arguments: { s: "}{" } },
      { type: "toolCall", id: "call_1", name: "t1", arguments: { n: [1] } },
    ]);
    expect(message.stopReason).toBe("toolUse");
  });

  it("shows the first call as it comes, and its end before the stream's", async () => {
    server.answer((res) => void res.write(begin + args(1, "{}") + args(0, '{"s":1') + args(0, "}") + itemDone(0, call(0, '{"s":1}'))));
    const seen: string[] = [];
    for await (const event of await streamFn(responsesModel, hi)) {
      if ("contentIndex" in event) seen.push(`${event.type} ${event.contentIndex}`);
      if (seen.length === 6) break;
    }
    const first = ["toolcall_start 0", "toolcall_delta 0", "toolcall_delta 0", "toolcall_end 0"];
    expect(seen).toEqual([...first, "toolcall_start 1", "toolcall_delta 1"]);
  });

  it("reads a whole response of a server that does not stream", async () => {
    const output = [reasoning("rs_1", "Hm."), said("So", "."), { ...call(1, ""), id: undefined, call_id: undefined, arguments: { a: 1 } }];
    const response = { id: "resp_1", object: "response", status: "completed", output, usage: { input_tokens: 3 } };
    server.answer((res) => void res.setHeader("content-type", "application/json").end(JSON.stringify(response)));
    const { message } = await ask(streamFn, undefined, hi, responsesModel);
    expect(message.content).toMatchObject([{ thinking: "Hm." }, { text: "So." }, { id: "call_0", name: "t1", arguments: { a: 1 } }]);
    expect([message.stopReason, message.usage.input]).toEqual(["toolUse", 3]);
  });

  it.each([
    ["completed", {}, "stop", undefined],
    ["incomplete", { incomplete_details: { reason: "max_output_tokens" } }, "length", undefined],
    ["incomplete", { incomplete_details: { reason: "max_tool_calls" } }, "length", "max_tool_calls"],
    ["incomplete", {}, "length", undefined],
    ["completed", { status: "incomplete" }, "length", undefined],
  ])("ends a response that is %s with %o as %s", async (status, response, stopReason, raw) => {
    const { message } = await read(added(0, said()) + delta("output_text", 0, "x") + ends(status, response));
    expect([message.stopReason, message.rawStopReason, message.content]).toEqual([stopReason, raw, [{ type: "text", text: "x" }]]);
  });

  it("leaves the calls of a cut answer to the loop as length", async () => {
    const { message } = await read(begin + args(0, '{"s') + ends("incomplete", { incomplete_details: { reason: "max_output_tokens" } }));
    expect(message).toMatchObject({
      stopReason: "length",
      content: [{ id: "call_0", argumentsError: expect.any(String) }, { id: "call_1" }],
    });
  });

  it("ignores events, items and parts it does not know, and null", async () => {
    const odd = sse("null", "5", { type: "response.queued" }, { type: "constructor" }, { item: null }) + added(0, { type: "constructor" });
    const annotated = events({ type: "response.output_text.annotation.added" }) + itemDone(1, { type: "message", content: [null] });
    const nothing = delta("output_text", 1, "") + events({ type: "response.output_text.delta", delta: { a: 1 } });
    const { message } = await read(odd + annotated + nothing + delta("output_text", 2, "x") + ends("completed"));
    expect(message).toMatchObject({ stopReason: "stop", content: [{ type: "text", text: "x" }] });
  });

  const refusal = { type: "message", content: [{ type: "refusal", refusal: "No." }] };
  it.each([
    ["a refusal in the item only", itemDone(1, refusal) + ends("completed"), "No.", { kind: "refusal", retryable: false }],
    ["a refusal in no words", ends("incomplete", { incomplete_details: { reason: "content_filter" } }), "filter", { kind: "refusal" }],
    ["a failure", failed("server_error", "oops"), "oops", { kind: "network", retryable: true }],
    ["a limit", failed("rate_limit_exceeded", "Try again in 2s."), "2s", { kind: "rate_limit", retryable: true, retryAfterMs: 2000 }],
    ["a used-up budget", failed("insufficient_quota", "Pay."), "Pay", { kind: "rate_limit", retryable: false }],
    ["an overload", failed("server_is_overloaded", "x"), "x", { kind: "overloaded", retryable: true }],
    ["an order to wait", failed("slow_down", "x"), "x", { kind: "overloaded", retryable: true }],
    ["too long a request", failed("context_length_exceeded", "x"), "x", { kind: "context_overflow", retryable: false }],
    ["a forbidden prompt", failed("invalid_prompt", "x"), "x", { kind: "invalid_request", retryable: false }],
    ["a bad image", failed("invalid_base64_image", "x"), "x", { kind: "invalid_request", retryable: false }],
    ["a forbidden image", failed("image_content_policy_violation", "x"), "x", { kind: "refusal", retryable: false }],
    ["a failure in the guise of an end", ends("completed", { status: "failed", error: { message: "oops" } }), "oops", { kind: "unknown" }],
    ["a failure without an error", ends("failed", { error: null }), "did not explain", { kind: "unknown", retryable: false }],
    ["an end by the provider", ends("cancelled"), "did not explain", { kind: "unknown", retryable: false }],
    ["an error event", events({ type: "error", code: "server_error", message: "oops" }), "oops", { kind: "network", retryable: true }],
    ["an error event of a status", events({ type: "error", code: "429", message: "x" }), "x", { kind: "rate_limit", status: 429 }],
    ["a nested error", events({ type: "error", error: { code: "rate_limit_exceeded", message: "x" } }), "x", { kind: "rate_limit" }],
    ["an error event without words", events({ type: "error" }), "did not explain", { kind: "unknown", retryable: false }],
  ])("keeps the text in front of %s", async (_, body, words, info) => {
    const { message } = await read(added(0, said()) + delta("output_text", 0, "Half") + body);
    expect(message).toMatchObject({ stopReason: "error", content: [{ type: "text", text: "Half" }], errorInfo: info });
    expect(message.errorMessage).toContain(words);
  });

  it("counts what a failed response used", async () => {
    const { message } = await read(ends("failed", { error: { code: "server_error" }, usage: { input_tokens: 7, output_tokens: 2 } }));
    expect(message).toMatchObject({ errorMessage: "server_error", usage: { input: 7, output: 2, totalTokens: 9 } });
  });
});

function failed(code: string, message: string): string {
  return ends("failed", { error: { code, message } });
}
