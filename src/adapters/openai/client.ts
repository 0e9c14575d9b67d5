/** The vendor's client: created at the first call, or the host's with the key of one call (SPEC 12.1). */
import type { ClientOptions } from "openai";
import { importPeer } from "../shared/call.js";
import type { OpenAIOptions } from "./call.js";

/** What is used of a client of the `openai` package: an `OpenAI`, an `AzureOpenAI`, from any copy of it. */
export interface OpenAIClient {
  chat: { completions: { create(body: any, options?: any): PromiseLike<any> } };
  responses: { create(body: any, options?: any): PromiseLike<any> };
  withOptions(options: any): OpenAIClient;
  baseURL?: string;
  apiKey?: unknown;
}

export async function clientFor(caller: string, { client, ...options }: OpenAIOptions, apiKey: string | undefined): Promise<OpenAIClient> {
  if (client) return apiKey === undefined ? client : withKey(client, apiKey);
  const { OpenAI } = await importPeer(caller, "openai", () => import("openai"));
  return new OpenAI({ ...options, apiKey: apiKey ?? options.apiKey, fetch: legibly(options.fetch), maxRetries: 0 });
}

/** The host's client with the key of one request. That of Azure forgets its version and deployment unless told again. */
function withKey(client: OpenAIClient, apiKey: string): OpenAIClient {
  const { apiVersion, deploymentName } = client as { apiVersion?: unknown; deploymentName?: unknown };
  return client.withOptions({ apiKey, ...(apiVersion !== undefined && { apiVersion, deployment: deploymentName }) });
}

/**
 * A fetch whose responses the client can read: it looks for an error in one place of a body, and for answers in events.
 * Some servers put the error's text elsewhere, report it with status 200, or send a whole answer although asked to stream.
 */
function legibly(own: ClientOptions["fetch"]): NonNullable<ClientOptions["fetch"]> {
  return async (url, init) => {
    const response = await (own ?? fetch)(url, init);
    const json = /^application\/([\w.-]+\+)?json/i.test(response.headers.get("content-type") ?? "");
    if (!json || response.body === null) return response;
    const text = await response.text();
    const { status, statusText, headers } = response;
    return new Response(response.ok ? asEvent(text) : withError(text), { status, statusText, headers });
  };
}

function asEvent(text: string): string {
  const value = parse(text);
  return value === undefined ? text : `data: ${JSON.stringify(value)}\n\n`;
}

/** `{ error }` is what the client reads; others send a list of it, `{ detail }` or the fields of the error themselves. */
function withError(text: string): string {
  const parsed = parse(text);
  const body = Object(Array.isArray(parsed) ? parsed[0] : parsed) as Record<string, unknown>;
  if (parsed === undefined || (body["error"] && body === parsed)) return text;
  const error = body["error"] ?? ("message" in body ? body : { message: body["detail"] ?? parsed });
  return JSON.stringify({ error });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
