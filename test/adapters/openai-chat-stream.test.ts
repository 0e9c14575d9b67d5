import type { AssistantMessage, StreamFn, ToolCall } from "turnloop";
import { openaiChat } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, calls, chunk, hi, model, priced, quiet, type RawServer, rawServer, sse, text } from "./helpers.js";

const callsOf = (message: AssistantMessage<string>): ToolCall[] => message.content.filter((block) => block.type === "toolCall");

// SPEC 12.2
describe("openaiChat reading what compatible servers send", () => {
  let server: RawServer;
  let streamFn: StreamFn;

  beforeEach(async () => {
    server = await rawServer();
    streamFn = openaiChat({ ...quiet, baseURL: server.url });
  });
  afterEach(() => server.close());

  const part = (index: number | undefined, json: string, head?: { id?: string; name?: string }): object => ({
    ...(index === undefined ? {} : { index }),
    ...(head?.id ? { id: head.id } : {}),
    function: { ...(head?.name ? { name: head.name } : {}), arguments: json },
  });
  const [A, B] = [
    { id: "a", name: "x" },
    { id: "b", name: "y" },
  ];
  const both = [
    ["a", "x", { s: "}{" }],
    ["b", "y", { n: [1] }],
  ];
  it.each([
    [
      "interleaved",
      calls(part(0, "", A), part(1, "", B)) + calls(part(1, '{"n":')) + calls(part(0, '{"s":"}')) + calls(part(1, "[1]}"), part(0, '{"}')),
      both,
    ],
    ["with text in between", calls(part(0, '{"s":"}', A)) + text("so") + calls(part(0, '{"}')) + calls(part(1, '{"n":[1]}', B)), both],
    ["all of index 0", calls(part(0, '{"s":"}{"}', A)) + calls(part(0, '{"n":', B)) + calls(part(0, "[1]}")), both],
    ["without any index", calls(part(undefined, '{"s":"}{"}', A), part(undefined, '{"n":', B)) + calls(part(undefined, "[1]}")), both],
    [
      "with arguments as objects",
      sse("null") + calls({ index: 0, id: "a", function: { name: "x", arguments: { s: "}{" } } }, part(1, '{"n":[1]}', B)),
      both,
    ],
    [
      "with null for what is not known",
      sse({ choices: [{ index: null, delta: { tool_calls: [{ ...part(0, '{"s":"}', A), index: null }, null] } }] }) +
        calls({ ...part(undefined, '{"}'), index: null, id: null }, part(undefined, '{"n":[1]}', B)),
      both,
    ],
    ["with id and name repeated", calls(part(0, '{"s":', A)) + calls(part(0, '"}{"}', A)) + calls(part(1, '{"n":[1]}', B)), both],
    [
      "without ids or arguments",
      calls(part(0, "", { name: "x" }), part(1, "", { name: "y" })),
      [
        ["call_0", "x", {}],
        ["call_1", "y", {}],
      ],
    ],
  ])("reads calls %s", async (_, body, expected) => {
    server.answer((res) => void res.end(body + sse(chunk({}, "tool_calls"))));
    const { message, events } = await ask(streamFn);
    expect(callsOf(message).map(({ id, name, arguments: args }) => [id, name, args])).toEqual(expected);
    expect(message.stopReason).toBe("toolUse");
    const open: number[] = [];
    for (const event of events) {
      if (event.type.endsWith("_start")) open.push((event as { contentIndex: number }).contentIndex);
      if (event.type.endsWith("_end")) expect(open.pop()).toBe((event as { contentIndex: number }).contentIndex);
      expect(open.length).toBeLessThan(2);
    }
  });

  it("shows the second of two calls in a row before the stream ends", async () => {
    server.answer((res) => void res.write(calls(part(0, '{"s":1}', A)) + calls(part(1, '{"n":', B))));
    const seen: string[] = [];
    for await (const event of await streamFn(model, hi)) {
      if (event.type === "toolcall_start" || event.type === "toolcall_end") seen.push(`${event.type} ${event.contentIndex}`);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual(["toolcall_start 0", "toolcall_end 0", "toolcall_start 1"]);
  });

  it.each([
    ["calls after all", calls(part(0, "{}", A)), "stop", "toolUse", undefined],
    ["no calls", text("x"), "tool_calls", "stop", undefined],
    ["a word nobody knows", text("x"), "eos", "stop", "eos"],
    ["a word of objects", text("x"), "constructor", "stop", "constructor"],
    ["cut calls", calls(part(0, '{"a', A)), "length", "length", undefined],
    ["the limit in the word of another API", text("x"), "max_tokens", "length", undefined],
  ])("lets the content decide about the stop reason: %s", async (_, body, word, stopReason, raw) => {
    server.answer((res) => void res.end(body + sse(chunk({}, word))));
    const { message } = await ask(streamFn);
    expect([message.stopReason, message.rawStopReason]).toEqual([stopReason, raw]);
  });

  it("reads the first choice only, either reasoning field, and usage that counts cache reads and writes", async () => {
    const other = { choices: [{ index: 1, delta: { content: "other" } }] };
    const usage = { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } };
    const body = sse(chunk({ reasoning: "Hm" }), chunk({ reasoning: "m." }), other, chunk({ content: "one" }), chunk({}, "stop"), {
      choices: [],
      usage,
    });
    server.answer((res) => void res.end(body));
    const { message } = await ask(streamFn, undefined, hi, priced);
    expect(message.content).toEqual([
      { type: "thinking", thinking: "Hmm.", thinkingSignature: "reasoning" },
      { type: "text", text: "one" },
    ]);
    expect(message.usage).toMatchObject({ input: 10, output: 7, cacheRead: 60, cacheWrite: 30, totalTokens: 107 });
    expect(message.usage.cost.total).toBeCloseTo((10 + 70 + 30 + 60) / 1e6, 12);
  });

  it.each([
    ["error", "network", /did not explain/],
    ["network_error", "network", /connection/],
    ["abort", "network", /aborted/],
    ["insufficient_system_resource", "overloaded", /resources/],
  ])("does not take the word %s for an end", async (word, kind, words) => {
    server.answer((res) => void res.end(text("Half") + sse(chunk({}, word))));
    const { message } = await ask(streamFn);
    expect(message).toMatchObject({ stopReason: "error", content: [{ text: "Half" }], errorInfo: { kind, retryable: true } });
    expect(message.errorMessage).toMatch(words);
  });

  it("reads an error in a chunk's place", async () => {
    const error = { object: "error", message: "maximum context length", type: "BadRequestError", code: 400 };
    server.answer((res) => void res.end(text("Half") + sse(error, "[DONE]")));
    const info = { kind: "context_overflow", status: 400, retryable: false };
    expect((await ask(streamFn)).message).toMatchObject({ content: [{ text: "Half" }], errorMessage: error.message, errorInfo: info });
  });

  it("does not take an empty word in every chunk for an end", async () => {
    server.answer((res) => void res.end(sse(chunk({ content: "Half" }, ""))));
    expect((await ask(streamFn)).message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network" } });
  });

  it("reads content that comes in parts, reasoning among them, and leaves out what is no text", async () => {
    const parts = [{ type: "thinking", thinking: [{ type: "text", text: "Hm" }, null] }, null, { type: "image_url", image_url: "x" }];
    const body = sse(
      chunk({ content: parts, reasoning: { effort: "low" } }),
      chunk({ content: [{ type: "text", text: "4" }] }),
      chunk({ content: "2" }),
    );
    server.answer((res) => void res.end(body + sse(chunk({}, "stop"))));
    expect((await ask(streamFn)).message.content).toEqual([
      { type: "thinking", thinking: "Hm" },
      { type: "text", text: "42" },
    ]);
  });

  it("keeps reasoning apart that came in two fields", async () => {
    const body = sse(chunk({ reasoning: "A" }), chunk({ reasoning_content: "B" }), chunk({ content: "x" }, "stop"));
    server.answer((res) => void res.end(body));
    expect((await ask(streamFn)).message.content.slice(0, 2)).toEqual([
      { type: "thinking", thinking: "A", thinkingSignature: "reasoning" },
      { type: "thinking", thinking: "B", thinkingSignature: "reasoning_content" },
    ]);
  });

  it("reads a whole answer of a server that does not stream", async () => {
    const tool_calls = [
      { id: "a", type: "function", function: { name: "x", arguments: '{"s":1}' } },
      { id: "b", type: "function", function: { name: "y", arguments: '{"n":2}' } },
    ];
    const answer = {
      choices: [{ index: 0, message: { content: "So", tool_calls }, finish_reason: "tool_calls" }],
      usage: { prompt_tokens: 3 },
    };
    server.answer((res) => void res.setHeader("content-type", "application/json").end(JSON.stringify(answer, null, 2)));
    const { message } = await ask(streamFn);
    expect(message).toMatchObject({ stopReason: "toolUse", content: [{ text: "So" }, { id: "a" }, { id: "b" }], usage: { input: 3 } });
  });

  it("never counts below zero, nor what is no number", async () => {
    const thought = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 65, completion_tokens_details: { reasoning_tokens: 40 } };
    server.answer((res) => void res.end(text("x") + sse(chunk({}, "stop"), { choices: [], usage: thought })));
    expect((await ask(streamFn)).message.usage).toMatchObject({ input: 20, output: 45, totalTokens: 65 });
    const usage = { prompt_tokens: 5, completion_tokens: "many", prompt_tokens_details: { cached_tokens: 9, cache_write_tokens: -4 } };
    server.answer((res) => void res.end(text("x") + sse(chunk({}, "stop"), { choices: [], usage })));
    expect((await ask(streamFn)).message.usage).toMatchObject({ input: 0, output: 0, cacheRead: 9, cacheWrite: 0, totalTokens: 9 });
  });
});
