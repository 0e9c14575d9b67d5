import { startTimer } from "../loop/abort.js";
import { AssistantMessageBuilder } from "../message-builder.js";
import type { AssistantMessage, ModelErrorInfo } from "../messages.js";
import type { AssistantMessageEvent, StreamFn } from "../stream.js";

export interface StallTimeoutOptions {
  /** Milliseconds from the call to its first event. 0, negative or NaN: no limit. */
  firstEventMs?: number;
  /** Milliseconds between two events; the time the reader takes does not count. 0, negative or NaN: no limit. */
  idleMs?: number;
}

const STALLED: unique symbol = Symbol("stalled");

/**
 * Turns a silent stream into a retryable error of kind `timeout`: what came is kept, the call's signal is aborted
 * (SPEC 11.2).
 */
export function withStallTimeout(streamFn: StreamFn, { firstEventMs = 0, idleMs = 0 }: StallTimeoutOptions): StreamFn {
  return async function* watched(model, context, options) {
    const controller = new AbortController();
    const caller = options?.signal;
    const forward = (): void => controller.abort(caller?.reason);
    if (caller?.aborted) forward();
    else caller?.addEventListener("abort", forward);
    let partial: AssistantMessage<string> | undefined;
    let iterator: AsyncIterator<AssistantMessageEvent<string>> | undefined;
    let limit = firstEventMs;
    try {
      const calling = Promise.resolve(streamFn(model, context, { ...options, signal: controller.signal }));
      const opened = await within(
        limit,
        calling.then((stream) => stream[Symbol.asyncIterator]()),
      );
      if (opened !== STALLED) iterator = opened;
      for (;;) {
        const next = iterator ? await within(limit, iterator.next()) : STALLED;
        if (next === STALLED) break;
        if (next.done) return;
        limit = idleMs;
        if ("partial" in next.value) partial = next.value.partial;
        yield next.value;
      }
      const text = `The model sent nothing for ${limit} ms.`;
      controller.abort(new Error(text));
      const info: ModelErrorInfo = { kind: "timeout", retryable: true };
      const [start, error] = new AssistantMessageBuilder(model).fail(new Error(text), info);
      if (!partial) yield start as AssistantMessageEvent<string>;
      yield withPartial(error as AssistantMessageEvent<string>, partial);
    } finally {
      caller?.removeEventListener("abort", forward);
      Promise.resolve(iterator?.return?.()).catch(() => {});
    }
  };
}

function withPartial(event: AssistantMessageEvent<string>, partial: AssistantMessage<string> | undefined): AssistantMessageEvent<string> {
  if (event.type !== "error" || !partial) return event;
  const { stopReason, errorMessage, errorInfo } = event.error;
  return { ...event, error: { ...partial, stopReason, errorMessage, errorInfo } };
}

/** The value, or STALLED when it takes longer than the limit. */
function within<T>(ms: number, value: Promise<T>): Promise<T | typeof STALLED> {
  if (!(ms > 0)) return value;
  return new Promise((resolve, reject) => {
    const timer = startTimer(() => resolve(STALLED), ms);
    value.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
