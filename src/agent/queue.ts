import { misuse } from "../errors.js";
import type { AgentMessage } from "../messages.js";

/** How many messages a queue gives at a time. */
export type QueueMode = "one-at-a-time" | "all";

/** Messages that wait for the run to take them: first in, first out, each taken exactly once (SPEC 8.3). */
export class MessageQueue {
  readonly #onChange: () => void;
  #mode: QueueMode = "one-at-a-time";
  #messages: AgentMessage[] = [];

  /** `onChange` is called after each change of what waits. Throws `invalid_argument` for an unknown mode. */
  constructor(mode: QueueMode = "one-at-a-time", onChange: () => void = () => {}) {
    this.mode = mode;
    this.#onChange = onChange;
  }

  get mode(): QueueMode {
    return this.#mode;
  }

  /** Throws `invalid_argument` for an unknown mode. */
  set mode(mode: QueueMode) {
    if (mode !== "one-at-a-time" && mode !== "all") throw misuse("A queue mode", '"one-at-a-time" or "all"', mode);
    this.#mode = mode;
  }

  get size(): number {
    return this.#messages.length;
  }

  /** All that waits, in order; a copy. */
  peek(): AgentMessage[] {
    return this.#messages.slice();
  }

  push(message: AgentMessage): void {
    this.#messages.push(message);
    this.#onChange();
  }

  /** What the mode gives now: the first message, or all; `[]` when nothing waits. */
  take(): AgentMessage[] {
    const taken = this.#messages.splice(0, this.#mode === "all" ? this.#messages.length : 1);
    if (taken.length > 0) this.#onChange();
    return taken;
  }

  /** Puts messages that were taken, but did not get anywhere, back in front. */
  putBack(messages: readonly AgentMessage[]): void {
    if (messages.length === 0) return;
    this.#messages.unshift(...messages);
    this.#onChange();
  }

  /** True if the message waited; it is found by identity. */
  remove(message: AgentMessage): boolean {
    const index = this.#messages.indexOf(message);
    if (index < 0) return false;
    this.#messages.splice(index, 1);
    this.#onChange();
    return true;
  }

  clear(): void {
    if (this.#messages.length === 0) return;
    this.#messages = [];
    this.#onChange();
  }
}
