import type { AgentEvent, AgentEventSink } from "../events.js";
import { startTimer } from "../loop/abort.js";
import { DEFAULT_ABORT_GRACE_MS } from "../loop/run.js";
import type { AgentMessage } from "../messages.js";

export type EndEvent = Extract<AgentEvent, { type: "agent_end" }>;

/** A listener of `subscribe`. */
export interface Subscriber {
  listen: AgentEventSink;
}

/**
 * What belongs to one run of an Agent. To the loop it is the caller's signal, as far as the loop looks at one: a controller
 * with a real one takes more time and memory than all the rest of a short run's state.
 */
export class ActiveRun {
  readonly #dispatch: (event: AgentEvent) => void | Promise<void>;
  readonly #graceMs: number;
  #onAbort: (() => void)[] = [];
  #waiters: (() => void)[] = [];
  aborted = false;
  reason: unknown;
  /** Listeners are still busy with what was delivered so far. */
  #delivering: Promise<void> | undefined;
  /** Lets the loop go on when an abort must not wait for listeners. */
  #release: (() => void) | undefined;
  /** Subscribers that did not settle in time after the abort. */
  givenUp: Subscriber[] = [];
  /** The first turn has begun. */
  begun = false;
  messagesReplaced = false;
  /** The prompt, steering message or tool result between its start and its end. */
  incoming: AgentMessage | undefined;
  end: EndEvent | undefined;

  constructor(dispatch: (event: AgentEvent) => void | Promise<void>, graceMs = DEFAULT_ABORT_GRACE_MS) {
    this.#dispatch = dispatch;
    this.#graceMs = graceMs;
  }

  get signal(): AbortSignal {
    return this as Pick<AbortSignal, "aborted" | "reason"> as AbortSignal;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#onAbort.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#onAbort = this.#onAbort.filter((other) => other !== listener);
  }

  /** Resolves when the run is over and every listener is done. */
  idle(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of this.#onAbort) listener();
    this.#release?.();
  }

  /** Aborts with the caller's signal. Returns what ends that. */
  follow(signal: AbortSignal | undefined): () => void {
    const onAbort = (): void => this.abort(signal?.reason);
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort);
    return () => signal?.removeEventListener("abort", onAbort);
  }

  /** Delivers in order. The loop waits for the listeners, but not once the run is aborted: they are given up one by one. */
  deliver(event: AgentEvent): void | Promise<void> {
    const delivering = this.#delivering ? this.#dispatchLater(event, this.#delivering) : this.#dispatch(event);
    return delivering && this.#wait(delivering);
  }

  async #dispatchLater(event: AgentEvent, before: Promise<void>): Promise<void> {
    await before;
    await this.#dispatch(event);
  }

  #wait(delivering: Promise<void>): void | Promise<void> {
    this.#delivering = delivering;
    const done = (): void => {
      if (this.#delivering === delivering) this.#delivering = undefined;
    };
    if (this.aborted) return void delivering.then(done);
    return new Promise((resolve) => {
      this.#release = resolve;
      delivering.then(() => {
        done();
        resolve();
      });
    });
  }

  async drained(): Promise<void> {
    while (this.#delivering) await this.#delivering;
  }

  /** Resolves with the listener, or when the grace is over, counted from the later of the abort and now. */
  withinGrace(listening: Promise<void>, onGraceOver: () => void): Promise<void> {
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const startGrace = (): void => {
        timer = startTimer(() => {
          onGraceOver();
          resolve();
        }, this.#graceMs);
      };
      if (this.aborted) startGrace();
      else this.addEventListener("abort", startGrace);
      listening.then(() => {
        clearTimeout(timer);
        this.removeEventListener("abort", startGrace);
        resolve();
      });
    });
  }

  finish(): void {
    for (const resolve of this.#waiters) resolve();
  }
}
