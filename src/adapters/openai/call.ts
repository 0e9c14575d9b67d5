/** One call of the `openai` client, from its arguments to the last event; what the two APIs have in common (SPEC 12.1, 12.2). */
import type { ClientOptions } from "openai";
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent, StreamOptions } from "../../stream.js";
import { abortError, requestSignal } from "../shared/call.js";
import { errorInfo, explain } from "../shared/errors.js";
import { withoutSecrets } from "../shared/secrets.js";
import { clientFor, type OpenAIClient } from "./client.js";

/** Options of the vendor's client, which is created with them, or a `client` of your own. */
export interface OpenAIOptions extends ClientOptions {
  /** Used in place of a client made here; the other options are then not looked at. */
  client?: OpenAIClient;
}

/** Turns what a stream holds into events. Nothing is read after `complete`, but for a short while what belongs to it. */
export interface AnswerReader<E> {
  /** The model has said that it is done; only usage can follow. */
  readonly complete: boolean;
  read(event: E): AssistantMessageEvent[];
  /** What is still held back. */
  flush(): AssistantMessageEvent[];
  /** Closes an answer that is complete. `clean` takes credentials out of an error's text. */
  finish(clean: (text: string) => string): AssistantMessageEvent[];
}

/** How a request is sent with the client; `request` is for its second argument. */
type Send<E> = (client: OpenAIClient, request: object) => PromiseLike<AsyncIterable<E>>;

/** How long a server may take to close a body whose answer is complete. */
const CLOSING_MS = 1000;

/** `caller` is the function to name when the package is missing, `ending` what the last event of a whole body has. */
export async function* streamAnswer<E>(
  { caller, ending, given, options, builder }: Call,
  answer: AnswerReader<E>,
  send: Send<E>,
): AsyncGenerator<AssistantMessageEvent> {
  const { signal, headers } = options;
  let failure: { error: unknown } | undefined;
  let client: OpenAIClient | undefined;
  let empty = true;
  const request = requestSignal(signal);
  try {
    if (!signal?.aborted) {
      client = await clientFor(caller, given, options.apiKey);
      const events = await send(client, { signal: request.signal, headers, maxRetries: 0 });
      for await (const event of untilClosed(events, answer)) {
        empty = false;
        yield* answer.read(event);
        if (signal?.aborted) break;
      }
    }
  } catch (error) {
    failure = { error };
  } finally {
    request.cancel();
  }
  // the client ends some aborted streams silently and others with an error
  if (signal?.aborted) {
    yield* answer.flush();
    return yield* builder.fail(abortError(signal));
  }
  // a connection that breaks after the last word has cost nothing but the usage; an error that the server reports still counts
  const reported = Object(failure?.error).error !== undefined;
  const clean = (text: string): string => withoutSecrets(text, options.apiKey, client?.apiKey, given.apiKey, headers, given.defaultHeaders);
  if (answer.complete && !reported) return yield* answer.finish(clean);
  yield* answer.flush();
  if (failure) return yield* builder.fail(new Error(clean(explain(failure.error))), errorInfo(failure.error));
  const cut = empty
    ? "the response's body held no event. Does this address stream answers?"
    : `the response's body ended without ${ending}.`;
  yield* builder.fail(new Error(`The stream ended early: ${cut}`), { kind: "network", retryable: true });
}

interface Call {
  caller: string;
  ending: string;
  given: OpenAIOptions;
  options: StreamOptions;
  builder: AssistantMessageBuilder;
}

/** The events; once the answer is complete, those that come within CLOSING_MS: a connection may be held open for ever. */
async function* untilClosed<E>(events: AsyncIterable<E>, answer: AnswerReader<E>): AsyncGenerator<E> {
  const iterator = events[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await (answer.complete ? within(CLOSING_MS, iterator.next()) : iterator.next());
      if (!next || next.done) return;
      yield next.value;
    }
  } finally {
    // not awaited: it waits for a `next` that only the end of the request settles
    iterator.return?.().then(undefined, () => {});
  }
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
