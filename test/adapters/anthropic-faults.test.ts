import { getEventListeners } from "node:events";
import { type AgentEvent, type AssistantMessage, type AssistantMessageEvent, type StreamFn, withRetry } from "turnloop";
import { anthropicMessages } from "turnloop/anthropic";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run, textOf } from "../helpers.js";
import { askClaude, begin, claude, deltas, end, ok, openText, start, text, wire } from "./anthropic-helpers.js";
import { hi, quiet, type RawServer, rawServer } from "./helpers.js";

let server: RawServer;
let streamFn: StreamFn;

beforeEach(async () => {
  server = await rawServer();
  streamFn = anthropicMessages({ ...quiet, baseURL: server.url });
});
afterEach(() => server.close());

const half = begin() + openText(0, "Half");
const reported = (type: string, message = "x"): string => wire({ type: "error", error: { type, message } });

// SPEC 12.1, 12.2, 14.3
describe("anthropicMessages when things go wrong on the wire", () => {
  it.each([
    ["before the headers", "", "", /Connection error.*(closed|ECONNRESET|other side|hang up)/i],
    ["in the body", half, "Half", /terminated/],
    ["in a call", half + start(1, { type: "tool_use", id: "t", name: "x", input: {} }) + deltas.inputs(1, '{"a'), "Half", /terminated/],
    ["after the stop reason, before the last event", half + end().split("event: message_stop")[0], "Half", /terminated/],
  ])("keeps the text as a retryable network error when the connection is cut %s", async (_, body, kept, words) => {
    server.answer((res) => {
      if (body === "") return void res.destroy();
      res.write(body, () => setTimeout(() => res.destroy(), 20));
    });
    const { message } = await askClaude(streamFn);
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toMatch(words);
    expect(textOf(message as AssistantMessage)).toBe(kept);
  });

  it("keeps a finished answer whose connection breaks after its last event", async () => {
    server.answer((res) => void res.write(half + end(), () => setTimeout(() => res.destroy(), 20)));
    expect((await askClaude(streamFn)).message).toMatchObject({ stopReason: "stop", content: [{ text: "Half" }] });
  });

  const broken = 'event: content_block_delta\ndata: {"type":"content_bl\n\n';
  it.each([
    ["ends without message_stop", half, "network", true, /ended early/],
    ["ends after the stop reason, without message_stop", half + end().split("event: message_stop")[0], "network", true, /ended early/],
    ["has a line that is not JSON", half + broken + end(), "network", true, /JSON/],
    ["reports an overload", half + reported("overloaded_error", "Overloaded"), "overloaded", true, /^overloaded_error: Overloaded$/],
    ["reports an API error", half + reported("api_error", "Internal server error"), "network", true, /^api_error: Internal server error$/],
    ["reports a rate limit", half + reported("rate_limit_error"), "rate_limit", true, /x/],
    ["reports a timeout", half + reported("timeout_error"), "timeout", true, /x/],
    ["reports a bad key", half + reported("authentication_error"), "auth", false, /x/],
    ["reports a missing permission", half + reported("permission_error"), "auth", false, /x/],
    ["reports a bad request", half + reported("invalid_request_error"), "invalid_request", false, /x/],
    [
      "was filtered",
      half + reported("invalid_request_error", "Output blocked by content filtering policy"),
      "refusal",
      false,
      /content filtering/,
    ],
    ["reports an error of no known shape", half + wire({ type: "error" }), "unknown", false, /error/],
    [
      "reports an error in another event",
      `${half}event: message\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n`,
      "overloaded",
      true,
      /^overloaded_error: x$/,
    ],
  ])("keeps the text of a body that %s", async (_, body, kind, retryable, words) => {
    server.answer((res) => void res.end(body));
    const { message } = await askClaude(streamFn);
    expect(message).toMatchObject({ stopReason: "error", content: [{ type: "text", text: "Half" }], errorInfo: { kind, retryable } });
    expect(message.errorMessage).toMatch(words);
  });

  it("passes over events that say nothing", async () => {
    const nothing = `event: x\ndata: null\n\n: a comment\n\nevent: y\ndata: {}\n\ndata: {"type":"message_stop"}\n\n`;
    server.answer((res) => void res.end(nothing + begin() + nothing + text(0, "ok") + end()));
    expect((await askClaude(streamFn)).message).toMatchObject({ stopReason: "stop", content: [{ text: "ok" }] });
  });

  it("names the cause when no server answers", async () => {
    const { url } = server;
    await server.close();
    const { message } = await askClaude(anthropicMessages({ ...quiet, baseURL: url }));
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toContain("ECONNREFUSED");
  });

  it("calls a silent server a timeout after the client's own limit", async () => {
    server.answer(() => {});
    const { message } = await askClaude(anthropicMessages({ ...quiet, baseURL: server.url, timeout: 30 }));
    expect(message).toMatchObject({ errorInfo: { kind: "timeout", retryable: true } });
  });

  it.each([
    [400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", { kind: "context_overflow", retryable: false }],
    [
      400,
      "invalid_request_error",
      "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
      { kind: "context_overflow", retryable: false },
    ],
    [413, "request_too_large", "Request exceeds the maximum size", { kind: "context_overflow", retryable: false }],
    [400, "invalid_request_error", "messages.0: image/tiff is not supported", { kind: "invalid_request", retryable: false }],
    [401, "authentication_error", "invalid x-api-key", { kind: "auth", retryable: false }],
    [403, "permission_error", "not yours", { kind: "auth", retryable: false }],
    [404, "not_found_error", "model: claude-test", { kind: "invalid_request", retryable: false }],
    [429, "rate_limit_error", "slow down", { kind: "rate_limit", retryable: true, retryAfterMs: 7000 }],
    [500, "api_error", "Internal server error", { kind: "network", retryable: true }],
    [504, "timeout_error", "too slow", { kind: "timeout", retryable: true }],
    [529, "overloaded_error", "Overloaded", { kind: "overloaded", retryable: true }],
  ])("maps status %i %s: %s, after one request", async (status, type, message, info) => {
    const headers = { "content-type": "application/json", ...(status === 429 ? { "retry-after": "7" } : {}) };
    server.answer((res) => void res.writeHead(status, headers).end(JSON.stringify({ type: "error", error: { type, message } })));
    const answer = await askClaude(streamFn);
    expect(answer.message).toMatchObject({ stopReason: "error", content: [], errorMessage: `${status} ${type}: ${message}` });
    expect(answer.message.errorInfo).toEqual({ ...info, status });
    expect([answer.types, server.requests.length]).toEqual([["start", "error"], 1]);
  });

  it("cuts an error's text that is a page", async () => {
    const error = { type: "api_error", message: "x".repeat(100_000) };
    server.answer((res) => void res.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify({ type: "error", error })));
    expect((await askClaude(streamFn)).message.errorMessage).toHaveLength(2000);
  });

  it("explains an error page that is not the API's", async () => {
    server.answer((res) => void res.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>"));
    const { errorMessage, errorInfo } = (await askClaude(streamFn)).message;
    expect([errorMessage, errorInfo]).toEqual([expect.stringContaining("502"), { kind: "network", status: 502, retryable: true }]);
  });

  it("is asked again by withRetry when an overload is reported before the first word", async () => {
    server.answer(
      (res) => void res.end(begin() + reported("overloaded_error")),
      (res) => void res.end(ok),
    );
    const record = await run(withRetry(streamFn, { minDelayMs: 1 }), { config: { model: claude } });
    expect([record.outcome, textOf(record.messages.at(-1)), server.requests.length]).toEqual(["completed", "ok", 2]);
  });
});

// SPEC 12.1, 12.2, 7.1
describe("anthropicMessages and aborts", () => {
  it.each(["before the headers", "in the body"])("ends as aborted %s, and the server sees the request cancelled", async (where) => {
    const controller = new AbortController();
    const closed = server.answer((res) => {
      if (where === "in the body") res.write(half);
      else controller.abort("enough");
    });
    const events: AssistantMessageEvent<string>[] = [];
    for await (const event of await streamFn(claude, hi, { signal: controller.signal })) {
      events.push(event);
      if (event.type === "text_delta") controller.abort("enough");
    }
    await closed;
    expect(events.at(-1)).toMatchObject({ type: "error", reason: "aborted", error: { errorInfo: { kind: "aborted", retryable: false } } });
    const { error } = events.at(-1) as { error: AssistantMessage };
    expect([textOf(error), error.errorMessage]).toEqual([where === "in the body" ? "Half" : "", "aborted: enough"]);
  });

  it("ends as aborted when the abort comes while it waits for the next delta", async () => {
    const controller = new AbortController();
    const closed = server.answer((res) => void res.write(half));
    const pending = (await streamFn(claude, hi, { signal: controller.signal }))[Symbol.asyncIterator]();
    for (let n = 0; n < 3; n++) await pending.next(); // start, text_start, text_delta
    const next = pending.next();
    controller.abort();
    await closed;
    expect((await next).value).toMatchObject({ type: "text_end", content: "Half" });
    expect((await pending.next()).value).toMatchObject({ type: "error", reason: "aborted" });
  });

  it("ends a run as aborted, and sends nothing for a signal that has already fired", async () => {
    const controller = new AbortController();
    const closed = server.answer((res) => void res.write(half));
    const onEvent = (event: AgentEvent): void => {
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") controller.abort();
    };
    const record = await run(streamFn, { config: { model: claude }, signal: controller.signal, onEvent });
    await closed;
    expect([record.outcome, textOf(record.messages.at(-1))]).toEqual(["aborted", "Half"]);
    expect((await askClaude(streamFn, { signal: controller.signal })).message.stopReason).toBe("aborted");
    expect(server.requests).toHaveLength(1);
  });

  it("cancels the request when its stream is left early", async () => {
    const closed = server.answer((res) => void res.write(half));
    for await (const event of await streamFn(claude, hi)) if (event.type === "text_delta") break;
    await closed;
  });

  it("leaves no listener on a signal that serves many calls", async () => {
    const { signal } = new AbortController();
    server.answer(...Array.from({ length: 3 }, () => (res: { end(body: string): unknown }) => void res.end(ok)));
    for (let n = 0; n < 3; n++) await askClaude(streamFn, { signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
