import { getEventListeners } from "node:events";
import type { ServerResponse } from "node:http";
import { type AgentEvent, type AssistantMessage, type AssistantMessageEvent, type StreamFn, type StreamOptions, withRetry } from "turnloop";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run, textOf } from "../helpers.js";
import { ask, hi, quiet, type RawServer, rawServer, sse } from "./helpers.js";
import { chatWire, responsesWire } from "./openai-wires.js";

// SPEC 12.1, 12.2, 14.3
describe.each([chatWire, responsesWire])("$name when things go wrong on the wire", (wire) => {
  const { model, text } = wire;
  let server: RawServer;
  let streamFn: StreamFn;

  beforeEach(async () => {
    server = await rawServer();
    streamFn = wire.make({ ...quiet, baseURL: server.url });
  });
  afterEach(() => server.close());

  const call = (options?: StreamOptions, of = streamFn) => ask(of, options, hi, model);

  it.each([
    ["before the headers", "", "", /Connection error.*(closed|ECONNRESET|other side|hang up)/i],
    ["in the body", text("Half an "), "Half an ", /terminated/],
    ["in a call", text("Let me") + wire.callBegins, "Let me", /terminated/],
  ])("keeps the text as a retryable network error when the connection is cut %s", async (_, body, kept, words) => {
    server.answer((res) => {
      if (body === "") return void res.destroy();
      res.write(body);
      setTimeout(() => res.destroy(), 20);
    });
    const { message } = await call();
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toMatch(words);
    expect(textOf(message as AssistantMessage)).toBe(kept);
  });

  it.each([
    ["ends without its last word", text("Half"), "network", true, /ended early/],
    ["ends in [DONE] without its last word", text("Half") + sse("[DONE]"), "network", true, /ended early/],
    ["has a line that is not JSON", `${text("Half")}data: {"choices":[{"del\n\n${wire.last}`, "network", true, /JSON/],
    ["reports an overload", text("Half") + sse({ error: { message: "x", type: "overloaded_error" } }), "overloaded", true, /x/],
    ["reports a status", text("Half") + sse({ error: { message: "slow down", code: 429 } }), "rate_limit", true, /slow down/],
    ["reports too many requests", text("Half") + sse({ error: { message: "x", code: "too_many_requests" } }), "rate_limit", true, /x/],
    [
      "reports an error in its own event",
      `${text("Half")}event: error\n${sse({ code: "server_error", message: "oops" })}`,
      "network",
      true,
      /oops/,
    ],
    ["reports a server error", text("Half") + sse({ error: { message: "oops", type: "server_error" } }), "network", true, /oops/],
    ["was filtered", text("Half") + wire.filtered, "refusal", false, /content filter/],
    ["is a refusal", text("Half") + wire.refusal, "refusal", false, /I will not/],
  ])("keeps the text of a body that %s", async (_, body, kind, retryable, words) => {
    server.answer((res) => void res.end(body));
    const { message } = await call();
    expect(message).toMatchObject({ stopReason: "error", content: [{ type: "text", text: "Half" }], errorInfo: { kind, retryable } });
    expect(message.errorMessage).toMatch(words);
  });

  it.each(["", "<html>Welcome</html>", ": ping\n\n"])("says that a body held no event: %j", async (body) => {
    server.answer((res) => void res.setHeader("content-type", "text/html").end(body));
    const { message } = await call();
    expect(message).toMatchObject({ content: [], errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toMatch(/no event/);
  });

  it.each([
    ["in a list", [{ error: { message: "prompt is too long" } }]],
    ["in no error", { object: "error", message: "This model's maximum context length is 9" }],
    ["as a detail", { detail: "the input is too long" }],
    ["as a text", { error: "exceeds the maximum context" }],
  ])("finds the text of an error that the server put %s", async (_, body) => {
    server.answer((res) => void res.writeHead(400, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body)));
    const { message } = await call();
    expect(message.errorInfo).toEqual({ kind: "context_overflow", status: 400, retryable: false });
    expect(JSON.stringify(body)).toContain(message.errorMessage?.replace(/^400 "?|"$/g, ""));
  });

  it.each([
    [400, { code: "invalid_prompt", message: "Your prompt was flagged as potentially violating our usage policy." }, "refusal"],
    [403, { code: 403, message: "Your chosen model requires moderation and your input was flagged" }, "refusal"],
    [400, { code: "cyber_policy", message: "no" }, "refusal"],
    [400, { message: "Your request exceeded model token limit: 262144" }, "context_overflow"],
  ])("tells a refusal and an overflow by their words: %i %j", async (status, error, kind) => {
    server.answer((res) => void res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error })));
    expect((await call()).message.errorInfo).toEqual({ kind, status, retryable: false });
  });

  it("reads an error that comes with status 200, and cuts a text that is a page", async () => {
    server.answer(
      (res) => void res.setHeader("content-type", "application/json").end(JSON.stringify({ error: { message: "busy", code: 529 } })),
      (res) => void res.writeHead(502, { "content-type": "text/html" }).end("<p>".repeat(100_000)),
    );
    expect((await call()).message).toMatchObject({ errorMessage: "busy", errorInfo: { kind: "overloaded", status: 529, retryable: true } });
    const { errorInfo, errorMessage = "" } = (await call()).message;
    expect([errorInfo, errorMessage.length]).toEqual([{ kind: "network", status: 502, retryable: true }, 2000]);
  });

  it("names the cause when no server answers", async () => {
    const { url } = server;
    await server.close();
    const { message } = await call({}, wire.make({ ...quiet, baseURL: url }));
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toContain("ECONNREFUSED");
  });

  it("calls a silent server a timeout after the client's own limit", async () => {
    server.answer(() => {});
    const { message } = await call({}, wire.make({ ...quiet, baseURL: server.url, timeout: 30 }));
    expect(message).toMatchObject({ errorInfo: { kind: "timeout", retryable: true } });
  });

  it("keeps a key out of the error's text", async () => {
    server.answer((res) => void res.writeHead(401).end(JSON.stringify({ error: { message: "No such key: secret-key-1" } })));
    expect((await call({ apiKey: "secret-key-1" })).message.errorMessage).toBe("401 No such key: [the API key]");
    expect((await call({ apiKey: "secret\nkey-2" })).message.errorMessage).not.toContain("secret");
  });

  it("is asked again by withRetry when the connection is cut before the first word", async () => {
    server.answer(
      (res) => void res.destroy(),
      (res) => void res.end(text("Second try") + wire.last),
    );
    const record = await run(withRetry(streamFn, { minDelayMs: 1 }), { config: { model } });
    expect([record.outcome, textOf(record.messages.at(-1)), server.requests.length]).toEqual(["completed", "Second try", 2]);
  });

  it.each<[string, (res: ServerResponse) => void]>([
    ["breaks", (res) => void setTimeout(() => res.destroy(), 20)],
    ["is damaged", (res) => void res.end("data: {\n\n")],
  ])("keeps a finished answer whose connection %s", async (_, then) => {
    const closed = server.answer((res) => {
      res.write(text("All of it") + wire.last);
      then(res);
    });
    expect((await call()).message).toMatchObject({ stopReason: "stop", content: [{ text: "All of it" }] });
    await closed;
  });

  it.each(["before the headers", "in the body", "in the body of an error"])("ends as aborted %s, and the server sees it", async (where) => {
    const controller = new AbortController();
    const closed = server.answer((res) => {
      if (where === "in the body") return void res.write(text("Half"));
      if (where === "in the body of an error") res.writeHead(500).write("{");
      setTimeout(() => controller.abort("enough"), where === "before the headers" ? 0 : 20);
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

  it("ends as aborted while the key is fetched, and after the last word", async () => {
    const [early, late] = [new AbortController(), new AbortController()];
    const apiKey = async (): Promise<string> => {
      early.abort();
      return "key";
    };
    expect((await call({ signal: early.signal }, wire.make({ ...quiet, apiKey, baseURL: server.url }))).message.stopReason).toBe("aborted");
    expect(server.requests).toEqual([]);
    server.answer((res) => {
      res.write(text("All of it") + wire.last);
      setTimeout(() => late.abort(), 20);
    });
    expect((await call({ signal: late.signal })).message).toMatchObject({ stopReason: "aborted", content: [{ text: "All of it" }] });
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
    expect((await call({ signal: controller.signal })).message.stopReason).toBe("aborted");
    expect(server.requests).toHaveLength(1);
  });

  it("cancels the request when its stream is left early", async () => {
    const closed = server.answer((res) => void res.write(text("Half")));
    for await (const event of await streamFn(model, hi)) if (event.type === "text_delta") break;
    await closed;
  });

  it("leaves no listener on a signal that serves many calls", async () => {
    const { signal } = new AbortController();
    server.answer(...Array.from({ length: 3 }, () => (res: ServerResponse) => void res.end(text("ok") + wire.last)));
    for (let n = 0; n < 3; n++) await call({ signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

// SPEC 12.2, 14.3
it("waits a second, not for ever, when a connection is held open behind a finished answer", async () => {
  const held = async ({ make, model, text, last }: typeof chatWire): Promise<string> => {
    const server = await rawServer();
    const closed = server.answer((res) => void res.write(text("All of it") + last));
    const { message } = await ask(make({ ...quiet, baseURL: server.url }), {}, hi, model);
    await closed;
    await server.close();
    return `${message.stopReason}: ${textOf(message as AssistantMessage)}`;
  };
  expect(await Promise.all([chatWire, responsesWire].map(held))).toEqual(["stop: All of it", "stop: All of it"]);
});

// SPEC 12.1
describe("a server that says itself whether to ask again", () => {
  it.each([
    [409, "true", { kind: "invalid_request", status: 409, retryable: true }],
    [429, "false", { kind: "rate_limit", status: 429, retryable: false }],
    [503, "", { kind: "overloaded", status: 503, retryable: true }],
  ])("is believed: %i with x-should-retry %j", async (status, told, errorInfo) => {
    const server = await rawServer();
    server.answer((res) => void res.writeHead(status, { "x-should-retry": told }).end());
    const answer = await ask(chatWire.make({ ...quiet, baseURL: server.url }));
    await server.close();
    expect(answer.message.errorInfo).toEqual(errorInfo);
  });
});

// SPEC 12.2
describe("waiting times", () => {
  it.each([
    [{ "retry-after-ms": "1500" }, "no", 1500],
    [{ "retry-after": "2.5" }, "Please try again in 9s.", 2500],
    [{ "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, "no", 0],
    [{ "retry-after": "soon" }, "no", undefined],
    [{}, "Rate limit reached. Please try again in 1.25s. Visit us.", 1250],
    [{}, "Rate limit reached. Please try again in 28ms.", 28],
    [{}, "Rate limit reached. Please try again in 1m2.5s. Visit us.", 62_500],
    [{}, "Rate limit reached. Please try again in 1h0m3s.", 3_603_000],
    [{}, "You exceeded your current quota. Please retry in 12.3s.", 12_300],
    [{}, "Please retry after 13 seconds, or in 5 minutes.", 13_000],
    [{}, "Try again in 2 weeks.", undefined],
    [{}, "Try again in a minute.", undefined],
  ])("are read from %o and %j", async (headers, message, retryAfterMs) => {
    const server = await rawServer();
    server.answer((res) => void res.writeHead(429, headers as Record<string, string>).end(JSON.stringify({ error: { message } })));
    const answer = await ask(chatWire.make({ ...quiet, baseURL: server.url }));
    await server.close();
    const known = retryAfterMs === undefined ? {} : { retryAfterMs };
    expect(answer.message.errorInfo).toEqual({ kind: "rate_limit", status: 429, retryable: true, ...known });
  });
});
