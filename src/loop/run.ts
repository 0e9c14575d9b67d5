/** The state of one run: made by loop.ts, passed along, gone with the run (SPEC 4.1). */
import type { AgentContext, AgentLoopConfig } from "../config.js";
import { assertAtLeast, misuse } from "../errors.js";
import type { AgentEventSink } from "../events.js";
import type { AgentMessage } from "../messages.js";
import type { LlmTool, Model, StreamFn, StreamOptions } from "../stream.js";
import { type AgentTool, assertTool, duplicateTool } from "../tool.js";
import { wellFormedDeep } from "../transcript.js";
import { RunAbort } from "./abort.js";
import { type ToolSchema, toolSchema } from "./arguments.js";
import { Delivery } from "./delivery.js";
import { RequestLog } from "./request.js";

export const DEFAULT_ABORT_GRACE_MS = 250;

export interface Run {
  readonly config: AgentLoopConfig;
  readonly streamFn: StreamFn;
  readonly abort: RunAbort;
  readonly delivery: Delivery;
  /** What the next requests are made of; replaced by `prepareNextTurn`. */
  systemPrompt: string;
  model: Model;
  streamOptions: StreamOptions | undefined;
  toolSource: Iterable<AgentTool> | undefined;
  transcript: AgentMessage[];
  requestLog: RequestLog;
  /** The tools of the current turn. */
  tools: ToolSet;
  /** What the run has added: what its promise resolves with. */
  readonly added: AgentMessage[];
  /** From 1. */
  turn: number;
  /** Some answer has fields of its StreamFn's own that are not plain values. */
  hasExtras: boolean;
  /** Why no further answer is asked for, though a turn has begun: a poll gave something that is no message. */
  refusal: Error | undefined;
  /** Answers in a row whose calls were cut by the output limit. */
  truncatedTurns: number;
}

/** Throws a TurnLoopError for misuse; nothing has happened then (SPEC 4.3). */
export function createRun(
  context: AgentContext,
  config: AgentLoopConfig,
  emit: AgentEventSink,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): Run {
  assertArguments(context, config, emit, signal, streamFn);
  const toolSource = reusable(context.tools);
  const tools = toolSetOf(toolSource);
  const graceMs = config.abortGraceMs ?? DEFAULT_ABORT_GRACE_MS;
  const abort = new RunAbort(signal, graceMs);
  return {
    config,
    streamFn,
    abort,
    delivery: new Delivery(emit, abort, graceMs),
    systemPrompt: context.systemPrompt,
    model: config.model,
    streamOptions: config.streamOptions,
    toolSource,
    transcript: context.messages.slice(),
    requestLog: new RequestLog(),
    tools,
    added: [],
    turn: 0,
    hasExtras: false,
    refusal: undefined,
    truncatedTurns: 0,
  };
}

/** Tools are read anew for each turn: what can be read only once is read into a list. */
export function reusable(tools: Iterable<AgentTool> | undefined): Iterable<AgentTool> | undefined {
  return tools && (tools[Symbol.iterator]() as unknown) === tools ? [...tools] : tools;
}

/** A clock that throws, or gives no number that JSON can hold, must not cost a run its end or its transcript. */
export function readClock(config: Pick<AgentLoopConfig, "now">): number {
  try {
    const time = config.now?.();
    if (Number.isFinite(time)) return time as number;
  } catch {
    // as below
  }
  return Date.now();
}

/** No model call and no tool starts any more: the run was aborted or its sink failed (SPEC 4.10, 7.3). */
export function isStopping(run: Run): boolean {
  return run.abort.aborted || run.delivery.failure !== undefined;
}

export function append(run: Run, message: AgentMessage): void {
  run.transcript.push(message);
  run.added.push(message);
}

/** The context as hooks see it: arrays of their own (SPEC 6.2). Messages are copied when they are looked at. */
export function contextView(run: Run): AgentContext {
  const view: AgentContext = setCopy({ systemPrompt: run.systemPrompt, messages: [] as AgentMessage[] }, "messages", run.transcript);
  if (run.toolSource) view.tools = run.tools.list.slice();
  return view;
}

/** Up to this length a list is copied at once: cheaper than to define when it will be. */
const SHORT = 1024;

/** Sets `key` to a copy of the list as it is now; a long one is copied only when it is read, for most hooks never read it. */
export function setCopy<T extends object>(target: T, key: keyof T, list: readonly unknown[]): T {
  if (list.length <= SHORT) {
    target[key] = list.slice() as T[keyof T];
    return target;
  }
  const source: Source = { list, length: list.length, copy: undefined };
  Object.defineProperty(target, SOURCE, { value: source });
  return Object.defineProperty(target, key, COPIED_WHEN_READ);
}

interface Source {
  readonly list: readonly unknown[];
  readonly length: number;
  copy: unknown;
}

const SOURCE = Symbol("source");

/** One accessor for all: with one for each object V8 makes every object a slow one, and keeps what their closures hold for long. */
const COPIED_WHEN_READ: PropertyDescriptor & ThisType<{ [SOURCE]: Source }> = {
  enumerable: true,
  configurable: true,
  get() {
    const source = this[SOURCE];
    source.copy ??= source.list.slice(0, source.length);
    return source.copy;
  },
  set(replacement: unknown) {
    this[SOURCE].copy = replacement;
  },
};

/** Tools by name, with what the model is shown of them. Never changed, so that runs with the same tools share one. */
class ToolSet {
  readonly list: readonly AgentTool[];
  readonly declarations: readonly LlmTool[];
  readonly #byName = new Map<string, ToolEntry>();

  /** Throws `invalid_tool` or `duplicate_tool`. */
  constructor(list: AgentTool[]) {
    this.list = list;
    for (const tool of list) {
      assertTool(tool);
      if (this.#byName.has(tool.name)) throw duplicateTool(tool.name);
      const { name, description, parameters } = tool;
      this.#byName.set(name, { tool, schema: toolSchema(tool), description, parameters });
    }
    this.declarations = [...this.#byName.values()].map(({ tool, schema }) => ({
      name: wellFormedDeep(tool.name),
      description: wellFormedDeep(tool.description ?? ""),
      parameters: schema.json,
    }));
  }

  get(name: string): ToolEntry | undefined {
    return this.#byName.get(name);
  }

  /** The source lists the same tools, and they are as they were. */
  isCurrent(source: Iterable<AgentTool>): boolean {
    let index = 0;
    for (const tool of source) {
      if (this.list[index++] !== tool) return false;
      const entry = this.#byName.get(tool.name);
      if (entry?.tool !== tool || entry.description !== tool.description || entry.parameters !== tool.parameters) return false;
    }
    return index === this.list.length;
  }
}

interface ToolEntry {
  tool: AgentTool;
  schema: ToolSchema;
  description: unknown;
  parameters: unknown;
}

const NO_TOOLS: readonly AgentTool[] = [];
const toolSets = new WeakMap<object, ToolSet>();

/** Throws `invalid_tool` or `duplicate_tool`. */
export function toolSetOf(source: Iterable<AgentTool> = NO_TOOLS): ToolSet {
  const known = toolSets.get(source);
  if (known?.isCurrent(source)) return known;
  const made = new ToolSet([...source]);
  toolSets.set(source, made);
  return made;
}

/** Throws for the first argument that cannot be used. Hooks and limits left out are fine. */
function assertArguments(context: unknown, config: unknown, emit: unknown, signal: unknown, streamFn: unknown): void {
  const { messages, tools = [], systemPrompt = "" } = Object(context) as Partial<AgentContext>;
  const options = Object(config) as AgentLoopConfig;
  const { toolExecution = "parallel", maxParallelToolCalls = 1, maxTruncatedTurns = 1, abortGraceMs = 0 } = options;
  expect(Array.isArray(messages), "context.messages", "an array of messages", messages);
  expect(typeof systemPrompt === "string", "context.systemPrompt", "a string", systemPrompt);
  expect(typeof Object(tools)[Symbol.iterator] === "function", "context.tools", "an iterable of tools", tools);
  expect(typeof options.model === "object" && options.model !== null, "config.model", "a model with an id and a provider", options.model);
  expect(
    toolExecution === "parallel" || toolExecution === "sequential",
    "config.toolExecution",
    '"parallel" or "sequential"',
    toolExecution,
  );
  assertAtLeast(1, "config.maxParallelToolCalls", maxParallelToolCalls);
  assertAtLeast(1, "config.maxTruncatedTurns", maxTruncatedTurns);
  assertAtLeast(0, "config.abortGraceMs", abortGraceMs);
  for (const hook of HOOKS) {
    const given: unknown = options[hook] ?? undefined;
    if (given !== undefined && typeof given !== "function") throw misuse(`config.${hook}`, "a function", given);
  }
  expect(typeof emit === "function", "emit", "a function that takes an event", emit);
  expect(isSignal(signal), "signal", "an AbortSignal", signal);
  if (typeof streamFn !== "function")
    throw misuse("streamFn", "a function (model, context, options) that streams an answer", streamFn, "no_stream_fn");
}

export const HOOKS = [
  "convertToLlm",
  "transformContext",
  "getApiKey",
  "beforeToolCall",
  "afterToolCall",
  "prepareNextTurn",
  "shouldStopAfterTurn",
  "getSteeringMessages",
  "getFollowUpMessages",
  "now",
] as const;

export function isSignal(signal: unknown): boolean {
  if (signal === undefined || signal === null) return true;
  const { addEventListener, removeEventListener } = signal as AbortSignal;
  return typeof addEventListener === "function" && typeof removeEventListener === "function";
}

function expect(holds: boolean, name: string, expected: string, got: unknown): void {
  if (!holds) throw misuse(name, expected, got);
}
