import { withThinkingCard } from "../decorators/thinking.js";
import { readClock } from "../loop/run.js";
import type { StreamFn } from "../stream.js";
import type { ThinkingEvent, ThinkingOptions } from "../thinking/thinking-card.js";

/** The StreamFn of an Agent with the option `thinking`: `emit` hears what the host's `onProgress` hears (SPEC 9.2). */
export function withThinking(
  streamFn: StreamFn,
  thinking: boolean | ThinkingOptions | undefined,
  emit: (event: ThinkingEvent) => void,
): StreamFn {
  if (!thinking || typeof streamFn !== "function") return streamFn;
  const options: ThinkingOptions = thinking === true ? {} : thinking;
  const { name, title, heartbeatMs, maxHeartbeats, showAfterMs } = options;
  const heard = new WeakSet<ThinkingEvent>();
  const onProgress = (event: ThinkingEvent): void | Promise<void> => {
    // a complete that failed comes twice
    if (!heard.has(event)) emit({ ...event });
    heard.add(event);
    return options.onProgress?.(event);
  };
  return withThinkingCard(streamFn, {
    ...{ name, title, heartbeatMs, maxHeartbeats, showAfterMs, onProgress },
    onError: (error, event) => options.onError?.(error, event),
    now: () => readClock(options),
    createId: () => options.createId?.() ?? "",
  });
}
