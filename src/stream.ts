/** The stream protocol: how a model plugs in (SPEC 3). */
import { type AssistantMessage, emptyUsage, type Message, type StopReason, type ToolCall } from "./messages.js";

/** The model a request goes to. Hosts extend it with what their StreamFn needs. */
export interface Model {
  id: string;
  provider: string;
  api?: string;
  /** The most output tokens the model may write. */
  maxTokens?: number;
  /** The size of the context window in tokens. */
  contextWindow?: number;
  /** USD per million tokens. */
  cost?: { input: number; output: number; cacheRead: number; cacheWrite: number };
}

/** A tool as the model sees it: a declaration, nothing to execute. */
export interface LlmTool {
  name: string;
  description: string;
  /** JSON Schema */
  parameters: any;
}

/** The request: what one model call gets. */
export interface LlmContext {
  systemPrompt?: string;
  messages: Message[];
  tools?: LlmTool[];
}

/** Options of one model call. Everything not named here is passed to the StreamFn as it is. */
export interface StreamOptions {
  apiKey?: string;
  signal?: AbortSignal;
  temperature?: number;
  maxTokens?: number;
  reasoning?: "minimal" | "low" | "medium" | "high" | "xhigh";
  sessionId?: string;
  toolChoice?: "auto" | "none" | "required" | { name: string };
  headers?: Record<string, string>;
  [providerOption: string]: unknown;
}

/**
 * One event of a streaming answer. `partial` is the answer so far, `contentIndex` the block it is about.
 * `S` is the type of stop reason its messages carry (SPEC 2.3).
 */
export type AssistantMessageEvent<S extends string = StopReason> =
  | { type: "start"; partial: AssistantMessage<S> }
  | { type: "text_start" | "thinking_start" | "toolcall_start"; contentIndex: number; partial: AssistantMessage<S> }
  | {
      type: "text_delta" | "thinking_delta" | "toolcall_delta";
      contentIndex: number;
      delta: string;
      partial: AssistantMessage<S>;
    }
  | { type: "text_end" | "thinking_end"; contentIndex: number; content: string; partial: AssistantMessage<S> }
  | { type: "toolcall_end"; contentIndex: number; toolCall: ToolCall; partial: AssistantMessage<S> }
  | { type: "done"; reason: Exclude<S, "error" | "aborted">; message: AssistantMessage<S> }
  | { type: "error"; reason: "error" | "aborted"; error: AssistantMessage<S> };

/** What a StreamFn returns. `result()` is asked only when the iteration ended without `done` or `error` (SPEC 3.1). */
export interface AssistantStream extends AsyncIterable<AssistantMessageEvent<string>> {
  result?(): Promise<AssistantMessage<string>>;
}

/**
 * One model call. An async generator function is enough. Failures belong into an `error` event; a throw, a rejection or
 * a stream that just ends becomes an error turn all the same (SPEC 3.4). Declared as a method so that a function written
 * for a richer model, context or options type is accepted without a cast (SPEC 2.3).
 */
export type StreamFn<M extends Model = Model> = {
  // toolChoice is loose here for functions that know fewer or other choices
  call(model: M, context: LlmContext, options?: StreamOptions & { toolChoice?: any }): AssistantStream | Promise<AssistantStream>;
}["call"];

/** An answer with nothing in it yet, as `model` would begin one. */
export function emptyAnswer(model: Model, timestamp: number): AssistantMessage {
  return {
    role: "assistant",
    content: [],
    api: model.api ?? "unknown",
    provider: model.provider,
    model: model.id,
    usage: emptyUsage(),
    stopReason: "stop",
    timestamp,
  };
}
