/** Message and content types: plain JSON data, structurally those of pi-ai (SPEC 2). */

export interface TextContent {
  type: "text";
  text: string;
  textSignature?: string;
}

export interface ThinkingContent {
  type: "thinking";
  thinking: string;
  thinkingSignature?: string;
  redacted?: boolean;
}

export interface ImageContent {
  type: "image";
  /** base64, without a data URL prefix */
  data: string;
  mimeType: string;
}

export interface ToolCall {
  type: "toolCall";
  id: string;
  name: string;
  arguments: Record<string, any>;
  thoughtSignature?: string;
  /** Set when the model's arguments were not a JSON object; the call is answered with this text, never executed (SPEC 5.4). */
  argumentsError?: string;
}

/** Token counts and their cost in USD. */
export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  totalTokens: number;
  cost: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number };
}

export type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted";

/** What kind of failure ended a model call, for retries and for user interfaces. */
export interface ModelErrorInfo {
  kind:
    | "rate_limit"
    | "overloaded"
    | "auth"
    | "context_overflow"
    | "invalid_request"
    | "network"
    | "timeout"
    | "refusal"
    | "aborted"
    | "unknown";
  status?: number;
  retryable: boolean;
  retryAfterMs?: number;
}

export interface UserMessage {
  role: "user";
  content: string | (TextContent | ImageContent)[];
  /** Unix milliseconds */
  timestamp: number;
}

/**
 * One model answer. `S` widens the stop reason for messages that come out of a foreign StreamFn (SPEC 2.3);
 * everything the loop emits is `AssistantMessage<StopReason>`.
 */
export interface AssistantMessage<S extends string = StopReason> {
  role: "assistant";
  content: (TextContent | ThinkingContent | ToolCall)[];
  api: string;
  provider: string;
  model: string;
  usage: Usage;
  stopReason: S;
  /** The provider's own word when it was not one of the five reasons. */
  rawStopReason?: string;
  errorMessage?: string;
  errorInfo?: ModelErrorInfo;
  /** Unix milliseconds */
  timestamp: number;
}

export interface ToolResultMessage {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: (TextContent | ImageContent)[];
  /** The host's own data: never serialised or copied by the loop. */
  details?: any;
  usage?: Usage;
  isError: boolean;
  /** Unix milliseconds */
  timestamp: number;
}

export type Message = UserMessage | AssistantMessage | ToolResultMessage;

/**
 * Hosts add message roles of their own by declaration merging. They get events and stay in the transcript; the default
 * `convertToLlm` keeps them out of requests (SPEC 2.5).
 *
 * @example
 * declare module "turnloop" {
 *   interface CustomAgentMessages { note: { role: "note"; text: string; timestamp: number } }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled by the host's declaration merging
export interface CustomAgentMessages {}

export type AgentMessage = Message | CustomAgentMessages[keyof CustomAgentMessages];

/** A user message. `images` are appended to the text; `timestamp` defaults to the current time in Unix milliseconds. */
export function userMessage(content: UserMessage["content"], options?: { images?: ImageContent[]; timestamp?: number }): UserMessage {
  const images = options?.images ?? [];
  const text: (TextContent | ImageContent)[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return {
    role: "user",
    content: images.length === 0 ? content : [...text.filter((block) => block.type !== "text" || block.text !== ""), ...images],
    timestamp: options?.timestamp ?? Date.now(),
  };
}

/** A usage of zeros, fresh on every call. */
export function emptyUsage(): Usage {
  return {
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 0,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  };
}

/** The sum over assistant and tool-result messages. Missing or non-numeric parts count 0, so the sum is never NaN (SPEC 2.4). */
export function sumUsage(messages: readonly AgentMessage[]): Usage {
  const sum = emptyUsage();
  for (const message of messages) {
    if (message?.role !== "assistant" && message?.role !== "toolResult") continue;
    const usage = (message as { usage?: Partial<Usage> }).usage;
    if (typeof usage !== "object" || usage === null) continue;
    for (const key of COUNTS) {
      sum[key] += numeric(usage[key]);
      sum.cost[key] += numeric(usage.cost?.[key]);
    }
    sum.totalTokens += numeric(usage.totalTokens);
    sum.cost.total += numeric(usage.cost?.total);
  }
  return sum;
}

const COUNTS = ["input", "output", "cacheRead", "cacheWrite"] as const;

function numeric(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
