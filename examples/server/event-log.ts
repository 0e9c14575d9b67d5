/** The last events of a conversation as they go over the wire: what every client reads from, at its own pace. */

/** One server-sent event. `id` is what a client names when it comes back. */
export function toFrame(id: number, data: unknown, event?: "snapshot"): Buffer {
  return Buffer.from(`id: ${id}\n${event ? `event: ${event}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
}

/** Numbers events from 1 and keeps the newest, as many as fit into `maxBytes`; always the very last one. */
export class EventLog {
  readonly #maxBytes: number;
  readonly #frames = new Map<number, Buffer>();
  #first = 1;
  #last = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The number of the newest event; 0 before the first. */
  get last(): number {
    return this.#last;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns its size in bytes. */
  append(data: unknown, event?: "snapshot"): number {
    const frame = toFrame(this.#last + 1, data, event);
    this.#frames.set(++this.#last, frame);
    this.#bytes += frame.length;
    while (this.#bytes > this.#maxBytes && this.#first < this.#last) {
      this.#bytes -= this.get(this.#first)?.length ?? 0;
      this.#frames.delete(this.#first++);
    }
    return frame.length;
  }

  get(id: number): Buffer | undefined {
    return this.#frames.get(id);
  }

  /** Whether a client that has seen everything up to this event can be given all that came after it. */
  canFollow(id: number): boolean {
    return id >= this.#first - 1 && id <= this.#last;
  }
}
