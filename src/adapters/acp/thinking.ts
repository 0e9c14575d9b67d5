/** The wait for a model as a card of kind "think" (SPEC 10.3). */
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { ignoringFailure } from "../../loop/abort.js";
import type { ProgressChannel } from "../../thinking/channels.js";
import type { ThinkingEvent, ThinkingOutcome } from "../../thinking/thinking-card.js";
import { wellFormedDeep } from "../../transcript.js";
import { type AcpConnection, sendUpdate } from "./connection.js";
import { read } from "./tool-card.js";

type CardStart = Extract<SessionUpdate, { sessionUpdate: "tool_call" }>;
type CardUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>;

const TITLE = "Thinking...";

/** What all payloads of these cards share, and what tells them from those of tools. */
function synthetic<T extends object>(payload: T): T & { kind: "think"; _meta: { synthetic: true } } {
  return wellFormedDeep({ ...payload, kind: "think", _meta: { synthetic: true } });
}

/** The card appears. Texts of all payloads are made well-formed Unicode. */
export function thinkingStart(id: string, title: string = TITLE): CardStart {
  return synthetic({ sessionUpdate: "tool_call", toolCallId: id, title, status: "in_progress", content: [] });
}

/** The card is still there: "Thinking... (30s)". */
export function thinkingProgress(id: string, elapsedMs: number, title: string = TITLE): CardUpdate {
  const seconds = Number.isFinite(elapsedMs) ? Math.max(0, Math.round(elapsedMs / 1000)) : 0;
  return inProgress(id, `${title} (${seconds}s)`);
}

function inProgress(id: string, title: string): CardUpdate {
  return synthetic({ sessionUpdate: "tool_call_update", toolCallId: id, title, status: "in_progress" });
}

/** The wait is over. Version 1 of the protocol has no status for a stopped call: an aborted card is `failed` and says "Stopped". */
export function thinkingComplete(id: string, outcome: ThinkingOutcome = "done", title: string = TITLE): CardUpdate {
  return synthetic({
    sessionUpdate: "tool_call_update",
    toolCallId: id,
    title: outcome === "aborted" ? "Stopped" : title,
    status: outcome === "aborted" || outcome === "error" ? "failed" : "completed",
    content: [],
  });
}

/** The payload of a thinking event, its card known to the client as `id`. */
export function thinkingUpdate({ state, title, outcome }: ThinkingEvent, id: string): CardStart | CardUpdate {
  if (state === "start") return thinkingStart(id, title);
  return state === "heartbeat" ? inProgress(id, title) : thinkingComplete(id, outcome, title);
}

/** Shows thinking events as cards of the client. Not available once the connection is closed. */
export function toolCardChannel(connection: AcpConnection & { signal?: AbortSignal }, sessionId: string): ProgressChannel {
  return {
    available: () => connection.signal?.aborted !== true,
    send: (event) => sendUpdate(connection, sessionId, thinkingUpdate(event, event.cardId)),
  };
}

/**
 * `(state, name, args?)` with state `start`, `heartbeat` or `complete`: one open card per name. `args.elapsed` is in
 * seconds, `args.outcome` says how the wait ended. Without a start nothing is sent; a second start does nothing. Never throws.
 */
export function createProgressCallback(
  connection: AcpConnection,
  sessionId: string,
): (state: string, name: string, args?: { elapsed?: number; outcome?: ThinkingOutcome }) => void {
  const open = new Map<string, string>();
  let count = 0;
  const session = Math.random().toString(36).slice(2);
  const send = (update: SessionUpdate): void => ignoringFailure(() => sendUpdate(connection, sessionId, update));
  const tell = (state: string, name: string, args: unknown): void => {
    const id = open.get(name);
    if (state === "start" && id === undefined) {
      const fresh = `${name}_${session}_${++count}`;
      open.set(name, fresh);
      send(thinkingStart(fresh));
    } else if (state === "heartbeat" && id !== undefined) {
      send(thinkingProgress(id, Number(read(args, "elapsed") ?? 0) * 1000));
    } else if (state === "complete" && id !== undefined) {
      open.delete(name);
      send(thinkingComplete(id, read(args, "outcome") as ThinkingOutcome | undefined));
    }
  };
  // the caller is in the middle of a model call, which must not fail for this
  return (...given) => ignoringFailure(() => tell(...given));
}
