/** The configuration of a run and its hooks (SPEC 4, 6). */
import type { AgentMessage, AssistantMessage, ImageContent, Message, TextContent, ToolCall, ToolResultMessage, Usage } from "./messages.js";
import type { Model, StreamOptions } from "./stream.js";
import type { AgentTool, AgentToolResult } from "./tool.js";

/** What a run starts from. Nothing in it is ever written to; two runs may share one (SPEC 4.1). */
export interface AgentContext {
  systemPrompt: string;
  messages: AgentMessage[];
  /** An array, a ToolRegistry, any iterable: read anew for each turn. */
  tools?: Iterable<AgentTool>;
}

/** What `beforeToolCall` is asked about. `context` is a view: pushing into its arrays changes nothing (SPEC 6.2). */
export interface BeforeToolCallContext {
  assistantMessage: AssistantMessage;
  toolCall: ToolCall;
  /** The validated arguments. Editing them in place reaches the tool, after they were validated again. */
  args: any;
  context: AgentContext;
}

/**
 * What `beforeToolCall` may answer. Only `block === true` blocks; `reason` is what the model reads, `terminate` counts as
 * the result's (SPEC 5.9). `args` replace the arguments and are validated again. Only `suspend === true` suspends: the other
 * calls of the batch run to their end, then the run ends as `suspended`, and `resumeAgentLoop` goes on with a decision
 * (SPEC 15.2); `reason` is then for whoever decides.
 */
export interface BeforeToolCallResult {
  block?: boolean;
  suspend?: boolean;
  reason?: string;
  terminate?: boolean;
  args?: unknown;
}

export interface AfterToolCallContext extends BeforeToolCallContext {
  result: AgentToolResult;
  isError: boolean;
}

/** Each field that is given replaces that field of the result whole (SPEC 5.12). */
export interface AfterToolCallResult {
  content?: (TextContent | ImageContent)[];
  details?: any;
  usage?: Usage;
  terminate?: boolean;
  isError?: boolean;
}

/** What the hooks between turns see. The arrays are copies. */
export interface TurnContext {
  message: AssistantMessage;
  toolResults: ToolResultMessage[];
  context: AgentContext;
  /** Everything the run has added so far. */
  newMessages: AgentMessage[];
}

/** What `prepareNextTurn` may change for the turns that follow; a field that is left out keeps its value (SPEC 6.4). */
export interface NextTurn<M extends Model = Model> {
  context?: Partial<AgentContext>;
  model?: M;
  streamOptions?: StreamOptions;
}

/** @inline */
type Awaitable<T> = T | Promise<T>;

/**
 * The configuration of a run. Hooks may be async. "Raced with abort" means that an abort does not wait for the hook: its
 * late answer is ignored (SPEC 7.2).
 */
export interface AgentLoopConfig<M extends Model = Model> {
  model: M;

  /**
   * Makes the request's messages of the transcript. Gets a copy of the array. Runs before each model call, after
   * `transformContext`; what it returns is then paired (SPEC 2.6). A throw is an error turn. Raced with abort.
   * @default toLlmMessages
   */
  convertToLlm?(messages: AgentMessage[]): Awaitable<Message[]>;

  /** Trims or extends what the next request is made of; the transcript stays. Gets a copy. A throw is an error turn. Raced with abort. */
  transformContext?(messages: AgentMessage[], signal: AbortSignal): Awaitable<AgentMessage[]>;

  /** The key for one model call, asked anew each time; undefined falls back to `apiKey`. A throw is an error turn. Raced with abort. */
  getApiKey?(provider: string): Awaitable<string | undefined>;

  apiKey?: string;

  /** Passed to every model call; `apiKey` and `signal` are set by the loop. */
  streamOptions?: StreamOptions;

  /** @default "parallel" */
  toolExecution?: "parallel" | "sequential";

  /** How many calls of a batch run at once, at least 1. @default Infinity */
  maxParallelToolCalls?: number;

  /** Milliseconds for each tool that has no `timeoutMs` of its own; 0, negative or NaN: none. @default none */
  toolTimeoutMs?: number;

  /** After so many answers in a row whose calls were cut by the output limit the run ends with an error (SPEC 5.3). @default 3 */
  maxTruncatedTurns?: number;

  /** Milliseconds a running tool, or a sink that is still busy, has to settle after an abort (SPEC 7.2, 7.4). @default 250 */
  abortGraceMs?: number;

  /**
   * Asked before a valid call is executed, one call at a time in source order. A throw blocks the call (fail closed).
   * Not asked for unknown, invalid or truncated calls. Raced with abort (SPEC 5.8).
   */
  beforeToolCall?(call: BeforeToolCallContext, signal: AbortSignal): Awaitable<BeforeToolCallResult | undefined | void>;

  /**
   * Runs after every call whose `execute` was entered, also when it threw or timed out, but not once the run is aborted. A
   * throw makes the call an error result. Raced with abort (SPEC 5.12).
   */
  afterToolCall?(call: AfterToolCallContext, signal: AbortSignal): Awaitable<AfterToolCallResult | undefined | void>;

  /** Runs after each `turn_end`. A throw ends the run with outcome `error`. Raced with abort (SPEC 6.3, 6.4). */
  prepareNextTurn?(turn: TurnContext, signal: AbortSignal): Awaitable<NextTurn<M> | undefined | void>;

  /** Runs after `prepareNextTurn`; true ends the run as `stopped`. `turn` counts from 1. A throw ends the run with outcome `error`. Raced with abort. */
  shouldStopAfterTurn?(turn: TurnContext & { turn: number }): Awaitable<boolean>;

  /**
   * Polled after each turn; what it returns goes into the next request. A throw ends the run with outcome `error`. Not
   * raced: a poll that has begun is waited for, so that nothing taken from a queue is lost (SPEC 7.2).
   */
  getSteeringMessages?(): Awaitable<AgentMessage[]>;

  /** Polled when the run would end. Otherwise as `getSteeringMessages`. */
  getFollowUpMessages?(): Awaitable<AgentMessage[]>;

  /** Unix milliseconds, for every stored timestamp; the current time when it throws or gives no finite number (SPEC 2.2). @default Date.now */
  now?(): number;
}
