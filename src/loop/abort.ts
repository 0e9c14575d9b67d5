/** The run's own signal, derived from the caller's, and what waits for it (SPEC 7). */
import { errorText } from "../errors.js";

/** What a race gives when the abort came first. */
export const ABORTED: unique symbol = Symbol("aborted");

export class RunAbort {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly graceMs: number;
  #onAbort: Set<() => void> | undefined;
  #graceTimer: ReturnType<typeof setTimeout> | undefined;
  aborted = false;
  /** Gives up its calls when the time to settle after an abort is over. */
  running: { giveUp(): void } | undefined;
  /** These hear of the abort without a function made for it: the sink's delivery, and what reads an answer. */
  delivery: { onAbort(): void } | undefined;
  reading: { onAbort(): void } | undefined;

  constructor(caller: AbortSignal | undefined, graceMs: number) {
    this.#caller = caller;
    this.graceMs = graceMs;
  }

  /** Follows the caller's signal by the run's one listener on it; `dispose` removes it (SPEC 7.1). */
  listen(): void {
    liftListenerLimit(this.signal);
    if (this.#caller?.aborted) this.abort(this.#caller.reason);
    else this.#caller?.addEventListener("abort", this.#onCallerAbort);
  }

  /** What streams, hooks and tools get; it carries the caller's reason. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The reason as words. */
  get reasonText(): string {
    return reasonText(this.signal);
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#graceTimer = startTimer(() => this.running?.giveUp(), this.graceMs);
    this.#controller.abort(reason);
    this.delivery?.onAbort();
    for (const callback of this.#onAbort ?? []) callback();
    this.reading?.onAbort();
  }

  /** Calls back once at the abort. Returns what takes the callback back. */
  onAbort(callback: () => void): () => void {
    const callbacks = this.#onAbort ?? new Set();
    this.#onAbort = callbacks.add(callback);
    return () => callbacks.delete(callback);
  }

  /** The value, or ABORTED as soon as the run is aborted. What comes later is ignored, also a rejection. */
  race<T>(value: PromiseLike<T>): Promise<T | typeof ABORTED> {
    return new Promise((resolve, reject) => {
      if (this.aborted) resolve(ABORTED);
      const stop = this.onAbort(() => {
        stop();
        resolve(ABORTED);
      });
      Promise.resolve(value).then(
        (settled) => {
          stop();
          resolve(settled);
        },
        (error: unknown) => {
          stop();
          reject(error);
        },
      );
    });
  }

  dispose(): void {
    clearTimeout(this.#graceTimer);
    this.#caller?.removeEventListener("abort", this.#onCallerAbort);
  }

  readonly #onCallerAbort = (): void => this.abort(this.#caller?.reason);
}

/** Why a signal was aborted, as words. */
export function reasonText({ reason }: AbortSignal): string {
  return reason === null || reason === "" ? "no reason given" : errorText(reason);
}

/** The longest time a timer holds, in milliseconds. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** A time longer than a timer holds is as good as the longest one. Infinity gives none. */
export function startTimer(callback: () => void, ms: number): ReturnType<typeof setTimeout> | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(callback, Math.min(ms, MAX_TIMER_MS));
}

/** What waiting gives when the time was up first. */
export const TIMED_OUT: unique symbol = Symbol("timed out");

/** The value, ABORTED at the signal, or TIMED_OUT after `ms` (Infinity: never). What comes later is ignored, also a rejection. */
export function within<T>(
  ms: number,
  value: PromiseLike<T>,
  signal: AbortSignal | undefined,
): Promise<T | typeof ABORTED | typeof TIMED_OUT> {
  return new Promise((resolve, reject) => {
    const ending =
      <A>(end: (outcome: A) => void) =>
      (outcome: A): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        end(outcome);
      };
    const settle = ending(resolve);
    const onAbort = (): void => settle(ABORTED);
    const timer = startTimer(() => settle(TIMED_OUT), ms);
    value.then(settle, ending(reject));
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort);
  });
}

/** Waits; false when the signal fired first. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  return (await within(ms, new Promise(() => {}), signal)) === TIMED_OUT;
}

/** What an aborted call ends with. */
export function abortError(signal: AbortSignal | undefined): Error {
  return Object.assign(new Error(`aborted: ${errorText(signal?.reason)}`), { name: "AbortError" });
}

/** Calls what nobody waits for; its failure, at once or later, has nobody to tell. */
export function ignoringFailure(call: () => unknown): void {
  try {
    const returned = call();
    if (isThenable(returned)) returned.then(undefined, ignore);
  } catch {
    // see above
  }
}

function ignore(): void {}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Node's own module, where there is one; looked for once. */
let events: { setMaxListeners?(n: number, target: EventTarget): void } | undefined;

/**
 * Node warns of a leak at the 11th listener on one signal, which 11 parallel tools reach. A signal for each call would cost
 * more than the call; so the run's one is allowed any number, where there is such a limit.
 */
export function liftListenerLimit(signal: AbortSignal): void {
  try {
    const host = (globalThis as { process?: { getBuiltinModule?(id: string): object | undefined } }).process;
    events ??= host?.getBuiltinModule?.("node:events") ?? {};
    events.setMaxListeners?.(0, signal);
  } catch {
    // a signal that is not Node's own, as in a simulated browser, knows no limit
  }
}
