/** One attempt at a model call, read as far as nothing of it has been shown (SPEC 11). */
import { errorText } from "../errors.js";
import type { ModelErrorInfo } from "../messages.js";
import type { AssistantMessageEvent, AssistantStream } from "../stream.js";

type StreamEvent = AssistantMessageEvent<string>;

/** What a call that failed before its first delta can be judged by. */
interface AttemptFailure {
  info: ModelErrorInfo;
  text: string;
  aborted: boolean;
}

export interface Attempt {
  /** Set when the call failed before any non-empty delta. */
  failure?: AttemptFailure;
  /** Gives the events from the first one on; throws what the stream threw. */
  replay(): AsyncGenerator<StreamEvent>;
}

const UNKNOWN: ModelErrorInfo = { kind: "unknown", retryable: false };

/** Calls the model and reads up to the first non-empty delta, the terminal event, the end or a throw. */
export async function beginAttempt(call: () => AssistantStream | Promise<AssistantStream>): Promise<Attempt> {
  const events: StreamEvent[] = [];
  let iterator: AsyncIterator<StreamEvent> | undefined;
  try {
    const stream = await call();
    iterator = stream[Symbol.asyncIterator]();
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      const event = next.value;
      events.push(event);
      if (event.type === "error")
        return failed(event.error.errorInfo ?? UNKNOWN, event.error.errorMessage ?? "", event.reason === "aborted", events);
      if (event.type === "done" || ("delta" in event && event.delta !== "")) return { replay: () => replay(events, iterator) };
    }
    const message = await stream.result?.();
    if (message) events.push(terminalEvent(message));
    return { replay: () => replay(events) };
  } catch (error) {
    const { errorInfo } = Object(error) as { errorInfo?: ModelErrorInfo };
    const aborted = (Object(error) as { name?: unknown }).name === "AbortError";
    return failed(errorInfo ?? UNKNOWN, errorText(error), aborted, events, { error });
  }
}

function failed(info: ModelErrorInfo, text: string, aborted: boolean, events: StreamEvent[], thrown?: { error: unknown }): Attempt {
  return { failure: { info, text, aborted: aborted || info.kind === "aborted" }, replay: () => replay(events, undefined, thrown) };
}

function terminalEvent(message: Awaited<ReturnType<NonNullable<AssistantStream["result"]>>>): StreamEvent {
  const { stopReason } = message;
  if (stopReason === "error" || stopReason === "aborted") return { type: "error", reason: stopReason, error: message };
  return { type: "done", reason: stopReason, message };
}

async function* replay(events: StreamEvent[], rest?: AsyncIterator<StreamEvent>, thrown?: { error: unknown }): AsyncGenerator<StreamEvent> {
  try {
    yield* events;
    if (thrown) throw thrown.error;
    if (!rest) return;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest?.return?.();
  }
}
