import { AssistantMessageBuilder } from "../../message-builder.js";
import type { StreamFn } from "../../stream.js";
import { askOpenAI, type OpenAIOptions } from "./call.js";
import { type ResponseEvent, ResponsesAnswer } from "./responses-answer.js";
import { responsesBody } from "./responses-request.js";

/**
 * A StreamFn for OpenAI's Responses API. Keys, the client, retries and errors are those of `openaiChat` (SPEC 12.1, 12.2).
 *
 * Nothing is stored with the provider (`store: false`): the transcript holds all there is. Reasoning comes encrypted and
 * goes back, unread, to the `api` and `provider` that wrote it; a summary of it is asked for when `reasoning` is given, and
 * becomes thinking. A model that does not reason refuses to be asked for encrypted reasoning: `include: []` leaves it out
 * (gpt-3, gpt-4 and the chat models of gpt-5 are known by their names).
 *
 * Stream options it does not know (`text`, `truncation`, `prompt_cache_key`, `parallel_tool_calls`, ...) go into the
 * request's body as they are; `tools` given this way (web search, file search) stand before the declared ones. `maxTokens`
 * is sent as `max_output_tokens`.
 *
 * Never throws: what goes wrong is an error event with an `errorInfo`. A model without `api` is one of "openai-responses".
 *
 * @example
 * const streamFn = withRetry(openaiResponses());                                              // key from OPENAI_API_KEY
 * const model = { id: "gpt-5-mini", provider: "openai", api: "openai-responses" };
 * await runAgentLoop([userMessage("Hi")], context, { model, streamOptions: { reasoning: "low" } }, emit, signal, streamFn);
 */
export function openaiResponses(given: OpenAIOptions = {}): StreamFn {
  return (to, context, options = {}) => {
    const model = { ...to, api: to.api ?? "openai-responses" };
    const builder = new AssistantMessageBuilder(model);
    const call = { caller: "openaiResponses", ending: "response.completed", given, options, builder };
    return askOpenAI<ResponseEvent | null>(call, new ResponsesAnswer(builder), (client, request) =>
      client.responses.create(responsesBody(model, context, options), request),
    );
  };
}
