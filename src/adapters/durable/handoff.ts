/** Hands values over one by one: who gives one waits until it is taken. */
export class Handoff<T> {
  #given: { value: T; taken: () => void }[] = [];
  #waiting: ((value: T | undefined) => void) | undefined;
  #isClosed = false;

  /** Resolves when the value is taken, or nobody will take it any more. */
  give(value: T): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#waiting) {
      this.#waiting(value);
      this.#waiting = undefined;
      return Promise.resolve();
    }
    return new Promise((taken) => this.#given.push({ value, taken }));
  }

  /** The next value; undefined when it is closed. */
  take(): Promise<T | undefined> {
    const next = this.#given.shift();
    next?.taken();
    if (next) return Promise.resolve(next.value);
    if (this.#isClosed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting?.(undefined);
    this.#waiting = undefined;
    for (const { taken } of this.#given) taken();
    this.#given = [];
  }
}
