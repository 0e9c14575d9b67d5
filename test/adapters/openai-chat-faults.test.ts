import { getEventListeners } from "node:events";
import { type AgentEvent, type AssistantMessage, type AssistantMessageEvent, type StreamFn, withRetry } from "turnloop";
import { openaiChat } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run, textOf } from "../helpers.js";
import { ask, calls, chunk, hi, model, quiet, type RawServer, rawServer, sse, stop, text } from "./helpers.js";

// SPEC 12.1, 12.2, 14.3
describe("openaiChat when things go wrong on the wire", () => {
  let server: RawServer;
  let streamFn: StreamFn;

  beforeEach(async () => {
    server = await rawServer();
    streamFn = openaiChat({ ...quiet, baseURL: server.url });
  });
  afterEach(() => server.close());

  it.each([
    ["the connection is cut before the headers", [], "", /Connection error.*(closed|ECONNRESET|other side|hang up)/i],
    ["the connection is cut in the body", [text("Half an ")], "Half an ", /terminated/],
    [
      "the connection is cut in a call",
      [text("Let me"), calls({ index: 0, id: "c", function: { name: "x", arguments: '{"a' } })],
      "Let me",
      /terminated/,
    ],
  ])("keeps the text as a retryable network error when %s", async (_, parts, kept, words) => {
    server.answer((res) => {
      if (parts.length === 0) return void res.destroy();
      res.write(parts.join(""));
      setTimeout(() => res.destroy(), 20);
    });
    const { message } = await ask(streamFn);
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toMatch(words);
    expect(textOf(message as AssistantMessage)).toBe(kept);
  });

  it.each([
    ["ends without finish_reason", text("Half"), "network", true, /ended early/],
    ["ends in [DONE] without finish_reason", text("Half") + sse("[DONE]"), "network", true, /ended early/],
    ["has a line that is not JSON", `${text("Half")}data: {"choices":[{"del\n\n${stop}`, "network", true, /JSON/],
    ["reports an overload", text("Half") + sse({ error: { message: "x", type: "overloaded_error" } }), "overloaded", true, /x/],
    ["reports a status", text("Half") + sse({ error: { message: "slow down", code: 429 } }), "rate_limit", true, /slow down/],
    ["reports a server error", text("Half") + sse({ error: { message: "oops", type: "server_error" } }), "network", true, /oops/],
    ["says error without more", text("Half") + sse(chunk({}, "error")), "network", true, /did not explain/],
    ["was filtered", text("Half") + sse(chunk({}, "content_filter")), "refusal", false, /content filter/],
    ["is a refusal", text("Half") + sse(chunk({ refusal: "I will " }), chunk({ refusal: "not" })) + stop, "refusal", false, /I will not/],
  ])("keeps the text of a body that %s", async (_, body, kind, retryable, words) => {
    server.answer((res) => void res.end(body));
    const { message } = await ask(streamFn);
    expect(message).toMatchObject({ stopReason: "error", content: [{ type: "text", text: "Half" }], errorInfo: { kind, retryable } });
    expect(message.errorMessage).toMatch(words);
  });

  it("names the cause when no server answers", async () => {
    const { url } = server;
    await server.close();
    const { message } = await ask(openaiChat({ ...quiet, baseURL: url }));
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toContain("ECONNREFUSED");
  });

  it("calls a silent server a timeout after the client's own limit", async () => {
    server.answer(() => {});
    const { message } = await ask(openaiChat({ ...quiet, baseURL: server.url, timeout: 30 }));
    expect(message).toMatchObject({ errorInfo: { kind: "timeout", retryable: true } });
  });

  it.each([
    ["retry-after-ms", "1500", 1500],
    ["retry-after", "2.5", 2500],
    ["retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", 0],
    ["retry-after", "soon", undefined],
  ])("reads %s: %s", async (name, value, retryAfterMs) => {
    server.answer((res) => void res.writeHead(429, { [name]: value }).end());
    const { errorInfo } = (await ask(streamFn)).message;
    expect(errorInfo).toEqual({
      kind: "rate_limit",
      status: 429,
      retryable: true,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  });

  it("is asked again by withRetry when the connection is cut before the first word", async () => {
    server.answer(
      (res) => void res.destroy(),
      (res) => void res.end(text("Second try") + stop),
    );
    const record = await run(withRetry(streamFn, { minDelayMs: 1 }), { config: { model } });
    expect([record.outcome, textOf(record.messages.at(-1)), server.requests.length]).toEqual(["completed", "Second try", 2]);
  });

  it("keeps a finished answer whose connection breaks before the usage", async () => {
    server.answer((res) => {
      res.write(text("All of it") + sse(chunk({}, "stop")));
      setTimeout(() => res.destroy(), 20);
    });
    expect((await ask(streamFn)).message).toMatchObject({ stopReason: "stop", content: [{ text: "All of it" }] });
  });

  it.each(["before the headers", "in the body"])("ends as aborted %s, and the server sees the request cancelled", async (where) => {
    const controller = new AbortController();
    const closed = server.answer((res) => {
      if (where === "in the body") res.write(text("Half"));
      else controller.abort("enough");
    });
    const events: AssistantMessageEvent<string>[] = [];
    for await (const event of await streamFn(model, hi, { signal: controller.signal })) {
      events.push(event);
      if (event.type === "text_delta") controller.abort("enough");
    }
    await closed;
    expect(events.at(-1)).toMatchObject({ type: "error", reason: "aborted", error: { errorInfo: { kind: "aborted", retryable: false } } });
    expect(textOf((events.at(-1) as { error: AssistantMessage }).error)).toBe(where === "in the body" ? "Half" : "");
  });

  it("ends a run as aborted, and sends nothing for a signal that has already fired", async () => {
    const controller = new AbortController();
    const closed = server.answer((res) => void res.write(text("Half")));
    const onEvent = (event: AgentEvent): void => {
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") controller.abort();
    };
    const record = await run(streamFn, { config: { model }, signal: controller.signal, onEvent });
    await closed;
    expect([record.outcome, textOf(record.messages.at(-1))]).toEqual(["aborted", "Half"]);
    expect((await ask(streamFn, { signal: controller.signal })).message.stopReason).toBe("aborted");
    expect(server.requests).toHaveLength(1);
  });

  it("cancels the request when its stream is left early", async () => {
    const closed = server.answer((res) => void res.write(text("Half")));
    for await (const event of await streamFn(model, hi)) if (event.type === "text_delta") break;
    await closed;
  });

  it("leaves no listener on a signal that serves many calls", async () => {
    const { signal } = new AbortController();
    server.answer(...Array.from({ length: 3 }, () => (res: { end(body: string): unknown }) => void res.end(text("ok") + stop)));
    for (let n = 0; n < 3; n++) await ask(streamFn, { signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
