/**
 * The conditions that hold in every field report, whatever it is about:
 * O1 each call has exactly one result, right after its assistant message; O2 the promise settles, one agent_end, last, all
 * pairs balanced; O3 no unhandled rejection, process warning or timer left; O4 as many listeners on the caller's signal as
 * before; O5 nothing executes twice; O6 inputs unchanged (they are deep-frozen).
 *
 * Each test drives its runs through `play` or a `Stage`, which check these; `watchConditions` covers the test as a whole.
 */
import { getEventListeners } from "node:events";
import {
  type AgentContext,
  type AgentEvent,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  type AssistantMessage,
  type AssistantStream,
  emptyUsage,
  type LlmContext,
  type Message,
  runAgentLoop,
  runAgentLoopContinue,
  type StreamFn,
  type StreamOptions,
  type ToolCall,
  type TurnLoopError,
  userMessage,
} from "turnloop";
import { assertEventSequence, type Block, type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { model, type RunOptions, type RunRecord } from "../helpers.js";

export interface PlayOptions extends RunOptions {
  /** Runs on from `messages` with runAgentLoopContinue. */
  continuing?: boolean;
  /** False: updates are not recorded, for long streams. */
  keepUpdates?: boolean;
}

export interface Played extends RunRecord {
  options: StreamOptions[];
  /** The calls whose `execute` was entered, in that order. */
  executed: string[];
  /** The most listeners the caller's signal had during the run. */
  peakListeners: number;
  rejection: TurnLoopError | undefined;
}

const realImmediate = globalThis.setImmediate;
let watched: { events: AgentEvent[]; length: number }[] = [];
let troubles: unknown[] = [];
let hostTimers = 0;

/** Call once at the top of a file: a fake clock, and O2 and O3 for the test as a whole. */
export function watchConditions(): void {
  const onTrouble = (trouble: unknown): void => {
    troubles.push(trouble);
  };
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    watched = [];
    troubles = [];
    hostTimers = 0;
    process.on("unhandledRejection", onTrouble);
    process.on("warning", onTrouble);
  });
  afterEach(async () => {
    await macrotasks();
    process.off("unhandledRejection", onTrouble);
    process.off("warning", onTrouble);
    const timers = vi.getTimerCount();
    vi.restoreAllMocks();
    vi.useRealTimers();
    expect(troubles, "O3: unhandled rejections and warnings").toEqual([]);
    expect(timers, "O3: timers left at the end of the test").toBe(0);
    expect(watched.length, "runs whose conditions were checked").toBeGreaterThan(0);
    for (const { events, length } of watched) expect(events.length, "O2: events after the end of a run").toBe(length);
  });
}

/** Lets everything happen that needs no timer, unhandled rejections included. */
export async function macrotasks(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise<void>((resolve) => realImmediate(resolve));
}

export const advance = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms);
};

/** A timer of the host's, which is no leak of the library's. */
export function sleep(ms: number): Promise<void> {
  hostTimers++;
  return new Promise((resolve) => {
    setTimeout(() => {
      hostTimers--;
      resolve();
    }, ms);
  });
}

/** Runs to the end, also to a rejection by the run itself, and checks O1 to O6. */
export async function play(answers: ScriptedAnswer[] | StreamFn, options: PlayOptions = {}): Promise<Played> {
  const stage = new Stage(answers, options);
  const { prompts, context, config, emit, signal, streamFn } = stage;
  const run = options.continuing
    ? runAgentLoopContinue(context, config, emit, signal, streamFn)
    : runAgentLoop(prompts, context, config, emit, signal, streamFn);
  return run.then(
    (messages) => stage.check(messages),
    (error: TurnLoopError) => stage.check(error.messages ?? [], error),
  );
}

/** The watched inputs of one run. */
export class Stage {
  readonly prompts: AgentMessage[];
  readonly context: AgentContext;
  readonly config: AgentLoopConfig;
  readonly signal: AbortSignal;
  readonly streamFn: StreamFn;
  readonly events: AgentEvent[] = [];
  readonly requests: LlmContext[] = [];
  readonly options: StreamOptions[] = [];
  readonly executed: string[] = [];
  readonly #faults: string[] = [];
  readonly #scripted: ReturnType<typeof scriptedModel> | undefined;
  readonly #listenersBefore: number;
  readonly #timersBefore: number;
  #peakListeners = 0;
  readonly emit: (event: AgentEvent) => void | Promise<void>;

  constructor(answers: ScriptedAnswer[] | StreamFn, options: PlayOptions = {}) {
    this.#scripted = Array.isArray(answers) ? scriptedModel(answers) : undefined;
    const inner = this.#scripted ?? (answers as StreamFn);
    this.streamFn = (requestModel, context, streamOptions) => {
      this.requests.push({ ...context, messages: context.messages.slice() });
      this.options.push(streamOptions ?? {});
      const fault = unpaired(context.messages);
      if (fault) this.#faults.push(`request ${this.requests.length}: ${fault}`);
      return inner(requestModel, context, streamOptions);
    };
    const tools = [...(options.tools ?? [])].map((tool) => this.#counted(tool));
    this.prompts = deepFreeze(options.prompts ?? [userMessage("go")]);
    this.context = deepFreeze({ systemPrompt: options.systemPrompt ?? "", messages: options.messages ?? [], tools });
    this.config = deepFreeze({ model, ...options.config });
    this.signal = options.signal ?? new AbortController().signal;
    this.#listenersBefore = listeners(this.signal);
    this.#timersBefore = vi.getTimerCount() - hostTimers;
    this.emit = (event) => {
      const isUpdate = event.type === "message_update" || event.type === "tool_execution_update";
      if (!isUpdate || options.keepUpdates !== false) this.events.push(event);
      this.#peakListeners = Math.max(this.#peakListeners, listeners(this.signal) - this.#listenersBefore);
      return options.onEvent?.(event);
    };
  }

  /** After the run: `left` when the consumer of an event stream went away before the end and may not know the messages. */
  check(messages: AgentMessage[], rejection?: TurnLoopError, { left = false } = {}): Played {
    if (rejection && rejection.code !== "sink_failed") {
      expect(this.events, "O2: events of a rejected misuse").toEqual([]);
    } else if (!left) {
      assertEventSequence(this.events);
      expect(this.events.filter(({ type }) => type === "agent_end").length, "O2: agent_end events").toBe(1);
      expect((this.events[this.events.length - 1] as Played["end"]).messages, "O2: agent_end.messages").toEqual(messages);
    }
    watched.push({ events: this.events, length: this.events.length });
    expect(this.#faults, "O1: pairing of the requests").toEqual([]);
    expect(unpaired(messages.filter(isAnswered)), "O1: pairing of the transcript").toBeUndefined();
    expect(listeners(this.signal), "O4: listeners on the caller's signal").toBe(this.#listenersBefore);
    expect(vi.getTimerCount() - hostTimers, "O3: timers left by the run").toBe(this.#timersBefore);
    const calls = messages.flatMap((message) => (message.role === "assistant" ? callsOf(message as AssistantMessage) : []));
    const foreign = this.executed.filter((id) => !calls.some((call) => call.id === id));
    if (!left) expect(foreign, "O5: executions of calls of an earlier run").toEqual([]);
    const end = this.events[this.events.length - 1] as Played["end"];
    const { events, options, executed } = this;
    const requests = this.#scripted?.requests ?? this.requests;
    const peakListeners = this.#peakListeners;
    return { events, messages, requests, options, executed, peakListeners, rejection, end, outcome: end?.outcome };
  }

  #counted(tool: AgentTool): AgentTool {
    const entered = new Set<string>();
    return {
      ...tool,
      execute: (id, params, signal, onUpdate, position) => {
        const key = `${position.turn}:${position.index}`;
        if (entered.has(key)) this.#faults.push(`O5: call ${id} at ${key} was executed twice`);
        entered.add(key);
        this.executed.push(id);
        return tool.execute(id, params, signal, onUpdate, position);
      },
    };
  }
}

/** A failed answer may keep calls that nothing answers (O1). */
function isAnswered(message: AgentMessage): message is Message {
  if (message.role === "assistant") return !["error", "aborted"].includes((message as AssistantMessage).stopReason);
  return message.role === "user" || message.role === "toolResult";
}

/** What is wrong with the pairing of calls and results, if anything. */
function unpaired(messages: readonly Message[]): string | undefined {
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "toolResult") {
      if (open.shift() !== message.toolCallId) return `result ${message.toolCallId} at ${index} does not answer the next call`;
      continue;
    }
    if (open.length > 0) return `call ${open[0]} has no result before message ${index}`;
    if (message.role !== "assistant") continue;
    open = callsOf(message).map(({ id }) => id);
    if (open.some((id) => id.trim() === "") || new Set(open).size < open.length) return `the call ids ${open.join()} at ${index}`;
    if (open.length > 0 && !isAnswered(message)) return `a failed answer with calls at ${index}`;
  }
  return open.length > 0 ? `call ${open[0]} at the end has no result` : undefined;
}

export function callsOf(message: AssistantMessage): ToolCall[] {
  return message.content.filter((block): block is ToolCall => block.type === "toolCall");
}

function listeners(signal: AbortSignal): number {
  return getEventListeners(signal, "abort").length;
}

/** Freezes plain objects and arrays all the way down; what is not plain (schemas of classes, signals) is left alone. */
export function deepFreeze<T>(value: T, seen = new Set<unknown>()): T {
  if (typeof value !== "object" || value === null || seen.has(value)) return value;
  seen.add(value);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && !Array.isArray(value)) return value;
  for (const key of Reflect.ownKeys(value)) deepFreeze((value as Record<PropertyKey, unknown>)[key], seen);
  return Object.freeze(value);
}

/** Makes tools that answer "ran" and keep the arguments they got. */
export function recordingTools() {
  const got: any[] = [];
  const tool = (name: string, parameters: unknown = { type: "object", properties: {} }): AgentTool => ({
    name,
    description: name,
    parameters,
    execute: (_id, args) => {
      got.push(args);
      return "ran";
    },
  });
  return { got, tool };
}

/** A tool call in a scripted answer. */
export function call(id: string, toolCall: string, args: unknown = {}): Block {
  return { id, toolCall, args };
}

/** An AbortError as fetch and friends throw it. */
export function abortError(): Error {
  return new DOMException("This operation was aborted", "AbortError");
}

/** An answer as a StreamFn may give it, well-formed or not. */
export function answer(fields: Record<string, unknown>): any {
  const { api, provider, id } = model;
  return { role: "assistant", content: [], api, provider, model: id, usage: emptyUsage(), stopReason: "stop", timestamp: 1, ...fields };
}

/** A StreamFn that only gives the final message; the answers after the last one are "ok". */
export function finalMessages(...messages: unknown[]): StreamFn {
  let given = 0;
  return () => rawStream([{ type: "done", message: messages[given++] ?? answer({ content: [{ type: "text", text: "ok" }] }) }]);
}

/** A stream of these very events, in which `return()` stops nothing. `after` gives what comes behind them. */
export function rawStream(events: readonly unknown[], after?: () => Promise<IteratorResult<any>>, result?: () => Promise<any>) {
  const seen = { pulled: 0, returned: 0 };
  const iterator: AsyncIterator<any> = {
    next: () => {
      const value = events[seen.pulled++];
      if (seen.pulled <= events.length) return Promise.resolve({ done: false, value });
      return after ? after() : Promise.resolve({ done: true, value: undefined });
    },
    return: () => {
      seen.returned++;
      return new Promise(() => {});
    },
  };
  const stream: AssistantStream = { [Symbol.asyncIterator]: () => iterator, ...(result && { result }) };
  return Object.assign(stream, { seen });
}

/** A queue on the host's side of `getSteeringMessages` or `getFollowUpMessages`. */
export function hostQueue(mode: "all" | "one-at-a-time" = "all") {
  const texts: string[] = [];
  const poll = (): AgentMessage[] =>
    deepFreeze(texts.splice(0, mode === "all" ? texts.length : 1).map((text) => userMessage(text, { timestamp: 1 })));
  return { texts, poll };
}

/** The texts of the user messages of a request. */
export function userTexts(request: LlmContext | undefined): unknown[] {
  return (request?.messages ?? []).flatMap((message) => (message.role === "user" ? [message.content] : []));
}
