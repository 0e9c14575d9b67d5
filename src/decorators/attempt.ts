/** One attempt at a model call, read as far as nothing of it has been shown (SPEC 11). */
import type { AssistantMessage, ModelErrorInfo } from "../messages.js";
import type { AssistantStream } from "../stream.js";
import { isFailed } from "../transcript.js";
import { EventReader, type StreamEvent } from "./event-reader.js";

/** What a call that failed before its first delta can be judged by. */
interface AttemptFailure {
  info: ModelErrorInfo;
  aborted: boolean;
}

interface Attempt {
  /** Set when the call failed before any non-empty delta. */
  failure?: AttemptFailure;
  /** Gives the events from the first one on; throws what the stream threw. */
  replay(): AsyncGenerator<StreamEvent>;
}

const UNKNOWN: ModelErrorInfo = { kind: "unknown", retryable: false };

/** Calls the model and reads up to the first non-empty delta, the terminal event, the end or a throw. */
export async function beginAttempt(
  call: () => AssistantStream | Promise<AssistantStream>,
  signal: AbortSignal | undefined,
): Promise<Attempt> {
  const events: StreamEvent[] = [];
  let reader: EventReader | undefined;
  try {
    reader = new EventReader(await call(), signal);
    for (let event = await reader.next(); event; event = await reader.next()) {
      events.push(event);
      const failure = failureOf(event);
      if (failure) {
        reader.close();
        return { failure, replay: () => replay(events) };
      }
      const opened = reader;
      if (event.type === "done" || ("delta" in event && event.delta)) return { replay: () => replay(events, opened) };
    }
    return { failure: { info: UNKNOWN, aborted: false }, replay: () => replay(events) };
  } catch (error) {
    reader?.close();
    const { errorInfo, name } = Object(error) as { errorInfo?: ModelErrorInfo; name?: unknown };
    return { failure: judge(errorInfo, name === "AbortError"), replay: () => replay(events, undefined, { error }) };
  }
}

function failureOf(event: StreamEvent): AttemptFailure | undefined {
  if (event.type === "error") return judge(event.error?.errorInfo, event.reason === "aborted");
  const message: AssistantMessage<string> | undefined = event.type === "done" ? event.message : undefined;
  return message && isFailed(message) ? judge(message.errorInfo, message.stopReason === "aborted") : undefined;
}

function judge(info: ModelErrorInfo = UNKNOWN, aborted: boolean): AttemptFailure {
  return { info, aborted: aborted || info.kind === "aborted" };
}

async function* replay(events: StreamEvent[], rest?: EventReader, thrown?: { error: unknown }): AsyncGenerator<StreamEvent> {
  try {
    yield* events;
    if (thrown) throw thrown.error;
    for (let event = await rest?.next(); event; event = await rest?.next()) yield event;
  } finally {
    rest?.close();
  }
}
