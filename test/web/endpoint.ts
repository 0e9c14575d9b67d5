/** An OpenAI-compatible server on loopback that lets a page in, and answers as each test tells it. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chunk, sse } from "../adapters/helpers.js";

type Handler = (res: ServerResponse) => void | Promise<void>;

export interface Endpoint {
  url: string;
  requests: { headers: Record<string, unknown>; body: any }[];
  /** One handler for each request to come. */
  answer(...handlers: Handler[]): void;
  close(): Promise<void>;
}

export async function endpoint(): Promise<Endpoint> {
  const requests: Endpoint["requests"] = [];
  const waiting: Handler[] = [];
  const server = createServer(async (req, res) => {
    res.setHeader("access-control-allow-origin", req.headers.origin ?? "*");
    res.setHeader("access-control-allow-headers", req.headers["access-control-request-headers"] ?? "*");
    res.setHeader("access-control-expose-headers", "retry-after");
    if (req.method === "OPTIONS") return void res.writeHead(204).end();
    let body = "";
    for await (const piece of req) body += piece;
    requests.push({ headers: req.headers, body: JSON.parse(body) });
    const next = waiting.shift();
    if (!next) return void res.writeHead(418).end();
    res.setHeader("content-type", "text/event-stream");
    await next(res);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    answer: (...handlers) => void waiting.push(...handlers),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

export const reasoning = (text: string): string => sse(chunk({ reasoning_content: text }));

/** Whole calls, side by side. */
export function callsOf(...calls: [name: string, args: object][]): string {
  return sse(
    chunk({
      tool_calls: calls.map(([name, args], index) => ({ index, id: `call_${index}`, function: { name, arguments: JSON.stringify(args) } })),
    }),
  );
}

/** The end of a stream, with what it cost. */
export function stopWith(prompt_tokens: number, completion_tokens: number): string {
  return sse(chunk({}, "stop"), { object: "chat.completion.chunk", choices: [], usage: { prompt_tokens, completion_tokens } }, "[DONE]");
}

export function failWith(status: number, message: string): Handler {
  return (res) => void res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } }));
}
