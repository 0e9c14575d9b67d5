import { getEventListeners } from "node:events";
import { createOpenAI } from "@ai-sdk/openai";
import { createGateway } from "ai";
import { type AgentEvent, type AssistantMessage, type AssistantMessageEvent, type Model, type StreamFn, withRetry } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { deferred, run, textOf } from "../helpers.js";
import { fakeModel, finish, streamOf, text as textParts, versions } from "./ai-sdk-helpers.js";
import { ask, calls, chunk, hi, type RawServer, rawServer, sse, stop, text } from "./helpers.js";

const model: Model = { id: "gpt-5", provider: "openai" };

/** The same ends of an answer as both APIs write them. */
const wires = {
  chat: {
    half: text("Half"),
    done: stop,
    call: calls({ index: 0, id: "c", type: "function", function: { name: "x", arguments: '{"a' } }),
    broken: 'data: {"choices":[{"del\n\n',
    overload: sse({ error: { message: "too many", type: "overloaded_error" } }),
    rateLimit: sse({ error: { message: "slow down", code: "rate_limit_exceeded", type: "tokens" } }),
    refusal: sse(chunk({ refusal: "I will not" }), chunk({}, "stop"), "[DONE]"),
    filtered: sse(chunk({}, "content_filter"), "[DONE]"),
    cut: sse(chunk({}, "length"), "[DONE]"),
  },
  responses: {
    half: sse(
      { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_1" } },
      { type: "response.output_text.delta", item_id: "msg_1", delta: "Half" },
    ),
    done: sse({ type: "response.completed", response: { usage: { input_tokens: 1, output_tokens: 1 } } }),
    call: sse(
      {
        type: "response.output_item.added",
        output_index: 1,
        item: { type: "function_call", id: "fc", call_id: "c", name: "x", arguments: "" },
      },
      { type: "response.function_call_arguments.delta", item_id: "fc", output_index: 1, delta: '{"a' },
    ),
    broken: 'data: {"type":"response.outp\n\n',
    overload: sse({
      type: "error",
      sequence_number: 1,
      error: { type: "server_error", code: "overloaded", message: "too many", param: null },
    }),
    rateLimit: sse({
      type: "response.failed",
      sequence_number: 1,
      response: { error: { code: "rate_limit_exceeded", message: "slow down" }, usage: null },
    }),
    refusal: sse(
      { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_1" } },
      { type: "response.refusal.delta", item_id: "msg_1", delta: "I will not" },
      { type: "response.refusal.done", item_id: "msg_1", refusal: "I will not" },
      { type: "response.completed", response: { usage: { input_tokens: 1, output_tokens: 1 } } },
    ),
    filtered: sse({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "content_filter" }, usage: { input_tokens: 1, output_tokens: 1 } },
    }),
    cut: sse({
      type: "response.incomplete",
      response: { incomplete_details: { reason: "max_output_tokens" }, usage: { input_tokens: 1, output_tokens: 1 } },
    }),
  },
};

// SPEC 12.1, 12.2, 14.3
describe.each(["chat", "responses"] as const)("aiSdk with @ai-sdk/openai when things go wrong on the wire: %s", (api) => {
  const wire = wires[api];
  let server: RawServer;
  let streamFn: StreamFn;

  beforeEach(async () => {
    server = await rawServer();
    streamFn = aiSdk(createOpenAI({ apiKey: "key-0", baseURL: server.url })[api]("gpt-5"));
  });
  afterEach(() => server.close());

  it.each([
    ["stop", wire.done],
    ["length", wire.cut],
  ])("reads a whole answer that ends in %s", async (stopReason, ending) => {
    server.answer((res) => void res.end(wire.half + ending));
    expect((await ask(streamFn)).message).toMatchObject({ stopReason, content: [{ type: "text", text: "Half" }] });
    expect(server.requests[0]?.headers.authorization).toBe("Bearer key-0");
  });

  it.each([
    ["before the headers", "", ""],
    ["in the body", wire.half, "Half"],
    ["in a call", wire.half + wire.call, "Half"],
  ])("keeps the text as a retryable network error when the connection is cut %s", async (_, body, kept) => {
    server.answer((res) => {
      if (body === "") return void res.destroy();
      res.write(body, () => setTimeout(() => res.destroy(), 20));
    });
    const { message } = await ask(streamFn);
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toMatch(/other side closed|terminated|hang up|ECONNRESET/);
    expect(textOf(message as AssistantMessage)).toBe(kept);
  });

  it.each([
    ["ends without its last event", wire.half, "Half", "network", true, /ended early/],
    ["ends in a call", wire.half + wire.call, "Half", "network", true, /ended early/],
    ["has a line that is not JSON", wire.half + wire.broken + wire.done, "Half", "network", true, /JSON/],
    ["reports an overload", wire.half + wire.overload, "Half", "overloaded", true, /^too many$/],
    ["begins with an overload", wire.overload, "", "overloaded", true, /^too many$/],
    ["reports a rate limit", wire.half + wire.rateLimit, "Half", "rate_limit", true, /^slow down$/],
    ["is a refusal", wire.refusal, "I will not", "refusal", false, /content filter/],
    ["was filtered", wire.half + wire.filtered, "Half", "refusal", false, /content filter stopped the answer \(content_filter\)/],
  ])("keeps the text of a body that %s", async (_, body, kept, kind, retryable, words) => {
    server.answer((res) => void res.end(body));
    const { message } = await ask(streamFn);
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind, retryable } });
    expect(message.errorMessage).toMatch(words);
    expect(textOf(message as AssistantMessage)).toBe(kept);
  });

  it.each([
    [401, '{"error":{"message":"Incorrect key","type":"invalid_request_error"}}', {}, "auth", undefined, /^Incorrect key$/],
    [429, '{"error":{"message":"slow down"}}', { "retry-after": "2.5" }, "rate_limit", 2500, /^slow down$/],
    [529, "<html>Overloaded</html>", { "retry-after-ms": "20" }, "overloaded", 20, /<html>Overloaded/],
    [400, '{"detail":"prompt is too long"}', {}, "context_overflow", undefined, /Bad Request: \{"detail":"prompt is too long"\}/],
    [503, "", {}, "overloaded", undefined, /Service Unavailable/],
  ] as const)("reads a bare %i with the body %s", async (status, body, headers, kind, retryAfterMs, words) => {
    server.answer((res) => void res.writeHead(status, { "content-type": "application/json", ...headers }).end(body));
    const { message } = await ask(streamFn);
    const retryable = kind === "rate_limit" || kind === "overloaded";
    expect(message.errorInfo).toEqual({ kind, status, retryable, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
    expect(message.errorMessage).toMatch(words);
    expect(server.requests).toHaveLength(1);
  });

  it("names the cause when no server answers, and a key that is missing", async () => {
    const { url } = server;
    await server.close();
    const { message } = await ask(aiSdk(createOpenAI({ apiKey: "k", baseURL: url })[api]("gpt-5")));
    expect(message).toMatchObject({ stopReason: "error", errorInfo: { kind: "network", retryable: true } });
    expect(message.errorMessage).toContain("ECONNREFUSED");
    const keyless = await ask(aiSdk(createOpenAI({ apiKey: undefined as never, baseURL: url })[api]("gpt-5")));
    expect(keyless.message).toMatchObject({
      errorInfo: { kind: "auth", retryable: false },
      errorMessage: expect.stringContaining("API key is missing"),
    });
  });

  it("is asked again by withRetry when the connection is cut before the first word", async () => {
    server.answer(
      (res) => void res.destroy(),
      (res) => void res.end(wire.half + wire.done),
    );
    const record = await run(withRetry(streamFn, { minDelayMs: 1 }), { config: { model } });
    expect([record.outcome, textOf(record.messages.at(-1)), server.requests.length]).toEqual(["completed", "Half", 2]);
  });

  it.each(["before the headers", "in the body"])("ends as aborted %s, and the server sees the request cancelled", async (where) => {
    const controller = new AbortController();
    const closed = server.answer((res) => {
      if (where === "in the body") res.write(wire.half);
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
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("ends a run as aborted, and sends nothing for a signal that has already fired", async () => {
    const controller = new AbortController();
    const closed = server.answer((res) => void res.write(wire.half));
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
    const closed = server.answer((res) => void res.write(wire.half));
    for await (const event of await streamFn(model, hi)) if (event.type === "text_delta") break;
    await closed;
  });
});

// SPEC 12.2, 14.3
describe.each(versions)("aiSdk with a %s model that minds no signal", (version) => {
  afterEach(() => void vi.useRealTimers());

  const abortAtText = async (stream: ReadableStream): Promise<AssistantMessage<string>> => {
    const controller = new AbortController();
    let last: AssistantMessageEvent<string> | undefined;
    for await (const event of await aiSdk(fakeModel(version, () => stream).model)(model, hi, { signal: controller.signal })) {
      last = event;
      if (event.type === "text_delta") controller.abort("enough");
    }
    return (last as { error: AssistantMessage<string> }).error;
  };

  it.each(["close", "hang"] as const)("ends as aborted when its stream would %s", async (end) => {
    const message = await abortAtText(streamOf(textParts("1", "Half"), end));
    expect(message).toMatchObject({ stopReason: "aborted", errorMessage: "aborted: enough", content: [{ type: "text", text: "Half" }] });
  });

  it("ends as aborted when its stream fails, and when it cannot be cancelled", async () => {
    const [first, ...others] = textParts("1", "Half");
    const stream = new ReadableStream({
      start(controller) {
        for (const part of [first, ...others]) controller.enqueue(part);
      },
      cancel: () => Promise.reject(new Error("cannot")),
    });
    expect((await abortAtText(stream)).stopReason).toBe("aborted");
  });

  it("lets the model hear of an abort before its stream is cancelled, so that it may close it itself", async () => {
    const controller = new AbortController();
    const heard: string[] = [];
    const doStream = async ({ abortSignal }: { abortSignal: AbortSignal }) => {
      const stream = new ReadableStream({
        start(parts) {
          for (const part of textParts("1", "Half")) parts.enqueue(part);
          abortSignal.addEventListener("abort", () => {
            parts.enqueue(finish(version));
            parts.close();
            heard.push("closed");
          });
        },
        cancel: () => void heard.push("cancelled"),
      });
      return { stream };
    };
    const streamFn = aiSdk({ specificationVersion: version, provider: "p", modelId: "m", doStream });
    let last: AssistantMessageEvent<string> | undefined;
    for await (const event of await streamFn(model, hi, { signal: controller.signal })) {
      last = event;
      if (event.type === "text_delta") controller.abort("enough");
    }
    expect(last).toMatchObject({ type: "error", reason: "aborted", error: { content: [{ text: "Half" }] } });
    await vi.waitFor(() => expect(heard).toEqual(["closed", "cancelled"]));
  });

  it.each([
    [
      "throws",
      {
        cancel: () => {
          throw new Error("cannot");
        },
      },
    ],
    ["is missing", {}],
    ["returns nothing", { cancel: () => undefined }],
  ])("ends when its reader's cancel %s", async (_, methods) => {
    const controller = new AbortController();
    const read = () => {
      controller.abort("enough");
      return new Promise(() => {});
    };
    const doStream = async () => ({ stream: { getReader: () => ({ read, ...methods }) as never } });
    const { message } = await ask(aiSdk({ specificationVersion: version, provider: "p", modelId: "m", doStream }), {
      signal: controller.signal,
    });
    expect(message).toMatchObject({ stopReason: "aborted", errorMessage: "aborted: enough" });
  });

  it("ends as aborted while the model has not even answered, and cancels the stream that comes later", async () => {
    const controller = new AbortController();
    const late = deferred<{ stream: ReadableStream }>();
    const cancelled = deferred<unknown>();
    const doStream = () => {
      controller.abort("enough");
      return late.promise;
    };
    const { message } = await ask(aiSdk({ specificationVersion: version, provider: "p", modelId: "m", doStream }), {
      signal: controller.signal,
    });
    expect(message.stopReason).toBe("aborted");
    late.resolve({ stream: new ReadableStream({ cancel: cancelled.resolve }) });
    expect(await cancelled.promise).toBe("enough");
  });

  it("fails with what its stream failed with, or it threw at once", async () => {
    const stream = (): ReadableStream => {
      const source = textParts("1", "Half")[Symbol.iterator]();
      return new ReadableStream({
        pull(controller) {
          const { done, value } = source.next();
          if (done) controller.error(new Error("socket lost"));
          else controller.enqueue(value);
        },
      });
    };
    const { message } = await ask(aiSdk(fakeModel(version, stream).model));
    expect(message).toMatchObject({ errorMessage: "socket lost", content: [{ text: "Half" }], errorInfo: { kind: "network" } });
    const throwing = fakeModel(version, () => {
      throw Object.assign(new Error("'x' functionality not supported."), { name: "AI_UnsupportedFunctionalityError" });
    });
    expect((await ask(aiSdk(throwing.model))).message.errorInfo).toEqual({ kind: "invalid_request", retryable: false });
  });

  it("keeps a finished answer whose stream fails, or stays open, after its last part", async () => {
    const parts = [...textParts("1", "All"), finish(version)];
    const failing = (): ReadableStream => {
      const source = parts[Symbol.iterator]();
      return new ReadableStream({
        pull(controller) {
          const { done, value } = source.next();
          if (done) controller.error(new Error("too late"));
          else controller.enqueue(value);
        },
      });
    };
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    for (const stream of [failing, () => streamOf(parts, "hang")]) {
      const asked = ask(aiSdk(fakeModel(version, stream).model));
      await vi.advanceTimersByTimeAsync(1000);
      expect((await asked).message).toMatchObject({ stopReason: "stop", content: [{ text: "All" }] });
      expect(vi.getTimerCount()).toBe(0);
    }
  });
});

// SPEC 12.2
describe("aiSdk with a gateway's model", () => {
  it("reads how long to wait from the response behind the gateway's own error", async () => {
    const server = await rawServer();
    const body = JSON.stringify({ error: { message: "slow down", type: "rate_limit_exceeded" } });
    server.answer((res) => void res.writeHead(429, { "content-type": "application/json", "retry-after": "7" }).end(body));
    const { message } = await ask(aiSdk(createGateway({ apiKey: "key-0", baseURL: server.url })("openai/gpt-5")));
    await server.close();
    expect(message.errorInfo).toEqual({ kind: "rate_limit", status: 429, retryable: true, retryAfterMs: 7000 });
    expect(message.errorMessage).toContain("slow down");
  });
});
