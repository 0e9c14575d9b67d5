/** What one interpreted run shares: the clock, the abort, and the log that the checks read. */
import type { AgentEvent, AgentMessage, LlmContext, Message, StreamFn, StreamOptions } from "turnloop";
import { vi } from "vitest";
import { show, THROWN } from "./odd-values.js";
import type { Act, CallName, HookName, Scenario, Wait } from "./scenario.js";

/** One call of the StreamFn, and what its stream gave. */
export interface ModelCall {
  modelId: string;
  messages: Message[];
  context: LlmContext;
  options: StreamOptions | undefined;
  /** The tools in force. */
  tools: number;
  /** The content of each frame that was pulled, and of the terminal message. */
  frames: { type: string; content: string }[];
  terminal?: string;
}

export interface Execution {
  turn: number;
  index: number;
  id: string;
  tool: number;
  args: string;
  prototypeIsPlain: boolean;
  startedAt: number;
  settledAt?: number;
  /** `onUpdate` calls before it settled. */
  updates: number;
}

export interface SinkCall {
  event: AgentEvent;
  /** The event as it was when it came. */
  json: string;
  from: number;
  to?: number;
}

export class World {
  readonly controller = new AbortController();
  readonly violations: string[] = [];
  #inside = 0;
  readonly #timers = new Set<unknown>();
  readonly modelCalls: ModelCall[] = [];
  readonly executions: Execution[] = [];
  readonly sinkCalls: SinkCall[] = [];
  readonly hookCalls: { hook: HookName; act: string; callId?: string }[] = [];
  readonly polled: AgentMessage[] = [];
  /** Polls that were not settled at the abort, or began then. */
  polledAfterStop = 0;
  pollMs = 0;
  points = 0;
  /** Things that will never settle on their own. */
  hangs = 0;
  /** The tools in force. */
  tools: number;
  sinkBusy = false;
  sinkFailure: { cause: unknown } | undefined;
  sinkFailedAt: number | undefined;
  /** Only hanging things were left, so the test aborted the run. */
  forced = false;
  /** The consumer left the iteration; stopped reading without a word; began to read when the run was on. */
  left = false;
  silent = false;
  late = false;
  /** How often the sink failed, and how often an Agent told of it. */
  sinkFailures = 0;
  reported = 0;
  stoppedAt: number | undefined;
  over = false;

  constructor(
    readonly scenario: Scenario,
    /** Around the StreamFn: not every answer of it is the run's. */
    readonly decorate?: (streamFn: StreamFn) => StreamFn,
  ) {
    this.tools = scenario.tools.length;
  }

  /** The sink is a listener of an Agent. */
  get isAgent(): boolean {
    return this.scenario.entry === "agent";
  }

  /** The run was told to end. */
  get stopped(): boolean {
    return this.left || this.controller.signal.aborted;
  }

  fail(text: string): void {
    if (!this.violations.includes(text)) this.violations.push(text);
  }

  abort(reason: unknown = THROWN[this.scenario.abort.reason]?.()): void {
    this.stoppedAt ??= Date.now();
    if (reason === undefined) return this.controller.abort();
    try {
      this.controller.abort(reason);
    } catch {
      this.controller.abort(); // workerd's reads the reason, and throws what a reason throws
    }
  }

  /** The run calls something of the host's: here an abort may fall. */
  point(): void {
    this.#abortAt("point", this.points++);
  }

  #abortAt(place: "point" | "inside" | "hang", count: number): void {
    const { at, n, microtasks } = this.scenario.abort;
    if (at !== place || count !== (at === "point" ? n : n % 3)) return;
    const later = (left: number): void => (left === 0 ? this.abort() : queueMicrotask(() => later(left - 1)));
    later(microtasks);
  }

  /** A model call, hook or tool starts: not allowed after the abort (SPEC 7.3), nor a model call or tool after a failed sink (4.10). */
  start(what: CallName): void {
    if (this.stopped) this.fail(`7.3: ${what} starts after the abort`);
    if (this.sinkFailure && ["streamFn", "execute", "prepareArguments"].includes(what))
      this.fail(`4.10: ${what} starts after the sink failed`);
    if (this.over) this.fail(`4.5: ${what} starts after the run has settled`);
    this.point();
    if (what === this.scenario.abort.where) this.#abortAt("inside", this.#inside++);
  }

  later(ms: number, callback: () => void): () => void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, ms);
    this.#timers.add(timer);
    return () => {
      clearTimeout(timer);
      this.#timers.delete(timer);
    };
  }

  /** Timers that are not the interpreter's own. */
  foreignTimers(): number {
    return vi.getTimerCount() - this.#timers.size;
  }

  hang(): Promise<never> {
    this.#abortAt("hang", this.hangs++);
    return new Promise(() => {});
  }

  answer<T>(wait: Wait | "never", make: () => T): T | Promise<T> {
    if (wait === "sync") return make();
    if (wait === "never") return this.hang();
    if (wait === "micro") return Promise.resolve().then(make);
    return new Promise<void>((resolve) => this.later(wait, resolve)).then(make);
  }

  /** The log of a hook's call, and what it is to do. */
  hook(hook: HookName, callId?: string): Act {
    const calls = this.hookCalls.filter((earlier) => earlier.hook === hook).length;
    const act = this.scenario.hooks[hook]?.[calls] ?? { act: "none", wait: "sync", odd: 0 };
    this.hookCalls.push({ hook, act: act.act, ...(callId !== undefined && { callId }) });
    this.start(hook);
    return act;
  }

  thrown(odd: number): never {
    throw THROWN[odd]?.();
  }

  sinkFailed(cause: unknown): void {
    this.sinkFailure ??= { cause };
    this.sinkFailedAt ??= Date.now();
  }

  record(event: AgentEvent): SinkCall {
    const call: SinkCall = { event, json: show(event), from: Date.now() };
    this.sinkCalls.push(call);
    return call;
  }
}
