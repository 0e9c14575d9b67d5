/** The steps of a durable run on Restate, and everything else a handler waits for meanwhile. */
import { type internal, RestatePromise, TerminalError } from "@restatedev/restate-sdk";
import type { Step } from "turnloop/durable";

/** What takes the outcome of a promise out of the race and gives it to who waits for it. */
type Settle = () => void;

/**
 * The SDK waits for one promise at a time, and the order in which promises settle must be that of the journal. So one poller
 * waits for all that is open, and for a cancellation, with one race of the SDK's own, and settles ordinary promises, one by
 * one: the loop and its hooks are then free to use `Promise.all` and the like. All that a handler awaits while a run is on
 * goes through `step` or `wait`.
 *
 * Needs the service option `explicitCancellation`.
 */
export class RestateSteps {
  readonly #ctx: internal.ContextInternal;
  readonly #cancelled = new AbortController();
  readonly #open = new Map<Settle, RestatePromise<Settle>>();
  readonly #untilCancelled = new Set<Settle>();
  #isPolling = false;
  #isWaiting = false;
  /** Why a step was not recorded, the first one. */
  failure: unknown;

  constructor(ctx: internal.ContextInternal) {
    this.#ctx = ctx;
  }

  /** Fires when the invocation is cancelled: at the same place on every replay. */
  get signal(): AbortSignal {
    return this.#cancelled.signal;
  }

  readonly step: Step = async (name, fn) => {
    try {
      // when the attempt is over, another worker may have taken the invocation: this one must stop
      const attempt = { signal: this.#ctx.request().attemptCompletedSignal };
      return await this.wait(name, () => this.#ctx.run(name, () => fn(attempt)));
    } catch (error) {
      this.failure ??= error;
      throw error;
    }
  };

  /** Waits for a call, an awakeable, a sleep. With `untilCancelled` it rejects when the invocation is cancelled. */
  wait<T>(what: string, start: () => RestatePromise<T>, options: { untilCancelled?: boolean } = {}): Promise<T> {
    if (this.#isWaiting) {
      // the SDK would fail with "awaitNext already pending" and the server try again for ever; this the client gets to read
      throw new TerminalError(
        `${what} was started while the handler waits for others: a hook has awaited what is neither a step nor wait()`,
      );
    }
    return new Promise((resolve, reject) => {
      let cancel: Settle = () => {};
      const promise = start().map((value, failure): Settle => {
        const settle: Settle = () => {
          this.#open.delete(cancel);
          this.#untilCancelled.delete(cancel);
          if (failure) reject(failure);
          else resolve(value as T);
        };
        return settle;
      });
      cancel = () => {
        this.#open.delete(cancel);
        reject(this.signal.reason);
      };
      if (options.untilCancelled && this.signal.aborted) return cancel();
      this.#open.set(cancel, promise);
      if (options.untilCancelled) this.#untilCancelled.add(cancel);
      if (!this.#isPolling) this.#poll().catch(reject);
    });
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    const cancellation = this.#ctx.cancellation().map((): Settle => () => this.#cancel());
    // a turn of the event loop: what follows from one promise has been started before the next is waited for
    for (await turn(); this.#open.size > 0; await turn()) {
      this.#isWaiting = true;
      const settle = await RestatePromise.race([...this.#open.values(), ...(this.signal.aborted ? [] : [cancellation])]);
      this.#isWaiting = false;
      settle();
    }
    this.#isPolling = false;
  }

  #cancel(): void {
    this.#cancelled.abort(new Error("cancelled"));
    for (const cancel of this.#untilCancelled) cancel();
    this.#untilCancelled.clear();
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
