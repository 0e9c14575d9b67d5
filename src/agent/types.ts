/** What goes into an Agent and what comes out (SPEC 8). */
import type { AgentLoopConfig } from "../config.js";
import type { AgentEvent, PendingToolCall, RunOutcome } from "../events.js";
import type { AgentMessage, Usage } from "../messages.js";
import type { Model, StreamFn } from "../stream.js";
import type { ThinkingEvent, ThinkingOptions } from "../thinking/thinking-card.js";
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
  /** Shows the wait for each model call's first delta: `on("thinking")` hears of it (SPEC 9.2). @default none */
  thinking?: boolean | ThinkingOptions;
  /** Hears each failure of a listener once. @default console.error */
  onListenerError?(error: unknown, event: AgentEvent | QueueChange | ThinkingEvent): void;
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
  /** The calls that wait for `resume`, with outcome `suspended`. */
  pending?: PendingToolCall[];
  /** The sum over these messages. */
  usage: Usage;
}

export type RunError = NonNullable<EndEvent["error"]>;

/** What `on` knows: every event of a run by its type, `queue_change`, and `thinking` with the option for it. */
export type AgentEventMap = { [T in AgentEvent["type"]]: (event: Extract<AgentEvent, { type: T }>) => void } & {
  queue_change: (change: QueueChange) => void;
  thinking: (event: ThinkingEvent) => void;
};
