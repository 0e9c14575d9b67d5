/** One-at-a-time delivery of events to the sink (SPEC 4.7, 4.10, 7.2). */
import { InterruptedRun } from "../errors.js";
import type { AgentEvent, AgentEventSink } from "../events.js";
import { isThenable, type RunAbort, startTimer } from "./abort.js";
import { Fifo } from "./fifo.js";

export class Delivery {
  readonly #sink: AgentEventSink;
  readonly #abort: RunAbort;
  readonly #graceMs: number;
  readonly #queue = new Fifo<AgentEvent>();
  readonly #waiters: (() => void)[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the events given to the sink; tells a late settlement from the current one. */
  #sent = 0;
  #abandoned = false;
  /** The sink is inside an event or has not settled on one. */
  busy = false;
  /** The first failure of the sink. */
  failure: { cause: unknown } | undefined;

  constructor(sink: AgentEventSink, abort: RunAbort, graceMs: number) {
    this.#sink = sink;
    this.#abort = abort;
    this.#graceMs = graceMs;
    abort.delivery = this;
  }

  /** Sends the event, or queues it while the sink is busy. True: wait for `delivered()` before going on. */
  deliver(event: AgentEvent): boolean {
    if (this.#abandoned || (this.failure && isUpdate(event))) return false;
    if (this.busy) {
      this.#queue.push(event);
      return true;
    }
    this.busy = true;
    if (this.#send(event)) this.#drain();
    return this.busy;
  }

  /** Resolves when the sink has settled on everything sent so far. Never rejects: see `failure`. */
  delivered(): Promise<void> {
    return this.busy ? new Promise((resolve) => this.#waiters.push(resolve)) : Promise.resolve();
  }

  /** True when the sink has settled already. */
  #send(event: AgentEvent): boolean {
    this.#sent++;
    const sink = this.#sink;
    try {
      const returned: unknown = sink(event);
      if (!isThenable(returned)) return true;
      this.#wait(returned, event);
      return false;
    } catch (error) {
      this.#fail(error, event);
      return true;
    }
  }

  /** Apart from `#send`, which must not pay for these functions at each event. */
  #wait(returned: PromiseLike<unknown>, event: AgentEvent): void {
    const sent = this.#sent;
    const settled = (): void => {
      if (sent !== this.#sent || this.#abandoned) return;
      clearTimeout(this.#timer);
      this.#drain();
    };
    Promise.resolve(returned).then(settled, (error: unknown) => {
      if (sent === this.#sent && !this.#abandoned) this.#fail(error, event);
      settled();
    });
    this.onAbort();
  }

  #drain(): void {
    for (let event = this.#queue.shift(); event; event = this.#queue.shift()) {
      if (this.failure && isUpdate(event)) continue;
      if (!this.#send(event)) return;
    }
    this.#rest();
  }

  #rest(): void {
    this.busy = false;
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    if (this.#waiters.length > 0) for (const resolve of this.#waiters.splice(0)) resolve();
  }

  #fail(cause: unknown, event: AgentEvent): void {
    this.failure ??= { cause };
    if (event.type !== "tool_execution_update") this.#abort.abort(new InterruptedRun("the event sink failed", { cause }));
  }

  /** After an abort a busy sink has the grace time, counted from the later of abort and delivery, and is then given up. */
  onAbort(): void {
    if (!this.busy || !this.#abort.aborted || this.#abandoned) return;
    clearTimeout(this.#timer);
    this.#timer = startTimer(() => {
      this.#abandoned = true;
      this.failure ??= { cause: new Error(`the event sink did not settle within ${this.#graceMs} ms after the abort`) };
      this.#queue.clear();
      this.#rest();
    }, this.#graceMs);
  }
}

function isUpdate(event: AgentEvent): boolean {
  return event.type === "message_update" || event.type === "tool_execution_update";
}
