import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type LlmContext,
  type Model,
  type StreamFn,
  type StreamOptions,
  userMessage,
} from "turnloop";
import { deferred } from "../helpers.js";

export const model: Model = { id: "gpt-test", provider: "openai", api: "openai-completions" };
export const priced: Model = { ...model, cost: { input: 1, output: 10, cacheRead: 0.5, cacheWrite: 2 } };
export const hi: LlmContext = { messages: [userMessage("hi", { timestamp: 1 })] };
/** Options of a client that logs nothing. */
export const quiet = { apiKey: "key-0", logLevel: "off" as const };

interface Answer {
  events: AssistantMessageEvent<string>[];
  message: AssistantMessage<string>;
  types: string[];
}

/** One call of a StreamFn, read to its end. */
export async function ask(streamFn: StreamFn, options?: StreamOptions, context = hi, to = model): Promise<Answer> {
  const events: AssistantMessageEvent<string>[] = [];
  for await (const event of await streamFn(to, context, options)) events.push(event);
  const last = events[events.length - 1];
  const message = last?.type === "done" ? last.message : last?.type === "error" ? last.error : undefined;
  if (!message) throw new Error("no terminal event");
  return { events, message, types: events.map(({ type }) => type) };
}

type Handler = (res: ServerResponse) => void;

/** A server that answers with raw bytes: what a mock of a provider cannot do wrong. */
export interface RawServer {
  url: string;
  /** What arrived, oldest first. */
  requests: { url: string; headers: IncomingHttpHeaders; body: any }[];
  /** One handler per request to come; the promise settles when the first one's response is closed. */
  answer(...handlers: Handler[]): Promise<void>;
  close(): Promise<void>;
}

export async function rawServer(): Promise<RawServer> {
  const requests: RawServer["requests"] = [];
  const waiting: { handler: Handler; closed: () => void }[] = [];
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const piece of req) body += piece;
    requests.push({ url: req.url ?? "", headers: req.headers, body: JSON.parse(body) });
    const next = waiting.shift();
    if (!next) return void res.writeHead(418).end();
    res.on("close", next.closed);
    res.setHeader("content-type", "text/event-stream");
    next.handler(res);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    answer(...handlers) {
      const closings = handlers.map((handler) => {
        const { promise, resolve } = deferred();
        waiting.push({ handler, closed: resolve });
        return promise;
      });
      return closings[0] as Promise<void>;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Server-sent events of these data, strings as they are. */
export function sse(...data: (object | string)[]): string {
  return data.map((item) => `data: ${typeof item === "string" ? item : JSON.stringify(item)}\n\n`).join("");
}

/** One chunk of a Chat Completions stream. */
export function chunk(delta: object, finish_reason: string | null = null): object {
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] };
}

/** Chunks of text. */
export function text(...parts: string[]): string {
  return sse(...parts.map((content) => chunk({ content })));
}

/** One chunk with pieces of calls. */
export function calls(...tool_calls: object[]): string {
  return sse(chunk({ tool_calls }));
}

/** How a stream ends well. */
export const stop = sse(chunk({}, "stop"), "[DONE]");
