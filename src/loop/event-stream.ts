/** The iterable form of a run (SPEC 4.9). */
import type { AgentContext, AgentLoopConfig } from "../config.js";
import type { AgentEvent, AgentEventSink } from "../events.js";
import type { AgentMessage } from "../messages.js";
import type { StreamFn } from "../stream.js";
import { Fifo } from "./fifo.js";
import { runAgentLoop, runAgentLoopContinue } from "./loop.js";

type StartRun = (emit: AgentEventSink, signal: AbortSignal) => Promise<AgentMessage[]>;

/**
 * A run as an async iterable of its events. The run starts with the first `next()` or `result()`; iterating drives it with
 * back-pressure, `result()` alone drains it. Leaving the iteration early aborts the run; `result()` then resolves with
 * what there is. Misuse rejects the first `next()` and `result()` (SPEC 4.3), never an unhandled rejection. One
 * iteration a run: further iterators share it.
 */
export class AgentEventStream implements AsyncIterable<AgentEvent> {
  readonly #start: StartRun;
  readonly #caller: AbortSignal | undefined;
  readonly #controller = new AbortController();
  #run: Promise<AgentMessage[]> | undefined;
  #running = true;
  #failure: { error: unknown } | undefined;
  #iterated = false;
  #left = false;
  /** Nobody holds the run back any more: `result()` was asked, or the run was aborted. */
  #unbounded = false;
  readonly #events = new Fifo<AgentEvent>();
  readonly #consumers = new Fifo<{ resolve(result: IteratorResult<AgentEvent, undefined>): void; reject(error: unknown): void }>();
  /** Lets the run go on once its last event was consumed. */
  #release: (() => void) | undefined;

  /** @internal */
  constructor(start: StartRun, signal: AbortSignal | undefined) {
    this.#start = start;
    this.#caller = signal;
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    this.#iterated = true;
    return {
      next: () => this.#next(),
      return: async () => {
        this.#leave();
        return { done: true, value: undefined };
      },
      throw: async (error: unknown) => {
        this.#leave();
        throw error;
      },
    };
  }

  /** The messages the run added. Starts the run if nothing did, and lets it run to its end. */
  result(): Promise<AgentMessage[]> {
    this.#unbounded = true;
    this.#release?.();
    return this.#begin();
  }

  #begin(): Promise<AgentMessage[]> {
    // a microtask later, so that an iteration begun right after result() misses nothing
    this.#run ??= Promise.resolve().then(() => this.#drive());
    this.#run.catch(() => {});
    return this.#run;
  }

  async #drive(): Promise<AgentMessage[]> {
    const caller = this.#caller;
    const forward = (): void => this.#abort(caller?.reason);
    // what is no signal goes to the run as it is, which refuses it
    const isSignal = typeof caller?.addEventListener === "function" && typeof caller.removeEventListener === "function";
    try {
      if (isSignal && caller.aborted) forward();
      else if (isSignal) caller.addEventListener("abort", forward);
      const signal = caller && !isSignal ? caller : this.#controller.signal;
      return await this.#start((event) => this.#receive(event), signal);
    } catch (error) {
      this.#failure = { error };
      throw error;
    } finally {
      this.#running = false;
      this.#settleConsumers();
      if (isSignal) caller.removeEventListener("abort", forward);
    }
  }

  #receive(event: AgentEvent): void | Promise<void> {
    const consumer = this.#consumers.shift();
    if (consumer) consumer.resolve({ done: false, value: event });
    else if (this.#iterated && !this.#left) this.#events.push(event);
    if (this.#unbounded || this.#consumers.size > 0) return;
    return new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  #next(): Promise<IteratorResult<AgentEvent, undefined>> {
    const event = this.#events.shift();
    if (event) return Promise.resolve({ done: false, value: event });
    if (this.#left) return Promise.resolve({ done: true, value: undefined });
    this.#begin();
    return new Promise((resolve, reject) => {
      this.#consumers.push({ resolve, reject });
      this.#release?.();
      if (!this.#running) this.#settleConsumers();
    });
  }

  #settleConsumers(): void {
    for (let consumer = this.#consumers.shift(); consumer; consumer = this.#consumers.shift()) {
      if (this.#failure) {
        consumer.reject(this.#failure.error);
        this.#failure = undefined;
      } else consumer.resolve({ done: true, value: undefined });
    }
  }

  #leave(): void {
    this.#left = true;
    this.#abort(new Error("the consumer left the event stream"));
    this.#events.clear();
    this.#settleConsumers();
  }

  /** From here on nothing waits for the consumer: the closing events are buffered (SPEC 7.2). */
  #abort(reason: unknown): void {
    this.#unbounded = true;
    this.#controller.abort(reason);
    this.#release?.();
  }
}

/** `runAgentLoop` as an iterable of its events. */
export function agentLoop(
  prompts: AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): AgentEventStream {
  return new AgentEventStream((emit, derived) => runAgentLoop(prompts, context, config, emit, derived, streamFn), signal);
}

/** `runAgentLoopContinue` as an iterable of its events. */
export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): AgentEventStream {
  return new AgentEventStream((emit, derived) => runAgentLoopContinue(context, config, emit, derived, streamFn), signal);
}
