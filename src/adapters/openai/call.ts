/** One call of the `openai` client, from its arguments to the last event; what the two APIs have in common (SPEC 12.1, 12.2). */
import type { ClientOptions } from "openai";
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent, StreamOptions } from "../../stream.js";
import { errorInfo, explain } from "../shared/errors.js";
import { withoutSecrets } from "../shared/secrets.js";
import { type AnswerReader, streamAnswer } from "../shared/stream-answer.js";
import { clientFor, type OpenAIClient } from "./client.js";

/** Options of the vendor's client, which is created with them, or a `client` of your own. */
export interface OpenAIOptions extends ClientOptions {
  /** Used in place of a client made here; the other options are then not looked at. */
  client?: OpenAIClient;
}

/** `caller` is the function to name when the package is missing, `ending` what the last event of a whole body has. */
interface Call {
  caller: string;
  ending: string;
  given: OpenAIOptions;
  options: StreamOptions;
  builder: AssistantMessageBuilder;
}

/** How a request is sent with the client; `request` is for its second argument. */
type Send<E> = (client: OpenAIClient, request: object) => PromiseLike<AsyncIterable<E>>;

/** How long a server may take to send the usage, or to close the body, when the answer is complete. */
const CLOSING_MS = 1000;

export function askOpenAI<E>(call: Call, answer: AnswerReader<E>, send: Send<E>): AsyncGenerator<AssistantMessageEvent> {
  const { caller, ending, given, options, builder } = call;
  const { signal, headers, apiKey } = options;
  let client: OpenAIClient | undefined;
  const open = async (own: AbortSignal): Promise<AsyncIterator<E>> => {
    client = await clientFor(caller, given, apiKey);
    return (await send(client, { signal: own, headers, maxRetries: 0 }))[Symbol.asyncIterator]();
  };
  const failure = (error: unknown) =>
    [new Error(withoutSecrets(explain(error), apiKey, client?.apiKey, given.apiKey, headers, given.defaultHeaders)), errorInfo(error)] as [
      Error,
      ReturnType<typeof errorInfo>,
    ];
  return streamAnswer({ builder, signal, ending, open, failure, closingMs: CLOSING_MS }, answer);
}
