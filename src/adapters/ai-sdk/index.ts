/**
 * Any language model of the AI SDK (specifications v2, v3 and v4: AI SDK 5, 6 and 7) as a StreamFn. Nothing has to be
 * installed beside the package the model comes from.
 *
 * @module turnloop/ai-sdk
 */
import { describe, TurnLoopError } from "../../errors.js";
import { isThenable } from "../../loop/abort.js";
import { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent, LlmContext, Model, StreamFn, StreamOptions } from "../../stream.js";
import { streamAnswer } from "../shared/stream-answer.js";
import { PartsAnswer } from "./answer.js";
import { failureOf } from "./errors.js";
import type { AiSdkLanguageModel, StreamPart } from "./language-model.js";
import { callOptions } from "./request.js";

export type { AiSdkLanguageModel } from "./language-model.js";

/** How long a stream may stay open after its last part. */
const CLOSING_MS = 1000;

/**
 * A StreamFn that asks this language model, through its `doStream` (SPEC 12.1, 12.2). It does not retry: `withRetry` is the
 * place for that.
 *
 * The language model is the one asked, with the credential it was made with: `model.id` and `apiKey` of a call change
 * nothing there, `model` gives the names, limits and prices of the transcript. Default `model.api`: `"ai-sdk"`.
 *
 * Stream options it does not know go to the model as they are: `providerOptions`, `topP`, `seed`, `stopSequences`,
 * `responseFormat`, and so on; `tools` (a provider's own, such as web search) are added to those of the context. `reasoning`
 * is an option of v4 models only; for others say it in `providerOptions`. `sessionId` is not sent.
 *
 * What a provider says about a block (`providerMetadata`: signatures, encrypted reasoning, item ids) is kept as its
 * signature, and goes back only with the `api`, the `provider` and the language model's `provider` that wrote it. A model of
 * OpenAI's Responses API refers to what OpenAI stored, unless told `providerOptions: { openai: { store: false } }`.
 *
 * Not kept, for want of a place in a transcript: tools that the provider executed itself, with their results and requests
 * for approval (they are never executed here), files and sources in an answer, warnings. Images in tool results follow as a
 * user message for models that speak Chat Completions, whose provider is named `*.chat`.
 *
 * @throws TurnLoopError `invalid_argument`: not a language model of specification v2, v3 or v4. A text that names a model
 * (`"openai/gpt-5"`) is none: make it one with the `gateway` of `ai`.
 *
 * @example
 * import { anthropic } from "@ai-sdk/anthropic";
 * const streamFn = withRetry(aiSdk(anthropic("claude-sonnet-4-5")));
 * const model = { id: "claude-sonnet-4-5", provider: "anthropic" };
 * await runAgentLoop([userMessage("Hi")], context, { model }, emit, signal, streamFn);
 */
export function aiSdk(languageModel: AiSdkLanguageModel): StreamFn {
  const { specificationVersion: version, doStream } = Object(languageModel) as Partial<AiSdkLanguageModel>;
  if (typeof doStream !== "function" || !["v2", "v3", "v4"].includes(version as string)) {
    const came = version === undefined ? describe(languageModel) : `one of specification ${describe(version)}`;
    const made = 'for example openai("gpt-5") of @ai-sdk/openai';
    throw new TurnLoopError(
      "invalid_argument",
      `aiSdk takes an AI SDK language model of specification v2, v3 or v4, ${made}; got ${came}.`,
    );
  }
  return (model, context, options) => ask(languageModel, model, context, options);
}

function ask(
  languageModel: AiSdkLanguageModel,
  given: Model,
  context: LlmContext,
  options: StreamOptions = {},
): AsyncGenerator<AssistantMessageEvent> {
  const { signal } = options;
  const model = { ...given, api: given.api ?? "ai-sdk" };
  const builder = new AssistantMessageBuilder(model);
  const secrets = (): unknown[] => [options.apiKey, options.headers, ownHeaders(languageModel)];
  const open = async (own: AbortSignal): Promise<AsyncIterator<StreamPart | null>> => {
    const { stream } = await languageModel.doStream(callOptions(languageModel, model, context, options, own));
    const reader = stream.getReader();
    // a pending read settles when its reader is cancelled; later, since a model may close its stream when it hears of the abort
    const cancel = async (): Promise<any> => {
      await undefined;
      return reader.cancel(own.reason);
    };
    return { next: () => reader.read() as Promise<IteratorResult<StreamPart | null>>, return: cancel };
  };
  const answer = new PartsAnswer(builder, languageModel.provider);
  return streamAnswer(
    { builder, signal, open, failure: (error) => failureOf(error, secrets), ending: "a reason to finish", closingMs: CLOSING_MS },
    answer,
  );
}

/** The headers that a provider's model adds, with its credential; undefined where a model does not show them. */
function ownHeaders(languageModel: AiSdkLanguageModel): unknown {
  try {
    const { headers } = Object((languageModel as { config?: unknown }).config) as { headers?: unknown };
    const value: unknown = typeof headers === "function" ? headers() : headers;
    if (isThenable(value)) Promise.resolve(value).catch(() => {});
    return value;
  } catch {
    return undefined; // it has no credential; the call says so
  }
}
