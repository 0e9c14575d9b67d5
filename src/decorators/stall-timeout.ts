import { errorText } from "../errors.js";
import { ABORTED, TIMED_OUT, within } from "../loop/abort.js";
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
        const event = await within(limit > 0 ? limit : Number.POSITIVE_INFINITY, waiting, controller.signal);
        if (event === TIMED_OUT || event === ABORTED) {
          const stalled = event === TIMED_OUT;
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
