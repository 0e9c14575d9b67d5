import { errorText } from "../errors.js";
import { ABORTED, startTimer } from "../loop/abort.js";
import { AssistantMessageBuilder } from "../message-builder.js";
import type { AssistantMessage, ModelErrorInfo } from "../messages.js";
import type { Model, StreamFn } from "../stream.js";
import { EventReader, type StreamEvent } from "./event-reader.js";

export interface StallTimeoutOptions {
  /** Milliseconds from the call to its first event. 0, negative or NaN: no limit. */
  firstEventMs?: number;
  /** Milliseconds between two events; the time the reader takes does not count. 0, negative or NaN: no limit. */
  idleMs?: number;
}

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
    let reader: EventReader | undefined;
    let over = false;
    const open = async (): Promise<StreamEvent | undefined> => {
      if (controller.signal.aborted) return undefined;
      reader = new EventReader(await streamFn(model, context, { ...options, signal: controller.signal }), controller.signal);
      if (!over) return reader.next();
      reader.close(); // it came too late for anybody to read it
      reader = undefined;
      return undefined;
    };
    try {
      let limit = firstEventMs;
      for (let waiting = open(); ; waiting = (reader as EventReader).next()) {
        const event = await within(limit, waiting, controller.signal);
        if (event === STALLED || event === ABORTED) {
          const stalled = event === STALLED;
          const text = stalled ? `The model sent nothing for ${limit} ms.` : `aborted: ${errorText(caller?.reason)}`;
          over = true;
          if (stalled) controller.abort(new Error(text));
          return yield* failed(
            model,
            partial,
            text,
            stalled ? { kind: "timeout", retryable: true } : { kind: "aborted", retryable: false },
          );
        }
        if (!event) return;
        limit = idleMs;
        if ("partial" in event) partial = event.partial;
        yield event;
      }
    } finally {
      caller?.removeEventListener("abort", forward);
      over = true;
      reader?.close();
    }
  };
}

/** The end of a call that was given up: what came, or a start of its own. */
function failed(model: Model, partial: AssistantMessage<string> | undefined, text: string, info: ModelErrorInfo): StreamEvent[] {
  const events: StreamEvent[] = new AssistantMessageBuilder(model).fail(new Error(text), info);
  const error = events[events.length - 1];
  if (!partial || error?.type !== "error") return events;
  const { stopReason, errorMessage, errorInfo } = error.error;
  return [{ ...error, error: { ...partial, stopReason, errorMessage, errorInfo } }];
}

const STALLED: unique symbol = Symbol("stalled");

/** The value, STALLED when it takes longer than the limit, or ABORTED. What comes later is ignored, also a rejection. */
function within<T>(ms: number, value: Promise<T>, signal: AbortSignal): Promise<T | typeof STALLED | typeof ABORTED> {
  return new Promise((resolve, reject) => {
    const timer = ms > 0 ? startTimer(() => resolve(STALLED), ms) : undefined;
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = (): void => {
      settle();
      resolve(ABORTED);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    value.then(
      (settled) => {
        settle();
        resolve(settled);
      },
      (error: unknown) => {
        settle();
        reject(error);
      },
    );
  });
}
