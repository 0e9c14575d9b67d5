import {
  type AgentContext,
  type AgentEvent,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  type LlmContext,
  type Message,
  type Model,
  type RunOutcome,
  resumeAgentLoop,
  runAgentLoop,
  runAgentLoopContinue,
  type StreamFn,
  type ToolCallDecision,
  type ToolResultMessage,
  userMessage,
} from "turnloop";
import { assertEventSequence, recordEvents, type ScriptedAnswer, scriptedModel } from "turnloop/testing";

export const model: Model = { id: "test-model", provider: "test-provider", api: "test-api" };

export interface RunOptions {
  prompts?: AgentMessage[];
  messages?: AgentMessage[];
  systemPrompt?: string;
  tools?: Iterable<AgentTool>;
  config?: Partial<AgentLoopConfig>;
  signal?: AbortSignal;
  /** Called after the recorder; may throw, return a promise, abort. */
  onEvent?: (event: AgentEvent) => void | Promise<void>;
}

export interface RunRecord {
  events: AgentEvent[];
  messages: AgentMessage[];
  requests: LlmContext[];
  outcome: RunOutcome;
  end: Extract<AgentEvent, { type: "agent_end" }>;
}

/** Runs the answers (or a StreamFn) from the prompt "go", records the events and checks their grammar (SPEC 4.6, 2.6). */
export async function run(answers: ScriptedAnswer[] | StreamFn, options: RunOptions = {}): Promise<RunRecord> {
  const prompts = options.prompts ?? [userMessage("go")];
  return drive(answers, options, (...rest) => runAgentLoop(prompts, ...rest));
}

/** The same with runAgentLoopContinue on `options.messages`. */
export async function continueRun(answers: ScriptedAnswer[] | StreamFn, options: RunOptions = {}): Promise<RunRecord> {
  return drive(answers, options, runAgentLoopContinue);
}

/** The same with resumeAgentLoop on `options.messages`. */
export async function resumeRun(
  decisions: ToolCallDecision[],
  answers: ScriptedAnswer[] | StreamFn,
  options: RunOptions = {},
): Promise<RunRecord> {
  return drive(answers, options, (...rest) => resumeAgentLoop(decisions, ...rest), true);
}

async function drive(
  answers: ScriptedAnswer[] | StreamFn,
  options: RunOptions,
  start: typeof runAgentLoopContinue,
  resumed = false,
): Promise<RunRecord> {
  const scripted = Array.isArray(answers) ? scriptedModel(answers) : undefined;
  const streamFn = scripted ?? (answers as StreamFn);
  const recorder = recordEvents();
  const emit = (event: AgentEvent): void | Promise<void> => {
    recorder(event);
    return options.onEvent?.(event);
  };
  const context: AgentContext = { systemPrompt: options.systemPrompt ?? "", messages: options.messages ?? [], tools: options.tools ?? [] };
  const config: AgentLoopConfig = { model, ...options.config };
  const messages = await start(context, config, emit, options.signal, streamFn);
  assertEventSequence(recorder.events, { resumed });
  const end = recorder.events[recorder.events.length - 1] as RunRecord["end"];
  return { events: recorder.events, messages, requests: scripted?.requests ?? [], outcome: end.outcome, end };
}

/** The names of the events, updates left out unless asked for; tool events with their call id, messages with their role. */
export function outline(events: readonly AgentEvent[], { updates = false } = {}): string[] {
  return events
    .filter((event) => updates || (event.type !== "message_update" && event.type !== "tool_execution_update"))
    .map((event) => {
      if ("toolCallId" in event) return `${event.type} ${event.toolCallId}`;
      if (event.type === "message_start" || event.type === "message_end") return `${event.type} ${event.message.role}`;
      if (event.type === "agent_end") return `agent_end ${event.outcome}`;
      return event.type;
    });
}

/** The text of a message's text blocks. */
export function textOf(message: AgentMessage | undefined): string {
  const content = (message as Message | undefined)?.content ?? "";
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

export function resultsOf(record: { messages: AgentMessage[] }): ToolResultMessage[] {
  return record.messages.filter((message): message is ToolResultMessage => message.role === "toolResult");
}

/** A tool with any parameters; `execute` gets the arguments. */
export function makeTool(name: string, execute: AgentTool["execute"], extra: Partial<AgentTool> = {}): AgentTool {
  return { name, description: name, parameters: { type: "object", properties: {} }, execute, ...extra };
}

/** A promise and what settles it. */
export function deferred<T = void>(): { promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** Settles once the signal fires; never otherwise. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}
