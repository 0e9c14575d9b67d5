/** JSON in, JSON out. */
import type { IncomingMessage, ServerResponse } from "node:http";

export type JsonObject = Record<string, unknown>;

/** A refusal: what the client is told. */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Record<string, string>;

  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

export function sendJson(response: ServerResponse, status: number, body: JsonObject, headers: Record<string, string> = {}): void {
  response.writeHead(status, {
    "content-type": "application/json; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  response.end(JSON.stringify(body));
}

/** The JSON object of a request. Its type must be named: a foreign page cannot do that without asking first, and nobody answers that. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<JsonObject> {
  const type = request.headers["content-type"] ?? "";
  if (!/^application\/json\s*(?:;|$)/i.test(type)) {
    throw new HttpError(415, "unsupported_media_type", `The body must be application/json; got "${type}".`);
  }
  const text = await readText(request, maxBytes);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new HttpError(400, "invalid_json", `The body is not JSON: ${(error as Error).message}`);
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new HttpError(400, "invalid_body", "The body must be a JSON object.");
  }
  return body as JsonObject;
}

async function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    // what is still to come is not read: the connection ends with the answer
    if (bytes > maxBytes) throw new HttpError(413, "too_large", `The body must be at most ${maxBytes} bytes.`, { connection: "close" });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
