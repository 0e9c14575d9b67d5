import { abortError } from "../loop/abort.js";
import { AssistantMessageBuilder } from "../message-builder.js";
import type { AssistantMessage } from "../messages.js";
import type { StreamFn } from "../stream.js";
import { ThinkingCard, type ThinkingOptions, type ThinkingOutcome } from "../thinking/thinking-card.js";
import { EventReader, type StreamEvent } from "./event-reader.js";

/**
 * Shows the wait for a model's first delta: one card for each call, from just before the call to its first non-empty delta,
 * its end, its failure or the abort, with heartbeats in between (SPEC 9.2). Put it outside `withRetry` and `withFallback`:
 * then the attempts share one card.
 *
 * @example
 * const streamFn = withThinkingCard(withRetry(model), { onProgress: ({ state, title }) => spinner(state, title) });
 */
export function withThinkingCard(streamFn: StreamFn, options: ThinkingOptions): StreamFn {
  return (model, context, streamOptions) => {
    const card = new ThinkingCard(options);
    const signal = streamOptions?.signal;
    const onAbort = (): void => card.complete("aborted");
    let reader: EventReader | undefined;
    const leave = (): void => {
      card.dispose();
      signal?.removeEventListener("abort", onAbort);
      reader?.close();
      reader = undefined;
    };
    const aborted = (): StreamEvent[] => {
      onAbort();
      return new AssistantMessageBuilder(model).fail(abortError(signal));
    };
    async function* thinking(): AsyncGenerator<StreamEvent> {
      try {
        if (!signal?.aborted) card.start();
        // whoever heard the start may have aborted
        if (signal?.aborted) return yield* aborted();
        signal?.addEventListener("abort", onAbort, { once: true });
        const opened = new EventReader(await streamFn(model, context, streamOptions), signal);
        reader = opened;
        if (signal?.aborted) return yield* aborted();
        for (let event = await opened.next(); event; event = await opened.next()) {
          const outcome = outcomeOf(event);
          if (outcome) card.complete(outcome);
          yield event;
        }
        card.complete("error"); // without a terminal event the call has failed
      } catch (error) {
        card.complete("error");
        throw error;
      } finally {
        leave();
      }
    }
    return leftAtOnce(thinking(), leave);
  };
}

/** The same generator; of itself it would put off a `return()` for as long as the model hangs. */
function leftAtOnce<T>(events: AsyncGenerator<T>, leave: () => void): AsyncGenerator<T> {
  const end = events.return.bind(events);
  return Object.assign(events, {
    return: (value: unknown) => {
      leave();
      return end(value);
    },
  });
}

/** What the event says about the wait; undefined while it goes on. */
function outcomeOf(event: StreamEvent): ThinkingOutcome | undefined {
  if (event.type === "error") return event.reason === "aborted" ? "aborted" : "error";
  if (event.type !== "done") return "delta" in event && event.delta ? "delta" : undefined;
  const { stopReason }: Partial<AssistantMessage<string>> = event.message ?? { stopReason: "error" };
  return stopReason === "aborted" || stopReason === "error" ? stopReason : "done";
}
