import { AssistantMessageBuilder } from "../../message-builder.js";
import type { StreamFn } from "../../stream.js";
import { askOpenAI, type OpenAIOptions } from "./call.js";
import { ChatAnswer, type Chunk } from "./chat-answer.js";
import { chatBody } from "./chat-request.js";

/**
 * A StreamFn for the Chat Completions API of OpenAI and of every compatible server (Ollama, vLLM, llama.cpp, LM Studio,
 * gateways). Needs the package `openai`, which is loaded by the first call. `apiKey` of a call is that request's
 * credential; the client's own retries are off, `withRetry` is the place for them (SPEC 12.1, 12.2).
 *
 * Stream options it does not know (`top_p`, `seed`, `response_format`, `parallel_tool_calls`, ...) go into the request's
 * body as they are; `tools` given this way stand before the declared ones. `maxTokens` is sent as `max_completion_tokens`
 * to OpenAI and Azure, as `max_tokens` to other servers; for a server that wants the other one, give that as a provider
 * option instead. A server that refuses `stream_options` is served with `stream_options: undefined`; then there is no
 * usage. Mistral, known by its address or as provider "mistral", gets ids of calls of the only form it takes. Reasoning of
 * compatible servers (`reasoning_content`, `reasoning`) becomes thinking and goes back to the provider that wrote it.
 *
 * Never throws: what goes wrong is an error event with an `errorInfo`. A model without `api` is one of "openai-completions".
 *
 * @example
 * const streamFn = withRetry(openaiChat());                                                   // key from OPENAI_API_KEY
 * const local = openaiChat({ baseURL: "http://localhost:11434/v1", apiKey: "ollama" });
 * const model = { id: "gpt-4.1-mini", provider: "openai", api: "openai-completions" };
 * await runAgentLoop([userMessage("Hi")], context, { model }, emit, signal, streamFn);
 */
export function openaiChat(given: OpenAIOptions = {}): StreamFn {
  return (to, context, options = {}) => {
    const model = { ...to, api: to.api ?? "openai-completions" };
    const builder = new AssistantMessageBuilder(model);
    const call = { caller: "openaiChat", ending: "a finish_reason", given, options, builder };
    return askOpenAI<Chunk | null>(call, new ChatAnswer(builder), (client, request) =>
      client.chat.completions.create(chatBody(model, context, options, client.baseURL), request),
    );
  };
}
