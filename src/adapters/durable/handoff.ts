/** Hands values over one by one: who gives one waits until it has been dealt with and the next is asked for (SPEC 4.7). */
export class Handoff<T> {
  #given: { value: T; done: () => void }[] = [];
  #waiting: ((value: T | undefined) => void) | undefined;
  /** Lets the giver of the value that was taken last go on. */
  #done: (() => void) | undefined;
  #isClosed = false;

  /** Resolves when the value has been dealt with, or nobody will any more. */
  give(value: T): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((done) => {
      if (!this.#waiting) this.#given.push({ value, done });
      else {
        const take = this.#waiting;
        this.#waiting = undefined;
        this.#done = done;
        take(value);
      }
    });
  }

  /** The next value; undefined when it is closed. */
  take(): Promise<T | undefined> {
    this.#done?.();
    const next = this.#given.shift();
    this.#done = next?.done;
    if (next || this.#isClosed) return Promise.resolve(next?.value);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting?.(undefined);
    this.#waiting = undefined;
    this.#done?.();
    for (const { done } of this.#given) done();
    this.#given = [];
  }
}
