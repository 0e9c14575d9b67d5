/** What readers of both APIs share, above all how an answer ends (SPEC 12.2). */
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent } from "../../stream.js";

/** The answer was refused, by the model with a text of its own or by a filter. */
export function refused(
  builder: AssistantMessageBuilder,
  text = "The provider's content filter stopped the answer.",
): AssistantMessageEvent[] {
  return builder.fail(new Error(text), { kind: "refusal", retryable: false });
}

/** Done, with the provider's own word when it is none of ours. */
export function doneAs(builder: AssistantMessageBuilder, reason: "length" | undefined, raw: string | undefined): AssistantMessageEvent[] {
  const events = builder.done(reason);
  if (raw === undefined) return events;
  return events.map((event) => (event.type === "done" ? { ...event, message: { ...event.message, rawStopReason: raw } } : event));
}

/** An error that the server put into the stream, as `errorInfo` reads it. */
export function reportedError({ code, message }: { code?: unknown; message?: unknown }, error: unknown): Error {
  const text = stringOf(message) || stringOf(code) || UNEXPLAINED;
  return Object.assign(new Error(text), { code, error });
}

export const UNEXPLAINED = "The provider ended the answer with an error it did not explain.";

export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The last one for which `matches` holds: where servers use an index again, its newest bearer is meant. */
export function newest<T>(items: readonly T[], matches: (item: T) => boolean): T | undefined {
  for (let i = items.length - 1; i >= 0; i--) if (matches(items[i] as T)) return items[i];
  return undefined;
}
