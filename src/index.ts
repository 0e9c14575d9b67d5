/**
 * turnloop: an embeddable agent loop. The model is any `StreamFn`; tools, hooks, queues and events are the host's.
 *
 * @example
 * import { defineTool, runAgentLoop, userMessage } from "turnloop";
 * import { Type } from "turnloop/schema";
 *
 * const add = defineTool({
 *   name: "add",
 *   description: "Adds two numbers",
 *   parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
 *   execute: (_id, { a, b }) => String(a + b),
 * });
 * const context = { systemPrompt: "Be brief.", messages: [], tools: [add] };
 * await runAgentLoop([userMessage("What is 2 + 3?")], context, { model }, (event) => console.log(event.type), undefined, streamFn);
 *
 * @module turnloop
 */
export { Agent } from "./agent/agent.js";
export { keepLast, limitToolOutput, parseTranscript } from "./agent/everyday.js";
export { MessageQueue, type QueueMode } from "./agent/queue.js";
export {
  anyOf,
  type StopCondition,
  stopAfterTurns,
  stopOnRepeatedToolCall,
  stopOnTokens,
  stopOnToolCall,
} from "./agent/stop-conditions.js";
export type { AgentEventMap, AgentOptions, AgentRunResult, QueueChange } from "./agent/types.js";
export type {
  AfterToolCallContext,
  AfterToolCallResult,
  AgentContext,
  AgentLoopConfig,
  BeforeToolCallContext,
  BeforeToolCallResult,
  NextTurn,
  TurnContext,
} from "./config.js";
export { type FallbackCandidate, withFallback } from "./decorators/fallback.js";
export { type RetryOptions, withRetry } from "./decorators/retry.js";
export { type StallTimeoutOptions, withStallTimeout } from "./decorators/stall-timeout.js";
export { withThinkingCard } from "./decorators/thinking.js";
export { TurnLoopError, type TurnLoopErrorCode } from "./errors.js";
export type { AgentEvent, AgentEventSink, PendingToolCall, RunOutcome } from "./events.js";
export { type AgentEventStream, agentLoop, agentLoopContinue } from "./loop/event-stream.js";
export { resumeAgentLoop, runAgentLoop, runAgentLoopContinue } from "./loop/loop.js";
export type { ToolCallDecision } from "./loop/tool-batch.js";
export { AssistantMessageBuilder } from "./message-builder.js";
export {
  type AgentMessage,
  type AssistantMessage,
  type CustomAgentMessages,
  emptyUsage,
  type ImageContent,
  type Message,
  type ModelErrorInfo,
  type StopReason,
  sumUsage,
  type TextContent,
  type ThinkingContent,
  type ToolCall,
  type ToolResultMessage,
  type Usage,
  type UserMessage,
  userMessage,
} from "./messages.js";
export type { AssistantMessageEvent, AssistantStream, LlmContext, LlmTool, Model, StreamFn, StreamOptions } from "./stream.js";
export { type ProgressChannel, rawTextChannel, routeProgress, thoughtTextChannel } from "./thinking/channels.js";
export { ThinkingCard, type ThinkingEvent, type ThinkingOptions } from "./thinking/thinking-card.js";
export { type AgentTool, type AgentToolResult, defineTool, type ParametersOf, type ToolCallPosition, ToolRegistry } from "./tool.js";
export { dropFailedTail, pairToolCalls, toLlmMessages, toWellFormed } from "./transcript.js";
export { initialView, reduceEvents, type ToolCallView, toWireEvent, type ViewState, type WireEvent, type WireUpdate } from "./view.js";
