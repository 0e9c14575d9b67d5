/** When things happened in the last run, worked out from events as the view is. Times are Unix milliseconds. */
import type { PageEvent } from "./state.js";

export interface Span {
  from: number;
  /** Undefined while it goes on. */
  to?: number;
}

export interface Timeline {
  run: Span;
  turns: readonly Span[];
  /** From a request to the first word of its answer. */
  waits: readonly Span[];
  /** From the first word to the last. */
  answers: readonly Span[];
  /** Where the calls of this run begin in the view's `toolCalls`. */
  firstCall: number;
}

/** The timeline after one more event; the same object if the event says nothing about time. */
export function reduceTimeline(timeline: Timeline | undefined, event: PageEvent, at: number, callsBefore: number): Timeline | undefined {
  if (event.type === "agent_start") return { run: { from: at }, turns: [], waits: [], answers: [], firstCall: callsBefore };
  if (!timeline) return timeline;
  switch (event.type) {
    case "turn_start":
      return { ...timeline, turns: [...timeline.turns, { from: at }] };
    case "turn_end":
      return { ...timeline, turns: closed(timeline.turns, at) };
    case "thinking":
      if (event.event.state === "start") return { ...timeline, waits: [...timeline.waits, { from: at }] };
      return event.event.state === "complete" ? { ...timeline, waits: closed(timeline.waits, at) } : timeline;
    case "message_start":
      return event.message.role === "assistant" ? { ...timeline, answers: [...timeline.answers, { from: at }] } : timeline;
    case "message_end":
      return event.message.role === "assistant" ? { ...timeline, answers: closed(timeline.answers, at) } : timeline;
    case "agent_end":
      return { ...timeline, run: { ...timeline.run, to: at } };
    default:
      return timeline;
  }
}

function closed(spans: readonly Span[], at: number): readonly Span[] {
  const last = spans.at(-1);
  return !last || last.to !== undefined ? spans : [...spans.slice(0, -1), { ...last, to: at }];
}
