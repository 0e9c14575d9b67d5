import { EventEmitter } from "eventemitter3";
import type { AgentEvent } from "../events.js";
import { isThenable } from "../loop/abort.js";
import type { ThinkingEvent } from "../thinking/thinking-card.js";
import type { AgentEventMap, QueueChange } from "./types.js";

type Listener = (...args: any[]) => unknown;
type Names = EventEmitter.EventNames<AgentEventMap>;
/** What `on` hears. */
export type Heard = AgentEvent | QueueChange | ThinkingEvent;

/** An emitter whose listeners cannot harm each other or whoever emits (SPEC 8.4). */
export class GuardedEmitter extends EventEmitter<AgentEventMap> {
  readonly #report: (error: unknown, event: Heard) => void;
  #guards: WeakMap<Listener, Listener> | undefined;

  constructor(report: (error: unknown, event: Heard) => void) {
    super();
    this.#report = report;
  }

  override on<T extends Names>(event: T, listener: EventEmitter.EventListener<AgentEventMap, T>, context?: unknown): this {
    return super.on(event, this.#guard(listener), context);
  }

  override addListener<T extends Names>(event: T, listener: EventEmitter.EventListener<AgentEventMap, T>, context?: unknown): this {
    return this.on(event, listener, context);
  }

  override once<T extends Names>(event: T, listener: EventEmitter.EventListener<AgentEventMap, T>, context?: unknown): this {
    return super.once(event, this.#guard(listener), context);
  }

  override off<T extends Names>(
    event: T,
    listener?: EventEmitter.EventListener<AgentEventMap, T>,
    context?: unknown,
    once?: boolean,
  ): this {
    return super.off(event, listener && this.#guard(listener), context, once);
  }

  override removeListener<T extends Names>(
    event: T,
    listener?: EventEmitter.EventListener<AgentEventMap, T>,
    context?: unknown,
    once?: boolean,
  ): this {
    return this.off(event, listener, context, once);
  }

  /** One listener's failure reaches neither the run nor the others. */
  #guard<L extends Listener>(listener: L): L {
    this.#guards ??= new WeakMap();
    const known = this.#guards.get(listener);
    if (known) return known as L;
    const report = this.#report;
    const guarded = function (this: unknown, event: Heard): void {
      try {
        const returned = listener.call(this, event);
        if (isThenable(returned)) Promise.resolve(returned).catch((error: unknown) => report(error, event));
      } catch (error) {
        report(error, event);
      }
    };
    this.#guards.set(listener, guarded);
    this.#guards.set(guarded, guarded); // the emitter itself takes back what it was given
    return guarded as L;
  }
}
