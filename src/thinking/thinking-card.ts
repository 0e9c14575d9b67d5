/** The silence between "request sent" and "first delta" as events (SPEC 9). */
import { ignoringFailure, isThenable, MAX_TIMER_MS } from "../loop/abort.js";
import { readClock } from "../loop/run.js";

export interface ThinkingEvent {
  state: "start" | "heartbeat" | "complete";
  /** The same in all events of one card, unlike that of any other card. */
  cardId: string;
  name: string;
  /** What to show; a heartbeat carries the time: "Thinking... (30s)". */
  title: string;
  /** Milliseconds since the model call began. */
  elapsedMs: number;
  /** What ended the wait; on `complete` only. */
  outcome?: ThinkingOutcome;
}

/** @inline */
export type ThinkingOutcome = "delta" | "done" | "error" | "aborted";

export interface ThinkingOptions {
  /** Hears the events, in order, and is never waited for: a slow one is called again before it has settled (SPEC 9.5). */
  onProgress?(event: ThinkingEvent): void | Promise<void>;
  /** @default "llm_response" */
  name?: string;
  /** @default "Thinking..." */
  title?: string;
  /** Milliseconds between heartbeats; 0, negative or NaN: none. Given, it wins over the environment (SPEC 9.6). @default 30_000 */
  heartbeatMs?: number;
  /** So many heartbeats at most. @default 60 */
  maxHeartbeats?: number;
  /** A call that answers within so many milliseconds emits nothing. @default 0 */
  showAfterMs?: number;
  /** Hears each failure of `onProgress`. What it throws is ignored. */
  onError?(error: unknown, event: ThinkingEvent): void;
  /** Milliseconds. @default Date.now */
  now?(): number;
  /** @default a random id */
  createId?(): string;
}

interface Outgoing {
  event: ThinkingEvent;
  onSent?: () => void;
  onFailed?: () => void;
}

interface OpenCard {
  id: string;
  startedAt: number;
  shown: boolean;
  beats: number;
  beatUnsettled: boolean;
}

const HEARTBEAT_MS = 30_000;
const MAX_HEARTBEATS = 60;

/**
 * A card that is open while a model is silent. `withThinkingCard` drives one for each model call; drive it by hand for any
 * other wait. A card can be started again once it is complete, with a new id.
 *
 * @example
 * const card = new ThinkingCard({ onProgress: ({ title }) => statusLine.show(title) });
 * card.start();
 * await somethingSlow();
 * card.complete();
 */
export class ThinkingCard {
  readonly #options: ThinkingOptions;
  readonly #unsettled = new Set<Promise<void>>();
  /** What a listener caused by its own doing goes out when it has returned: all who hear events hear them in order. */
  readonly #outbox: Outgoing[] = [];
  #open: OpenCard | undefined;
  #showTimer: ReturnType<typeof setTimeout> | undefined;
  #beatTimer: ReturnType<typeof setInterval> | undefined;

  constructor(options: ThinkingOptions = {}) {
    this.#options = options;
  }

  /** Opens the card and returns its id; that of the open card if there is one. */
  start(): string {
    if (this.#open) return this.#open.id;
    const { heartbeatMs, showAfterMs = 0 } = this.#options;
    const card: OpenCard = { id: this.#createId(), startedAt: readClock(this.#options), shown: false, beats: 0, beatUnsettled: false };
    this.#open = card;
    const withTimers = heartbeatMs !== undefined || !isDisabledByEnvironment();
    if (withTimers && showAfterMs > 0) this.#showTimer = unref(setTimeout(() => this.#show(card), Math.min(showAfterMs, MAX_TIMER_MS)));
    else this.#show(card);
    const interval = heartbeatMs ?? HEARTBEAT_MS;
    // the start's listener may have completed the card
    if (withTimers && interval > 0 && this.#open === card) {
      this.#beatTimer = unref(setInterval(() => this.heartbeat(), Math.min(interval, MAX_TIMER_MS)));
    }
    return card.id;
  }

  /** Closes the card. Does nothing when none is open. */
  complete(outcome: ThinkingOutcome = "done"): void {
    const card = this.#open;
    if (!card) return;
    this.#open = undefined;
    clearTimeout(this.#showTimer);
    clearInterval(this.#beatTimer);
    if (card.shown) this.#sendTwiceAtMost({ ...this.#event("complete", card), outcome });
  }

  /** Sends a heartbeat at once. False when none is due: no card is shown, the last one is unsettled, or there were enough. */
  heartbeat(): boolean {
    const card = this.#open;
    const { maxHeartbeats = MAX_HEARTBEATS } = this.#options;
    if (!card?.shown || card.beatUnsettled || !(card.beats < maxHeartbeats)) return false;
    card.beats++;
    card.beatUnsettled = true;
    if (!(card.beats < maxHeartbeats)) clearInterval(this.#beatTimer);
    const settle = (): void => {
      card.beatUnsettled = false;
    };
    this.#send({ event: this.#event("heartbeat", card), onSent: settle, onFailed: settle });
    return true;
  }

  /** Settles when `onProgress` has settled for every event sent so far, and for those sent meanwhile. */
  async flush(): Promise<void> {
    while (this.#unsettled.size > 0) await Promise.all(this.#unsettled);
  }

  /** Completes an open card as aborted. */
  dispose(): void {
    this.complete("aborted");
  }

  #show(card: OpenCard): void {
    card.shown = true;
    this.#send({ event: this.#event("start", card) });
  }

  #event(state: ThinkingEvent["state"], { id, startedAt }: OpenCard): ThinkingEvent {
    const { name = "llm_response", title = "Thinking..." } = this.#options;
    const elapsedMs = Math.max(0, readClock(this.#options) - startedAt) || 0;
    return {
      state,
      cardId: id,
      name,
      title: state === "heartbeat" ? `${title} (${Math.round(elapsedMs / 1000)}s)` : title,
      elapsedMs,
    };
  }

  /** A card must not stay open because a sink failed once. */
  #sendTwiceAtMost(event: ThinkingEvent): void {
    this.#send({ event, onFailed: () => this.#send({ event }) });
  }

  #send(outgoing: Outgoing): void {
    if (this.#outbox.push(outgoing) > 1) return;
    for (let next: Outgoing | undefined = outgoing; next; next = this.#outbox[0]) {
      this.#deliver(next);
      this.#outbox.shift();
    }
  }

  #deliver({ event, onSent, onFailed }: Outgoing): void {
    const fail = (error: unknown): void => {
      ignoringFailure(() => this.#options.onError?.(error, event));
      onFailed?.();
    };
    try {
      const sent: unknown = this.#options.onProgress?.(event);
      if (!isThenable(sent)) return onSent?.();
      const settled: Promise<void> = Promise.resolve(sent)
        .then(onSent, fail)
        .finally(() => this.#unsettled.delete(settled));
      this.#unsettled.add(settled);
    } catch (error) {
      fail(error);
    }
  }

  #createId(): string {
    try {
      const id: unknown = this.#options.createId?.();
      if (typeof id === "string" && id !== "") return id;
    } catch {
      // the card needs an id all the same
    }
    const random = (): string => Math.random().toString(36).slice(2, 12);
    return `thinking_${random()}${random()}`;
  }
}

/** A card must not keep a process alive. */
function unref<T>(timer: T): T {
  const { Deno } = globalThis as { Deno?: { unrefTimer?(id: number): void } };
  if (typeof timer === "number") Deno?.unrefTimer?.(timer);
  else (timer as { unref?(): void }).unref?.();
  return timer;
}

/** Read at each start; where there is no `process`, or reading is not permitted, nothing is disabled (SPEC 9.6). */
function isDisabledByEnvironment(): boolean {
  try {
    const { env = {} } = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process ?? {};
    return [env["LLM_HEARTBEAT_DISABLED"], env["DREW_LLM_HEARTBEAT_DISABLED"]].some((flag) => flag === "1" || flag === "true");
  } catch {
    return false;
  }
}
