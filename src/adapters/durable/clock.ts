/** The clock of a run: it stands still but for what the journal says. */
export class JournalClock {
  #time: number;

  constructor(startedAt: number) {
    this.#time = startedAt;
  }

  readonly now = (): number => this.#time;

  /** A record has been taken in. */
  advance(at: number): void {
    if (at > this.#time) this.#time = at;
  }
}
