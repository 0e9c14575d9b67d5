import type { AgentEvent, AgentEventSink } from "../events.js";
import { startTimer } from "../loop/abort.js";
import { DEFAULT_ABORT_GRACE_MS } from "../loop/run.js";
import type { AgentMessage } from "../messages.js";

export type EndEvent = Extract<AgentEvent, { type: "agent_end" }>;

/** A listener of `subscribe`. */
export interface Subscriber {
  listen: AgentEventSink;
}

/** What belongs to one run of an Agent. */
export class ActiveRun {
  readonly #controller = new AbortController();
  readonly #graceMs: number;
  readonly #idle = deferred();
  /** Listeners are still busy with what was delivered so far. */
  #delivering: Promise<void> | undefined;
  /** Lets the loop go on when an abort must not wait for listeners. */
  #release: (() => void) | undefined;
  readonly givenUp = new Set<Subscriber>();
  messagesReplaced = false;
  /** The prompt, steering message or tool result between its start and its end. */
  incoming: AgentMessage | undefined;
  end: EndEvent | undefined;

  constructor(graceMs = DEFAULT_ABORT_GRACE_MS) {
    this.#graceMs = graceMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get idle(): Promise<void> {
    return this.#idle.promise;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
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
  deliver(dispatch: () => void | Promise<void>): void | Promise<void> {
    const delivering = this.#delivering ? this.#delivering.then(dispatch) : dispatch();
    if (!delivering) return undefined;
    this.#delivering = delivering;
    const done = (): void => {
      if (this.#delivering === delivering) this.#delivering = undefined;
    };
    if (this.signal.aborted) return void delivering.then(done);
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
      if (this.signal.aborted) startGrace();
      else this.signal.addEventListener("abort", startGrace);
      listening.then(() => {
        clearTimeout(timer);
        this.signal.removeEventListener("abort", startGrace);
        resolve();
      });
    });
  }

  finish(): void {
    this.#idle.resolve();
  }
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((onResolve) => {
    resolve = onResolve;
  });
  return { promise, resolve };
}
