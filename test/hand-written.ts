import {
  type AgentTool,
  type AssistantMessage,
  type AssistantMessageEvent,
  type AssistantStream,
  emptyUsage,
  type LlmContext,
  type StreamFn,
  type ToolCall,
} from "turnloop";
import { makeTool, type RunRecord, resultsOf, run, textOf } from "./helpers.js";

/** An answer as a StreamFn without a builder would make it. Stop reasons and content may be anything a provider sends. */
export function answer(content: unknown, extra: Record<string, unknown> = {}): AssistantMessage {
  return {
    role: "assistant",
    content,
    api: "hand-written",
    provider: "hand-written",
    model: "hand-written",
    usage: emptyUsage(),
    stopReason: "stop",
    timestamp: 1,
    ...extra,
  } as AssistantMessage;
}

export function done(content: unknown, extra: Record<string, unknown> = {}): AssistantMessageEvent {
  return { type: "done", reason: "stop", message: answer(content, extra) };
}

/** Yields each list of events for one model call; the answers after that are just "end". */
export function streams(...calls: unknown[][]): StreamFn & { requests: LlmContext[] } {
  const requests: LlmContext[] = [];
  const streamFn: StreamFn = async function* (_model, context) {
    const index = requests.push(structuredClone(context)) - 1;
    yield* (calls[index] ?? [done([{ type: "text", text: "end" }])]) as AssistantMessageEvent[];
  };
  return Object.assign(streamFn, { requests });
}

export function toolCall(name: string, args: unknown, id = "c1"): ToolCall {
  return { type: "toolCall", id, name, arguments: args as ToolCall["arguments"] };
}

/** An answer of one text. */
export const said = (text: string) => answer([{ type: "text", text }]);
export const start: AssistantMessageEvent = { type: "start", partial: answer([]) };
export const delta = (text: string, contentIndex = 0): AssistantMessageEvent => ({
  type: "text_delta",
  contentIndex,
  delta: text,
  partial: said(text),
});

/** The first answer of a run. */
export const answerOf = (record: RunRecord) => record.messages.find((message): message is AssistantMessage => message.role === "assistant");

export function iterable(next: () => unknown, extra: object = {}): AssistantStream {
  return { [Symbol.asyncIterator]: () => ({ next, ...extra }) } as unknown as AssistantStream;
}

/** The events, then the end of the iteration. */
export function eventsThen(events: AssistantMessageEvent[], result?: () => unknown): StreamFn {
  return () => {
    let i = 0;
    const next = async () => (i < events.length ? { done: false, value: events[i++] } : { done: true, value: undefined });
    return { ...iterable(next), ...(result && { result }) } as AssistantStream;
  };
}

export const NOT_EXECUTED = Symbol("not executed");

export interface CallOutcome extends RunRecord {
  /** What `execute` got, or NOT_EXECUTED. */
  got: unknown;
  isError: boolean;
  /** The text of the call's result. */
  text: string;
}

/** One run whose model calls the tool "t" of these parameters once, with arguments just as given. */
export async function callWith(parameters: unknown, args: unknown, extra: Partial<AgentTool> = {}): Promise<CallOutcome> {
  let got: unknown = NOT_EXECUTED;
  const execute = (_id: string, params: unknown): string => {
    got = params;
    return "ok";
  };
  const record = await run(streams([done([toolCall("t", args)])]), { tools: [makeTool("t", execute, { parameters, ...extra })] });
  const [result] = resultsOf(record);
  return { ...record, got, isError: result?.isError === true, text: textOf(result) };
}

export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const key of Reflect.ownKeys(value)) deepFreeze((value as Record<PropertyKey, unknown>)[key]);
  return value;
}

/** The strings and keys of JSON data that have a lone surrogate. */
export function loneSurrogates(value: unknown): string[] {
  const found: string[] = [];
  JSON.stringify(value, (key, item) => {
    for (const text of [key, item]) if (typeof text === "string" && /\p{Surrogate}/u.test(text)) found.push(text);
    return item;
  });
  return found;
}
