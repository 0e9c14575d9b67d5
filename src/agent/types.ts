/** What goes into an Agent and what comes out (SPEC 8). */
import type { AgentLoopConfig } from "../config.js";
import type { AgentEvent, RunOutcome } from "../events.js";
import type { AgentMessage, Usage } from "../messages.js";
import type { Model, StreamFn } from "../stream.js";
import type { AgentTool } from "../tool.js";
import type { EndEvent } from "./active-run.js";
import type { QueueMode } from "./queue.js";

/** The configuration of the loop, and what an Agent holds for it (SPEC 8). */
export interface AgentOptions<M extends Model = Model> extends AgentLoopConfig<M> {
  streamFn: StreamFn;
  /** @default "" */
  systemPrompt?: string;
  /** The transcript to start from; copied. */
  messages?: readonly AgentMessage[];
  tools?: Iterable<AgentTool>;
  /** @default "one-at-a-time" */
  steeringMode?: QueueMode;
  /** @default "one-at-a-time" */
  followUpMode?: QueueMode;
  /** Hears each failure of a listener once. @default console.error */
  onListenerError?(error: unknown, event: AgentEvent | QueueChange): void;
}

/** What waits in the two queues. */
export interface QueueChange {
  steering: AgentMessage[];
  followUp: AgentMessage[];
}

export interface AgentRunResult {
  /** The messages the run added. */
  messages: AgentMessage[];
  outcome: RunOutcome;
  error?: RunError;
  /** The sum over these messages. */
  usage: Usage;
}

export type RunError = NonNullable<EndEvent["error"]>;

/** What `on` knows: every event of a run by its type, and `queue_change`. */
export type AgentEventMap = { [T in AgentEvent["type"]]: (event: Extract<AgentEvent, { type: T }>) => void } & {
  queue_change: (change: QueueChange) => void;
};
