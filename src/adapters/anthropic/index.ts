/**
 * Claude, through the official `@anthropic-ai/sdk` client.
 *
 * @module turnloop/anthropic
 */
import type { ClientOptions } from "@anthropic-ai/sdk";
import { shorten } from "../../errors.js";
import { AssistantMessageBuilder } from "../../message-builder.js";
import type { ModelErrorInfo } from "../../messages.js";
import type { AssistantMessageEvent, LlmContext, Model, StreamFn, StreamOptions } from "../../stream.js";
import { importPeer } from "../shared/call.js";
import { errorInfo, explain, MAX_TEXT } from "../shared/errors.js";
import { withoutSecrets } from "../shared/secrets.js";
import { streamAnswer } from "../shared/stream-answer.js";
import { MessagesAnswer, type WireEvent } from "./answer.js";
import { type Block, type MessagesBody, messagesBody, type Turn } from "./request.js";

/** What is used of a client: an `Anthropic` of any copy of its package, or the vendor's clients for other clouds. */
export interface AnthropicClient {
  messages: { create(body: any, options?: any): PromiseLike<any> };
  withOptions(options: any): AnthropicClient;
  apiKey?: unknown;
  authToken?: unknown;
}

/** Options of the vendor's client, which is created with them, or a `client` of your own. */
export interface AnthropicMessagesOptions extends ClientOptions {
  /** Used in place of a client made here; the vendor's options are then not looked at. */
  client?: AnthropicClient;
  /** `false`: no `cache_control` is set on system prompt, tools and the last message. Default true. */
  cache?: boolean;
}

/** How often a model that paused is asked to go on. */
const MAX_CONTINUATIONS = 5;

/** How long a body may stay open after its last event. Read to its end, its connection serves the next call. */
const CLOSING_MS = 100;

/**
 * A StreamFn for Anthropic's Messages API. Needs the package `@anthropic-ai/sdk`, which is loaded by the first call.
 * `apiKey` of a call is that request's credential; the client's own retries are off, `withRetry` is the place for them.
 *
 * Stream options it does not know (`top_p`, `stop_sequences`, `metadata`, `thinking`, `output_config`, ...) go into the
 * request's body as they are; the provider's own tools, given as `tools`, are put before the loop's. `maxTokens`, else
 * `model.maxTokens`, else 8192 is sent as `max_tokens`.
 *
 * `reasoning` becomes a thinking budget in tokens, at most three quarters of `max_tokens`, and no temperature is sent:
 *
 * | minimal | low   | medium | high   | xhigh  |
 * |---------|-------|--------|--------|--------|
 * | 1,024   | 2,048 | 8,192  | 16,384 | 32,768 |
 *
 * The model does not think where the API would refuse it: `max_tokens` of 1,024 or less, a forced tool (`toolChoice`
 * "required" or a name), the middle of a tool loop that began without thinking. Newer models know no budgets: give them
 * `thinking: { type: "adaptive" }` and `output_config: { effort }`; a `thinking` option always wins over `reasoning`.
 *
 * The API reads PNG, JPEG, GIF and WebP: in place of any other image a text says that it was left out.
 *
 * Thinking is kept with its signature, redacted thinking as a block with `redacted: true` and no text; both go back to the
 * `api` and provider that wrote them. What the provider's own tools did (`server_tool_use` and its results) is not kept in
 * the message. A turn they paused is continued up to 5 times, within one message whose usage is the sum (SPEC 12.1, 12.2).
 *
 * @example
 * const streamFn = withRetry(anthropicMessages());                                            // key from ANTHROPIC_API_KEY
 * const model = { id: "claude-sonnet-4-5", provider: "anthropic", api: "anthropic-messages", maxTokens: 64_000 };
 * const config = { model, streamOptions: { reasoning: "medium" } };
 * await runAgentLoop([userMessage("Hi")], context, config, emit, signal, streamFn);
 */
export function anthropicMessages(options: AnthropicMessagesOptions = {}): StreamFn {
  const { client, cache = true, ...clientOptions } = options;
  // one for all calls without a key: it may hold a token it had to ask for
  let shared = client;
  const connect = async (apiKey: string | undefined): Promise<AnthropicClient> => {
    if (apiKey !== undefined) return client ? client.withOptions({ apiKey }) : createClient(clientOptions, apiKey);
    shared ??= await createClient(clientOptions);
    return shared;
  };
  return (given, context, streamOptions = {}) => {
    const model = { ...given, api: given.api ?? "anthropic-messages" };
    const secrets = (): unknown[] => [
      clientOptions.apiKey,
      clientOptions.authToken,
      clientOptions.defaultHeaders,
      shared?.apiKey,
      shared?.authToken,
    ];
    return answer(model, context, streamOptions, cache, connect, secrets);
  };
}

/** The requests of one answer: more than one when the model pauses. */
function answer(
  model: Model,
  context: LlmContext,
  options: StreamOptions,
  cache: boolean,
  connect: (apiKey: string | undefined) => Promise<AnthropicClient>,
  secrets: () => unknown[],
): AsyncGenerator<AssistantMessageEvent> {
  const { signal, headers, apiKey } = options;
  const builder = new AssistantMessageBuilder(model);
  const reader = new MessagesAnswer(builder);
  let client: AnthropicClient | undefined;
  let body: MessagesBody | undefined;
  let continued = 0;
  const open = async (own: AbortSignal): Promise<AsyncIterator<WireEvent | null>> => {
    client ??= await connect(apiKey);
    body ??= messagesBody(model, context, options, cache);
    const events: AsyncIterable<WireEvent | null> = await client.messages.create(body, { signal: own, headers, maxRetries: 0 });
    return events[Symbol.asyncIterator]();
  };
  const nextRequest = (): AssistantMessageEvent[] | undefined => {
    const paused = continued++ < MAX_CONTINUATIONS ? reader.resume() : undefined;
    if (!paused || !body) return undefined;
    const { content, ...container } = paused;
    body = { ...body, ...container, messages: extended(body.messages, content) };
    return reader.nextRequest();
  };
  const failure = (error: unknown): [Error, ModelErrorInfo] => [
    new Error(withoutSecrets(failureText(error), apiKey, headers, ...secrets())),
    errorInfo(error),
  ];
  return streamAnswer({ builder, signal, open, nextRequest, failure, ending: "a message_stop", closingMs: CLOSING_MS }, reader);
}

/** The conversation with what the model has written so far, in one message however often it paused. */
function extended(messages: Turn[], content: Block[]): Turn[] {
  const last = messages[messages.length - 1];
  if (last?.role === "assistant") return [...messages.slice(0, -1), { role: "assistant", content: [...last.content, ...content] }];
  return content.length === 0 ? messages : [...messages, { role: "assistant", content }];
}

/** The client takes one credential: the key of a call comes in place of whatever the options hold. */
async function createClient(options: ClientOptions, apiKey?: string): Promise<AnthropicClient> {
  const { Anthropic } = await importPeer("anthropicMessages", "@anthropic-ai/sdk", () => import("@anthropic-ai/sdk"));
  const credential = apiKey === undefined ? {} : { authToken: null, credentials: null, config: null, profile: null, apiKey };
  return new Anthropic({ ...options, ...credential, maxRetries: 0 });
}

/** The API's own words; the client's text is the whole JSON of the body. */
function failureText(thrown: unknown): string {
  const { status, error } = Object(thrown) as { status?: unknown; error?: unknown };
  const body = Object(error) as { type?: unknown; message?: unknown; error?: unknown };
  const { type, message } = (body.error === undefined ? body : Object(body.error)) as { type?: unknown; message?: unknown };
  if (typeof message !== "string" || message === "") return explain(thrown);
  const words = [status, type].filter((word) => typeof word === "number" || typeof word === "string");
  return shorten(words.length === 0 ? message : `${words.join(" ")}: ${message}`, MAX_TEXT);
}
