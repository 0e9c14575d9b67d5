/**
 * Models behind OpenAI's API and the many servers that speak it, through the official `openai` client.
 *
 * @module
 */
import type { ClientOptions } from "openai";
import { AssistantMessageBuilder } from "../../message-builder.js";
import type { LlmContext, Model, StreamFn, StreamOptions } from "../../stream.js";
import { abortError, importPeer, requestSignal } from "../shared/call.js";
import { errorInfo, explain } from "../shared/errors.js";
import { AnswerReader, type Chunk } from "./answer.js";
import { chatBody } from "./request.js";

/** What is used of a client of the `openai` package: an `OpenAI`, an `AzureOpenAI`, from any copy of it. */
export interface OpenAIClient {
  chat: { completions: { create(body: any, options?: any): PromiseLike<any> } };
  withOptions(options: any): OpenAIClient;
  baseURL?: string;
}

/** Options of the vendor's client, which is created with them, or a `client` of your own. */
export interface OpenAIChatOptions extends ClientOptions {
  /** Used in place of a client made here; the other options are then not looked at. */
  client?: OpenAIClient;
}

/**
 * A StreamFn for the Chat Completions API of OpenAI and of every compatible server (Ollama, vLLM, llama.cpp, LM Studio,
 * gateways). Needs the package `openai`, which is loaded by the first call. `apiKey` of a call is that request's
 * credential; the client's own retries are off, `withRetry` is the place for them.
 *
 * Stream options it does not know (`top_p`, `seed`, `response_format`, `parallel_tool_calls`, ...) go into the request's
 * body as they are. `maxTokens` is sent as `max_completion_tokens` to OpenAI and Azure, as `max_tokens` to other servers;
 * for a server that wants the other one, give that as a provider option instead. A server that refuses `stream_options`
 * is served with `stream_options: undefined`; then there is no usage. Reasoning of compatible servers
 * (`reasoning_content`, `reasoning`) becomes thinking and goes back to the provider that wrote it.
 *
 * @example
 * const streamFn = withRetry(openaiChat());                                                   // key from OPENAI_API_KEY
 * const local = openaiChat({ baseURL: "http://localhost:11434/v1", apiKey: "ollama" });
 * const model = { id: "gpt-4.1-mini", provider: "openai", api: "openai-completions" };
 * await runAgentLoop([userMessage("Hi")], context, { model }, emit, signal, streamFn);
 */
export function openaiChat(options: OpenAIChatOptions = {}): StreamFn {
  const { client, ...clientOptions } = options;
  return (model, context, streamOptions) => chat(client, clientOptions, model, context, streamOptions);
}

async function* chat(
  own: OpenAIClient | undefined,
  clientOptions: ClientOptions,
  given: Model,
  context: LlmContext,
  options: StreamOptions = {},
) {
  const { signal } = options;
  const model = { ...given, api: given.api ?? "openai-completions" };
  const builder = new AssistantMessageBuilder(model);
  const answer = new AnswerReader(builder);
  let failure: { error: unknown } | undefined;
  const cancel = requestSignal(signal);
  try {
    if (!signal?.aborted) {
      const client = own ? withKey(own, options.apiKey) : await createClient(clientOptions, options.apiKey);
      const request = { signal: cancel.signal, headers: options.headers, maxRetries: 0 };
      const chunks: AsyncIterable<Chunk> = await client.chat.completions.create(chatBody(model, context, options, client.baseURL), request);
      for await (const chunk of chunks) {
        yield* answer.read(chunk);
        if (signal?.aborted) break;
      }
    }
  } catch (error) {
    failure = { error };
  } finally {
    cancel.release();
  }
  // the client ends some aborted streams silently and others with an error
  if (signal?.aborted) {
    yield* answer.flush();
    return yield* builder.fail(abortError(signal));
  }
  // a connection that breaks after the last word has cost nothing but the usage; an error that the server reports still counts
  const reported = Object(failure?.error).error !== undefined;
  if (answer.complete && !reported) return yield* answer.finish();
  yield* answer.flush();
  if (failure) return yield* builder.fail(new Error(explain(failure.error)), errorInfo(failure.error));
  const cut = new Error("The stream ended early: the response's body ended without a finish_reason.");
  yield* builder.fail(cut, { kind: "network", retryable: true });
}

/** The host's client with the key of one request. */
function withKey(client: OpenAIClient, apiKey: string | undefined): OpenAIClient {
  return apiKey === undefined ? client : client.withOptions({ apiKey });
}

async function createClient(options: ClientOptions, apiKey: string | undefined): Promise<OpenAIClient> {
  const { OpenAI } = await importPeer("openaiChat", "openai", () => import("openai"));
  return new OpenAI({ ...options, apiKey: apiKey ?? options.apiKey, maxRetries: 0 });
}
