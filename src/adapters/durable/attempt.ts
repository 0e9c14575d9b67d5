import { errorText, isInterruptedRun } from "../../errors.js";
import { liftListenerLimit, pause, reasonText } from "../../loop/abort.js";

/**
 * One attempt of a step, and what ends it: the abort of the run by its caller, which is recorded; the end of the attempt by
 * the engine, or of the run by a sink that failed, which are not (SPEC 16.2). `close` it.
 */
export class Attempt {
  readonly #run: AbortSignal | undefined;
  readonly #own: AbortSignal | undefined;
  readonly #controller = new AbortController();
  readonly #closed = new AbortController();
  readonly #forward = (): void => {
    const source = [this.#own, this.#run].find((signal) => signal?.aborted);
    if (source) this.#controller.abort(source.reason);
  };

  constructor(run: AbortSignal | undefined, own: AbortSignal | undefined) {
    this.#run = run;
    this.#own = own;
    for (const signal of this.#sources) {
      liftListenerLimit(signal); // an engine may have one for all steps
      signal.addEventListener("abort", this.#forward);
    }
    this.#forward();
  }

  /** What the model or tool gets. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** By the run's caller. */
  get aborted(): boolean {
    return this.#run?.aborted === true && !isInterruptedRun(this.#run.reason);
  }

  get reasonText(): string {
    return this.#run ? reasonText(this.#run) : "";
  }

  get isOver(): boolean {
    return this.#closed.signal.aborted || this.#interruption !== undefined;
  }

  /** Throws when nothing may be recorded. */
  assertGoing(): void {
    const by = this.#interruption;
    if (by) throw by.reason ?? new Error("The attempt of the step was ended.");
  }

  /** Rejects as soon as nothing may be recorded any more; `onAbort` says what becomes of an abort by the caller. */
  ended<T>(onAbort: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        try {
          this.assertGoing();
          if (this.aborted) resolve(onAbort());
        } catch (error) {
          reject(error);
        }
      };
      for (const signal of this.#sources) {
        signal.addEventListener("abort", end);
        this.#closed.signal.addEventListener("abort", () => signal.removeEventListener("abort", end));
      }
      end();
    });
  }

  /** After this time; never when the attempt is closed before. */
  async after(ms: number): Promise<void> {
    if (!(await pause(ms, this.#closed.signal))) await new Promise(() => {});
  }

  /** Aborts the signal, and that alone. */
  stop(reason: Error): void {
    this.#controller.abort(reason);
  }

  close(): void {
    this.#closed.abort();
    for (const signal of this.#sources) signal.removeEventListener("abort", this.#forward);
  }

  get #sources(): AbortSignal[] {
    return [this.#run, this.#own].filter((signal) => signal !== undefined);
  }

  /** The signal that ended it, if nothing may be recorded. */
  get #interruption(): AbortSignal | undefined {
    if (this.#own?.aborted) return this.#own;
    return this.#run?.aborted && !this.aborted ? this.#run : undefined;
  }
}

/** A copy through JSON: what a journal will give back. Throws for what JSON cannot hold, naming it. */
export function throughJson<T>(what: string, value: T): T {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch (error) {
    throw new Error(`${what} cannot be recorded as JSON: ${errorText(error)}`);
  }
}
