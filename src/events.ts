/** What a run tells its host (SPEC 4). */
import type { AgentMessage, AssistantMessage, ModelErrorInfo, ToolCall, ToolResultMessage } from "./messages.js";
import type { AssistantMessageEvent } from "./stream.js";
import type { AgentToolResult } from "./tool.js";

/**
 * How a run ended: `completed` nothing left to do; `terminated` every result of the last batch said so (SPEC 5.9);
 * `stopped` by `shouldStopAfterTurn`; `aborted` by the signal; `error` a failed answer, hook or sink; `suspended` with calls
 * that wait for a decision (SPEC 4.5, 15.2).
 */
export type RunOutcome = "completed" | "terminated" | "stopped" | "aborted" | "error" | "suspended";

/** A suspended call: what to ask a user about, today or after a reload (SPEC 15.2). */
export interface PendingToolCall {
  toolCall: ToolCall;
  /** The validated arguments; read from the transcript alone, those the model sent. */
  args: any;
  /** Why it was suspended, if the hook said so. */
  reason?: string;
}

/**
 * The events of a run, in the grammar of SPEC 4.6:
 * `agent_start (turn_start (message_start message_end)* assistant batch? turn_end)+ agent_end` with
 * `assistant = message_start message_update* message_end`. Every event is a copy that is safe to keep and to write to.
 */
export type AgentEvent =
  | { type: "agent_start" }
  | {
      type: "agent_end";
      /** The messages this run added: what its promise resolves with. */
      messages: AgentMessage[];
      outcome: RunOutcome;
      /** Why, with outcome `error` and `aborted`. */
      error?: { message: string; info?: ModelErrorInfo };
      /** The calls that wait, with outcome `suspended`. */
      pending?: PendingToolCall[];
    }
  | { type: "turn_start" }
  | { type: "turn_end"; message: AssistantMessage; toolResults: ToolResultMessage[] }
  | { type: "message_start"; message: AgentMessage }
  | { type: "message_update"; message: AssistantMessage; assistantMessageEvent: AssistantMessageEvent }
  | { type: "message_end"; message: AgentMessage }
  | { type: "tool_execution_start"; toolCallId: string; toolName: string; args: any }
  | { type: "tool_execution_update"; toolCallId: string; toolName: string; args: any; partialResult: any }
  | { type: "tool_execution_end"; toolCallId: string; toolName: string; result: AgentToolResult; isError: boolean };

/**
 * Where events go. The loop waits for a returned promise before it sends the next event; returning nothing costs no
 * wait (SPEC 4.7). A throw or a rejection stops the run, which then rejects with `sink_failed` (SPEC 4.10).
 */
export type AgentEventSink = (event: AgentEvent) => void | Promise<void>;
