/**
 * The work every peer does. The model is a function of the text it reads last, so a loop gets on only by doing what it should:
 * call the tool, put its result into the next request. What came of it is checked after each run.
 */
import { performance } from "node:perf_hooks";

const DELTA = "x".repeat(20);

/** A model's answer: calls, or `deltas` times the text. `args` as JSON text for the loops whose models give text. */
const call = (x) => ({ id: `call_${x}`, name: "add", args: { x }, json: `{"x":${x}}` });
const says = (text, deltas = 1, paced = false) => ({ text, deltas, paced });
const DONE = says("done");

/** 1 MB of JSON in 10,000 strings: comes as text, and is parsed by whose model gives objects. */
const LINES = 10_000;
const BIG = JSON.stringify({ x: 1, lines: Array.from({ length: LINES }, (_, i) => `${i} `.padEnd(102, "abcdefgh")) });

/** What one scenario asks for. `next` gives the answer to a request that ends in `text`; `units` is what the time is divided by. */
class Work {
  requests = 0;
  executed = 0;
  deltas = 0;
  chars = 0;
  conversations = 0;

  constructor(name, units, next, expected) {
    this.name = name;
    this.units = units;
    this.next = next;
    this.expected = { conversations: 1, ...expected };
  }

  /** Called by the model with the text of the request's last message. */
  answer(text) {
    this.requests++;
    return this.next(text);
  }

  /** What the tool does. */
  execute({ x, lines }) {
    this.executed++;
    return String(lines ? lines.length : x + 1);
  }

  /** Called by the model just before an answer's first delta can be read. */
  sending() {}

  /** Called by the listener with each delta. */
  seen(delta) {
    this.deltas++;
    this.chars += delta.length;
  }

  /** Called with the final text of each conversation. */
  ended(text) {
    this.conversations++;
    if (this.expected.text !== undefined && text !== this.expected.text)
      throw new Error(`${this.name}: the conversation ended in ${JSON.stringify(text)}`);
  }

  /** Throws unless everything happened that should have, and no more; then starts over. */
  check() {
    const { text, ...counts } = this.expected;
    for (const [name, count] of Object.entries(counts)) {
      if (this[name] !== count) throw new Error(`${this.name}: expected ${count} ${name}, got ${this[name]}`);
    }
    this.requests = this.executed = this.deltas = this.chars = this.conversations = 0;
  }
}

/** A result in the last message is the `x` of the next call. */
const stepsTo = (n) => (text) => {
  const x = text === "go" ? 0 : Number(text);
  return x < n ? { calls: [call(x)] } : DONE;
};

export const scenarios = {
  turns: (n) => new Work("turns", n, stepsTo(n), { requests: n + 1, executed: n, text: "done" }),

  deltas: (n, paced = false) =>
    new Work("deltas", n, () => says(DELTA, n, paced), { requests: 1, deltas: n, chars: n * DELTA.length, text: DELTA.repeat(n) }),

  pacedDeltas: (n) => scenarios.deltas(n, true),

  fanOut(n) {
    const calls = { calls: Array.from({ length: n }, (_, x) => call(x)) };
    return new Work("fanOut", n, (text) => (text === "go" ? calls : DONE), { requests: 2, executed: n, text: "done" });
  },

  bigArguments() {
    const calls = { calls: [{ id: "call_0", name: "add", json: BIG }] };
    const next = (text) => (text === "go" ? calls : says(text));
    return new Work("bigArguments", 1, next, { requests: 2, executed: 1, text: String(LINES) });
  },

  concurrent: (n) => new Work("concurrent", n, stepsTo(1), { requests: 2 * n, executed: n, conversations: n, text: "done" }),
};

/** Microseconds from the first delta to the listener and from a settled tool to the next request, in conversations of one call. */
export class Latencies extends Work {
  firstDelta = [];
  nextRequest = [];
  #settledAt = 0;
  #sentAt = 0;

  constructor() {
    super("latencies", 1, stepsTo(1), { requests: 2, executed: 1, text: "done" });
  }

  answer(text) {
    if (text !== "go") this.nextRequest.push((performance.now() - this.#settledAt) * 1000);
    return super.answer(text);
  }

  execute(args) {
    const text = super.execute(args);
    this.#settledAt = performance.now();
    return text;
  }

  sending() {
    this.#sentAt = performance.now();
  }

  seen(delta) {
    this.firstDelta.push((performance.now() - this.#sentAt) * 1000);
    super.seen(delta);
  }
}

/** Waits until the event loop has gone round: what a delta from a network does at least. */
export const nextTick = () => new Promise((resolve) => setImmediate(resolve));
