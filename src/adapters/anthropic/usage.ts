import type { Usage } from "../../messages.js";

export interface WireUsage {
  input_tokens?: number | null;
  output_tokens?: number | null;
  cache_read_input_tokens?: number | null;
  cache_creation_input_tokens?: number | null;
}

type Counts = Pick<Usage, "input" | "output" | "cacheRead" | "cacheWrite">;

const NONE: Counts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

/** The tokens of one answer: the sum over its requests. `input_tokens` counts neither cache reads nor cache writes. */
export class TokenCounts {
  #before = NONE;
  #sum = NONE;

  /** The counts of a request only grow: an event that knows less than the one before it takes nothing back. */
  read(usage: WireUsage): Counts {
    const since = (key: keyof Counts, value: unknown): number =>
      typeof value === "number" && Number.isFinite(value) ? Math.max(this.#sum[key], this.#before[key] + value) : this.#sum[key];
    this.#sum = {
      input: since("input", usage.input_tokens),
      output: since("output", usage.output_tokens),
      cacheRead: since("cacheRead", usage.cache_read_input_tokens),
      cacheWrite: since("cacheWrite", usage.cache_creation_input_tokens),
    };
    return this.#sum;
  }

  nextRequest(): void {
    this.#before = this.#sum;
  }
}
