/** One model call, read to its end and remembered as it was when it came (SPEC 13.3). */
import { isThenable } from "../../loop/abort.js";
import type { AssistantMessage } from "../../messages.js";
import type { AssistantMessageEvent, LlmContext, Model, StreamFn, StreamOptions } from "../../stream.js";

export type Answer = AssistantMessage<string>;
type StreamEvent = AssistantMessageEvent<string>;
export type TerminalEvent = Extract<StreamEvent, { type: "done" | "error" }>;

export interface Limits {
  /** For a call that ends by itself. */
  timeoutMs: number;
  /** For the end after an abort. */
  abortMs: number;
  /** Silence that makes the hanging call abort. */
  quietMs: number;
}

export interface Call extends Limits {
  model: Model;
  context: LlmContext;
  options: StreamOptions;
  /** When the signal fires: before the call, while the first event is awaited, when the stream has fallen silent, or never. */
  abort?: "before" | "waiting" | "quiet";
}

/** A partial at the moment it came. */
interface SeenPartial {
  partial: Answer;
  /** The message without its content, as JSON. */
  shell: string;
  blocks: { block: object; json: string }[];
  /** The block the event is about. */
  current?: { type?: unknown; text?: unknown; thinking?: unknown } | undefined;
}

export interface Seen {
  /** A copy of the event's own fields: a StreamFn may use one object for all. */
  event: StreamEvent;
  partial?: SeenPartial;
}

export interface RecordedCall {
  seen: Seen[];
  /** `silent`: nothing came any more in the time allowed; `endless`: it was left after very many events. */
  ending: "returned" | "threw" | "silent" | "endless";
  thrown?: unknown;
  aborted: boolean;
}

const MAX_EVENTS = 20_000;
const LATE = Symbol("late");
/** The counter of serialisation replaces the global one. */
const stringify = JSON.stringify;

export async function recordCall(streamFn: StreamFn, call: Call): Promise<RecordedCall> {
  const controller = new AbortController();
  const { signal } = controller;
  const record: RecordedCall = { seen: [], ending: "returned", aborted: false };
  const witness = new Witness();
  const patience = new Patience(call, controller);
  let iterator: AsyncIterator<StreamEvent> | undefined;
  if (call.abort === "before") patience.abort();
  const options = { ...call.options, signal };
  if (Object.isFrozen(call.options)) Object.freeze(options);
  try {
    const given = streamFn(call.model, call.context, options);
    const stream = isThenable(given) ? await patience.wait(given) : given;
    if (stream === LATE) record.ending = "silent";
    else {
      iterator = stream[Symbol.asyncIterator]();
      for (;;) {
        const step = await patience.wait(iterator.next());
        if (step === LATE) record.ending = "silent";
        if (step === LATE || step.done) break;
        record.seen.push(witness.see(step.value));
        if (record.seen.length < MAX_EVENTS) continue;
        record.ending = "endless";
        break;
      }
    }
  } catch (thrown) {
    record.ending = "threw";
    record.thrown = thrown;
  }
  record.aborted = signal.aborted;
  patience.stop();
  if (record.ending === "silent" || record.ending === "endless") leave(controller, iterator);
  return record;
}

/** A stream that does not end by itself is told to, and not waited for. */
function leave(controller: AbortController, iterator: AsyncIterator<StreamEvent> | undefined): void {
  controller.abort();
  try {
    Promise.resolve(iterator?.return?.()).catch(() => {});
  } catch {
    // it was only a courtesy
  }
}

/** Waits within the limits and fires the signal when it is time. */
class Patience {
  readonly #call: Call;
  readonly #controller: AbortController;
  #over: Promise<typeof LATE>;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(call: Call, controller: AbortController) {
    this.#call = call;
    this.#controller = controller;
    this.#over = this.#limit(call.timeoutMs);
  }

  async wait<T>(pending: PromiseLike<T>): Promise<T | typeof LATE> {
    if (this.#call.abort === "waiting") this.abort();
    if (this.#call.abort === "quiet" && !this.#controller.signal.aborted) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const quiet = new Promise<typeof LATE>((resolve) => {
        timer = setTimeout(() => resolve(LATE), this.#call.quietMs);
      });
      const first = await Promise.race([pending, quiet, this.#over]).finally(() => clearTimeout(timer));
      if (first !== LATE) return first;
      this.abort();
    }
    return Promise.race([pending, this.#over]);
  }

  abort(): void {
    if (this.#controller.signal.aborted) return;
    this.stop();
    this.#over = this.#limit(this.#call.abortMs);
    this.#controller.abort(new Error("stopped by the conformance suite"));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #limit(ms: number): Promise<typeof LATE> {
    return new Promise((resolve) => {
      this.#timer = setTimeout(() => resolve(LATE), ms);
    });
  }
}

/** Remembers every block as it was when it was first seen. */
class Witness {
  readonly #blocks = new Map<object, string>();

  see(given: StreamEvent): Seen {
    if (typeof given !== "object" || given === null) return { event: given };
    const event = { ...given };
    const partial = "partial" in event ? event.partial : undefined;
    if (typeof partial !== "object" || partial === null) return { event };
    const content = Array.isArray(partial.content) ? partial.content : [];
    const blocks = content.map((block) => ({ block: Object(block) as object, json: this.#firstSight(Object(block)) }));
    const current = "contentIndex" in event ? content[event.contentIndex] : undefined;
    return { event, partial: { partial, shell: shellOf(partial), blocks, current: current && { ...current } } };
  }

  #firstSight(block: object): string {
    const json = this.#blocks.get(block) ?? jsonOf(block);
    this.#blocks.set(block, json);
    return json;
  }
}

export function shellOf(partial: Answer): string {
  return jsonOf({ ...partial, content: null });
}

/** The JSON of any value; a name for what has none. */
export function jsonOf(value: unknown): string {
  try {
    return stringify(value) ?? "undefined";
  } catch {
    return "(not JSON)";
  }
}

function isTerminal(event: unknown): event is TerminalEvent {
  const { type } = Object(event) as { type?: unknown };
  return type === "done" || type === "error";
}

/** The first terminal event and its message, if it has one. */
export function terminalOf(record: RecordedCall): { at: number; event: TerminalEvent; message: Answer | undefined } | undefined {
  const at = record.seen.findIndex(({ event }) => isTerminal(event));
  const event = record.seen[at]?.event;
  if (!isTerminal(event)) return undefined;
  const given: unknown = event.type === "done" ? event.message : event.error;
  return { at, event, message: typeof given === "object" && given !== null ? (given as Answer) : undefined };
}
