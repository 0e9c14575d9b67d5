import type { AgentEvent, AgentEventSink } from "../events.js";

/** A sink that keeps every event, in order (SPEC 13.2). Events are snapshots, so what was recorded never changes. */
export function recordEvents(): AgentEventSink & { events: AgentEvent[] } {
  const events: AgentEvent[] = [];
  return Object.assign(
    (event: AgentEvent): void => {
      events.push(event);
    },
    { events },
  );
}
