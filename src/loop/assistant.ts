/** One model call: build the request, read the stream, settle on a final message (SPEC 3, 4.4 c, 6.1, 7.3). */
import { describe, errorText, isInterruptedRun, TurnLoopError } from "../errors.js";
import type { AssistantMessage, ModelErrorInfo } from "../messages.js";
import { type AssistantMessageEvent, type AssistantStream, emptyAnswer } from "../stream.js";
import { isFailed } from "../transcript.js";
import { ABORTED, ignoringFailure, isThenable } from "./abort.js";
import { type Failure, finalAnswer } from "./answer.js";
import { isRecorded } from "./recorded.js";
import { buildRequest, type Request } from "./request.js";
import { type Run, readClock } from "./run.js";
import { AnswerSnapshots, copyAnswer, copyArguments } from "./snapshot.js";

/** An answer for the transcript, and the copy of it that events show. */
export interface Answer {
  message: AssistantMessage;
  shown: AssistantMessage;
}

type TerminalEvent = Extract<AssistantMessageEvent<string>, { type: "done" | "error" }>;
type UpdateEvent = Exclude<AssistantMessageEvent<string>, TerminalEvent>;

/** How long `result()` may take when a stream ended without a terminal event (SPEC 3.1). */
const RESULT_TIMEOUT_MS = 1000;

/** Streams one answer and delivers its events, from `message_start` to `message_end`. Never rejects, never hangs on an abort. */
export function streamAnswer(run: Run): Promise<Answer> {
  return new Promise((resolve) => new AnswerReader(run, resolve).start());
}

/**
 * Reads one answer, until the first of: a terminal event, the end, a throw, the abort. Promise callbacks in place of
 * `for await`: they cost half, and an abort does not have to wait for a `next()` that never settles.
 */
class AnswerReader {
  readonly #run: Run;
  readonly #resolve: (answer: Answer) => void;
  #open = true;
  #stream: AssistantStream | undefined;
  #iterator: AsyncIterator<unknown> | undefined;
  #resultTimer: ReturnType<typeof setTimeout> | undefined;
  #timestamp: number | undefined;
  #snapshots: AnswerSnapshots | undefined;
  /** The StreamFn's own message, as it gave it last. */
  #latest: AssistantMessage<string> | undefined;

  constructor(run: Run, resolve: (answer: Answer) => void) {
    this.#run = run;
    this.#resolve = resolve;
  }

  start(): void {
    if (this.#run.abort.aborted) return this.#abort();
    if (this.#run.refusal) return this.#fail(this.#run.refusal);
    this.#run.abort.reading = this;
    try {
      const request = buildRequest(this.#run);
      if (isThenable(request)) request.then((built) => this.#send(built as Request | typeof ABORTED), this.#fail);
      else this.#send(request as Request);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** How the call ended may be being recorded: the answer is then what the record says. */
  onAbort(): void {
    const { streamFn, abort } = this.#run;
    if (!this.#iterator || !isRecorded(streamFn) || isInterruptedRun(abort.signal.reason)) this.#abort();
  }

  #send(request: Request | typeof ABORTED): void {
    if (request === ABORTED || !this.#open) return;
    try {
      const { streamFn, model } = this.#run;
      const stream: unknown = streamFn(model, request.context, request.options);
      if (isThenable(stream)) stream.then((settled) => this.#read(settled), this.#fail);
      else this.#read(stream);
    } catch (error) {
      this.#fail(error);
    }
  }

  #read(stream: unknown): void {
    if (!this.#open) return;
    try {
      this.#stream = assertStream(stream);
      this.#iterator = this.#stream[Symbol.asyncIterator]();
      if (this.#open) this.#pull();
      else this.#closeIterator();
    } catch (error) {
      this.#fail(error);
    }
  }

  #pull(): void {
    if (!this.#open) return;
    try {
      Promise.resolve(this.#iterator?.next()).then(this.#receive, this.#fail);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Pulls nothing while the sink is busy (SPEC 4.7). */
  readonly #receive = (result: IteratorResult<unknown> | undefined): void => {
    if (!this.#open) return;
    try {
      if (typeof result !== "object" || result === null)
        throw new TypeError(`The stream's next() must give an object; got ${describe(result)}.`);
      const event = result.value as AssistantMessageEvent<string>;
      if (result.done) this.#askResult();
      else if (event?.type === "done" || event?.type === "error") this.#finish(event);
      else {
        if (event) this.#update(event);
        const { delivery } = this.#run;
        if (delivery.busy) delivery.delivered().then(() => this.#pull());
        else this.#pull();
      }
    } catch (error) {
      this.#fail(error);
    }
  };

  /** Delivers an update; the first one, whatever it is, is the start (SPEC 3.3). */
  #update(event: UpdateEvent): void {
    if (!UPDATE_TYPES.has(event.type)) return;
    const { delivery } = this.#run;
    const given = event.partial ?? this.#latest ?? emptyAnswer(this.#run.model, Date.now());
    const first = !this.#snapshots;
    const snapshots = this.#snapshots ?? new AnswerSnapshots(this.#stamp());
    const changed = event.type === "start" ? undefined : event.contentIndex;
    const message = snapshots.take(given, changed, event.type === "toolcall_end");
    this.#snapshots = snapshots;
    this.#latest = given;
    if (first) {
      delivery.deliver({ type: "message_start", message });
      if (event.type === "start" || !this.#open) return;
    }
    delivery.deliver({ type: "message_update", message, assistantMessageEvent: publicUpdate(event, message) });
  }

  /** The stream ended with no terminal event: its `result()` decides, if it settles in time (SPEC 3.1, 3.4). */
  #askResult(): void {
    const early = (): void => this.#fail(new Error("The model's stream ended early: it gave no done and no error event."));
    if (typeof this.#stream?.result !== "function") return early();
    this.#resultTimer = setTimeout(early, RESULT_TIMEOUT_MS);
    Promise.resolve(this.#stream.result())
      .then((message) => {
        if (typeof message !== "object" || message === null) early();
        else this.#finish({ type: "done", reason: message.stopReason as never, message });
      })
      .catch(this.#fail);
  }

  #finish(event: TerminalEvent): void {
    const given: unknown = event.type === "done" ? event.message : event.error;
    if (typeof given !== "object" || given === null) {
      const field = event.type === "done" ? "message" : "error";
      return this.#fail(new Error(`The model's "${event.type}" event has no ${field}; got ${describe(given)}.`));
    }
    const source = given as AssistantMessage<string>;
    // an Error where the failed message should be: its text, and what had come
    if (event.type === "error" && !Array.isArray(source.content)) return this.#fail(source.errorMessage ?? given, source.errorInfo);
    if (event.type === "done" && !isFailed(source)) {
      return this.#settle(source.stopReason === undefined ? { ...source, stopReason: event.reason } : source);
    }
    const stopReason = (isFailed(source) ? source.stopReason : event.reason) === "aborted" ? "aborted" : "error";
    const silent = stopReason === "aborted" ? "The model call was aborted." : "The model call failed without saying why.";
    const errorMessage = source.errorMessage ? errorText(source.errorMessage) : silent;
    this.#settle(source, { stopReason, errorMessage });
  }

  readonly #fail = (error: unknown, errorInfo?: ModelErrorInfo): void => {
    // what came live is not in the journal
    if (isInterruptedRun(error)) this.#settle({}, { stopReason: "error", errorMessage: errorText(error) });
    else if (this.#run.abort.aborted) this.#abort();
    else this.#settle(this.#kept(), { stopReason: "error", errorMessage: errorText(error), ...(errorInfo && { errorInfo }) });
  };

  #abort(): void {
    this.#settle(this.#kept(), { stopReason: "aborted", errorMessage: `Aborted: ${this.#run.abort.reasonText}` });
  }

  /** What had come of an answer that fails, whatever listeners or the StreamFn did to their objects since. */
  #kept(): object {
    return { ...this.#latest, content: this.#snapshots?.kept ?? [] };
  }

  #settle(given: object, failure?: Failure): void {
    if (!this.#open) return;
    const { delivery } = this.#run;
    const message = this.#finalAnswer(given, failure);
    this.#open = false;
    this.#run.abort.reading = undefined;
    clearTimeout(this.#resultTimer);
    const answer = { message, shown: copyAnswer(message, this.#run.hasExtras) };
    if (!this.#snapshots) delivery.deliver({ type: "message_start", message: copyAnswer(message, this.#run.hasExtras) });
    if (delivery.deliver({ type: "message_end", message: answer.shown })) delivery.delivered().then(() => this.#resolve(answer));
    else this.#resolve(answer);
    this.#closeIterator();
  }

  /** What cannot be read at all must not cost the answer its end. */
  #finalAnswer(given: object, failure?: Failure): AssistantMessage {
    try {
      return finalAnswer(this.#run, given, this.#stamp(), failure);
    } catch (error) {
      const unreadable: Failure = { stopReason: "error", errorMessage: `The model's answer cannot be read: ${errorText(error)}` };
      return finalAnswer(this.#run, {}, this.#stamp(), failure ?? unreadable);
    }
  }

  /** Lets the StreamFn clean up; what that does is its own affair (SPEC 7.2). */
  #closeIterator(): void {
    const iterator = this.#iterator;
    this.#iterator = undefined;
    ignoringFailure(() => iterator?.return?.());
  }

  /** With a `now` of the host every timestamp is its own, so that a run can be replayed (SPEC 2.2). */
  #stamp(): number | undefined {
    if (this.#run.config.now) this.#timestamp ??= readClock(this.#run.config);
    return this.#timestamp;
  }
}

export function assertStream(stream: unknown): AssistantStream {
  if (typeof (stream as AssistantStream | undefined)?.[Symbol.asyncIterator] === "function") return stream as AssistantStream;
  throw new TurnLoopError(
    "invalid_argument",
    `streamFn must return an async iterable of events, or a promise of one; got ${describe(stream)}.`,
  );
}

const UPDATE_TYPES: ReadonlySet<string> = new Set<UpdateEvent["type"]>([
  "start",
  "text_start",
  "text_delta",
  "text_end",
  "thinking_start",
  "thinking_delta",
  "thinking_end",
  "toolcall_start",
  "toolcall_delta",
  "toolcall_end",
]);

/** The StreamFn's event with the snapshot in place of its live objects. */
function publicUpdate(event: UpdateEvent, partial: AssistantMessage): AssistantMessageEvent {
  if ("delta" in event) return { type: event.type, contentIndex: event.contentIndex, delta: event.delta, partial };
  if (event.type !== "toolcall_end") return { ...event, partial };
  const block = partial.content[event.contentIndex];
  const toolCall = block?.type === "toolCall" ? block : { ...event.toolCall, arguments: copyArguments(event.toolCall?.arguments) };
  return { ...event, toolCall, partial };
}
