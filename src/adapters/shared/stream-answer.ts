/** One answer of a vendor's client, from its first request to the last event (SPEC 12.1, 12.2, 14.3). */
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { ModelErrorInfo } from "../../messages.js";
import type { AssistantMessageEvent } from "../../stream.js";
import { abortError, requestSignal } from "./call.js";

/** Turns what a stream holds into events. Nothing is read after `complete`, but for a short while what belongs to it. */
export interface AnswerReader<E> {
  /** The model has said that it is done. */
  readonly complete: boolean;
  /** Throws what the server reports as an error. */
  read(event: E): AssistantMessageEvent[];
  /** What is still held back. */
  flush(): AssistantMessageEvent[];
  /** Closes an answer that is complete; `failure` words what the server reported with it. */
  finish(failure: Asking<E>["failure"]): AssistantMessageEvent[];
}

/** How an answer is asked for. */
export interface Asking<E> {
  builder: AssistantMessageBuilder;
  /** The caller's. */
  signal: AbortSignal | undefined;
  /** Sends the request; for an answer of several, the next one. */
  open(signal: AbortSignal): Promise<AsyncIterator<E>>;
  /** Begins the answer's next request: what is to be shown before it. Undefined: there is none. */
  nextRequest?(): AssistantMessageEvent[] | undefined;
  /** How long a body may stay open when the answer is complete. Read to its end, its connection serves the next call. */
  closingMs: number;
  /** What the client threw, in words for the transcript, and what it was. */
  failure(error: unknown): [Error, ModelErrorInfo];
  /** What the last event of a whole body has. */
  ending: string;
}

/** Never throws. One generator and no more: each one between the client and the host costs every delta. */
export async function* streamAnswer<E>(asking: Asking<E>, answer: AnswerReader<E>): AsyncGenerator<AssistantMessageEvent> {
  const { builder, signal } = asking;
  let failure: { error: unknown } | undefined;
  let empty = true;
  try {
    let shown: AssistantMessageEvent[] | undefined = [];
    while (shown && !signal?.aborted) {
      for (const event of shown) yield event;
      const source = new Source<E>(signal);
      let whole = false;
      try {
        await source.open(asking.open);
        for (let next = await source.next(); !next.done; next = await source.next()) {
          empty = false;
          for (const event of answer.read(next.value)) yield event;
          if (answer.complete) source.closeWithin(asking.closingMs);
        }
        whole = true;
      } finally {
        source.close(whole);
      }
      shown = asking.nextRequest?.();
    }
  } catch (error) {
    failure = { error };
  }
  // the client ends some aborted streams silently and others with an error
  if (signal?.aborted) {
    yield* answer.flush();
    return yield* builder.fail(abortError(signal));
  }
  // a connection that breaks after the last word has cost nothing but the usage; an error that the server reports still counts
  const reported = Object(failure?.error).error !== undefined;
  if (answer.complete && !reported) return yield* answer.finish(asking.failure);
  yield* answer.flush();
  if (failure) return yield* builder.fail(...asking.failure(failure.error));
  const cut = empty
    ? "the response's body held no event. Does this address stream answers?"
    : `the response's body ended without ${asking.ending}.`;
  yield* builder.fail(new Error(`The stream ended early: ${cut}`), { kind: "network", retryable: true });
}

/** The events of one request. They end when the signal fires, whatever the client makes of that: some streams hang. */
class Source<E> {
  readonly #request: ReturnType<typeof requestSignal>;
  #iterator: AsyncIterator<E, unknown> | undefined;
  /** Ends what is being waited for. */
  #end: ((over: typeof OVER) => void) | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;

  constructor(signal: AbortSignal | undefined) {
    this.#request = requestSignal(signal);
    this.#request.signal.addEventListener("abort", () => {
      this.#end?.(OVER);
      this.#return();
    });
  }

  async open(send: Asking<E>["open"]): Promise<void> {
    const opening = send(this.#request.signal);
    await this.#unlessCancelled(opening.then((iterator) => this.#begin(iterator)));
  }

  next(): Promise<IteratorResult<E, unknown>> {
    return this.#iterator ? this.#unlessCancelled(this.#iterator.next()) : Promise.resolve(OVER);
  }

  closeWithin(ms: number): void {
    this.#closing ??= setTimeout(() => this.#request.cancel(), ms);
  }

  /** What is not read to its end is cancelled. */
  close(whole: boolean): void {
    clearTimeout(this.#closing);
    if (whole) this.#request.release();
    else this.#request.cancel();
  }

  /** A stream that comes when nobody waits for it any more is not read. */
  #begin(iterator: AsyncIterator<E>): IteratorResult<E, unknown> {
    this.#iterator = iterator;
    if (this.#request.signal.aborted) this.#return();
    return OVER;
  }

  /** Not awaited: it may wait for a `next` that only the end of the request settles. */
  #return(): void {
    this.#iterator?.return?.().then(undefined, () => {});
    this.#iterator = undefined;
  }

  #unlessCancelled(promise: Promise<IteratorResult<E, unknown>>): Promise<IteratorResult<E, unknown>> {
    return new Promise((resolve, reject) => {
      this.#end = resolve;
      if (this.#request.signal.aborted) resolve(OVER);
      promise.then(resolve, reject);
    });
  }
}

const OVER: IteratorResult<never, undefined> = { done: true, value: undefined };
