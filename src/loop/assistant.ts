/** One model call: build the request, read the stream, settle on a final message (SPEC 3, 4.4 c, 6.1, 7.3). */
import { describe, errorText, TurnLoopError } from "../errors.js";
import type { AssistantMessage } from "../messages.js";
import { type AssistantMessageEvent, type AssistantStream, emptyAnswer } from "../stream.js";
import { ABORTED, isThenable } from "./abort.js";
import { type Failure, finalAnswer } from "./answer.js";
import { buildRequest, type Request } from "./request.js";
import type { Run } from "./run.js";
import { AnswerSnapshots, copyAnswer } from "./snapshot.js";

/** How the reading of a stream ended. */
type Ending = { kind: "terminal"; event: TerminalEvent } | { kind: "ended" } | { kind: "thrown"; error: unknown } | { kind: "aborted" };
type TerminalEvent = Extract<AssistantMessageEvent<string>, { type: "done" | "error" }>;
type UpdateEvent = Exclude<AssistantMessageEvent<string>, TerminalEvent>;

/** How long `result()` may take when a stream ended without a terminal event (SPEC 3.1). */
const RESULT_TIMEOUT_MS = 1000;

/** An answer for the transcript, and the copy of it that events show. */
export interface Answer {
  message: AssistantMessage;
  shown: AssistantMessage;
}

/** Streams one answer and delivers its events, from `message_start` to `message_end`. Never throws, never hangs on an abort. */
export async function streamAnswer(run: Run): Promise<Answer> {
  const open = new OpenAnswer(run);
  let answer: Answer;
  try {
    let stream = run.abort.aborted ? ABORTED : callModel(run);
    if (isThenable(stream)) stream = (await stream) as AssistantStream | typeof ABORTED;
    const ending: Ending = stream === ABORTED ? { kind: "aborted" } : await readStream(run, stream as AssistantStream, open);
    answer = ending.kind === "ended" ? await settleByResult(run, stream as AssistantStream, open) : open.settle(ending);
  } catch (error) {
    answer = open.fail(error);
  }
  if (run.delivery.busy) await run.delivery.delivered();
  return answer;
}

/** Builds the request and calls the StreamFn. Without async parts it costs no await. */
function callModel(run: Run): AssistantStream | typeof ABORTED | Promise<AssistantStream | typeof ABORTED> {
  const request = buildRequest(run);
  return isThenable(request)
    ? (request as Promise<Request | typeof ABORTED>).then((built) => send(run, built))
    : send(run, request as Request);
}

function send(run: Run, request: Request | typeof ABORTED): AssistantStream | typeof ABORTED | Promise<AssistantStream | typeof ABORTED> {
  if (request === ABORTED || run.abort.aborted) return ABORTED;
  const stream: unknown = run.streamFn(run.model, request.context, request.options);
  if (!isThenable(stream)) return assertStream(stream);
  return run.abort.race(stream).then((settled) => (settled === ABORTED ? ABORTED : assertStream(settled)));
}

function assertStream(stream: unknown): AssistantStream {
  if (typeof (stream as AssistantStream | undefined)?.[Symbol.asyncIterator] === "function") return stream as AssistantStream;
  throw new TurnLoopError(
    "invalid_argument",
    `streamFn must return an async iterable of events, or a promise of one; got ${describe(stream)}. An async generator function is enough.`,
  );
}

/**
 * Pulls events until the first terminal one, the end, a throw or the abort. Promise callbacks instead of `for await`: it
 * costs half, and an abort does not have to wait for a `next()` that never settles. Pulls nothing while the sink is busy.
 */
function readStream(run: Run, stream: AssistantStream, open: OpenAnswer): Promise<Ending> {
  const iterator = stream[Symbol.asyncIterator]();
  return new Promise((resolve) => {
    let reading = true;
    const end = (ending: Ending): void => {
      if (!reading) return;
      reading = false;
      stopListening();
      if (ending.kind === "terminal" || ending.kind === "aborted") closeIterator(iterator);
      resolve(ending);
    };
    const stopListening = run.abort.onAbort(() => end({ kind: "aborted" }));
    const onThrow = (error: unknown): void => end({ kind: "thrown", error });
    const onResult = (result: IteratorResult<unknown>): void => {
      if (!reading) return;
      try {
        const event = result.value as AssistantMessageEvent<string>;
        if (result.done) end({ kind: "ended" });
        else if (event?.type === "done" || event?.type === "error") end({ kind: "terminal", event });
        else {
          if (event) open.update(event);
          if (run.delivery.busy) run.delivery.delivered().then(pull);
          else pull();
        }
      } catch (error) {
        onThrow(error);
      }
    };
    const pull = (): void => {
      if (!reading) return;
      try {
        Promise.resolve(iterator.next()).then(onResult, onThrow);
      } catch (error) {
        onThrow(error);
      }
    };
    pull();
  });
}

/** Lets the StreamFn clean up; what that does is its own affair (SPEC 7.2). */
function closeIterator(iterator: AsyncIterator<unknown>): void {
  try {
    const closed: unknown = iterator.return?.();
    if (isThenable(closed)) closed.then(undefined, () => {});
  } catch {
    // a return() that throws has nothing to tell: the answer is settled
  }
}

/** The stream ended with no terminal event: its `result()` decides if it settles in time (SPEC 3.1, 3.4). */
async function settleByResult(run: Run, stream: AssistantStream, open: OpenAnswer): Promise<Answer> {
  const early = new Error("The model's stream ended early: it gave no done and no error event.");
  if (typeof stream.result !== "function") return open.fail(early);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, RESULT_TIMEOUT_MS, undefined);
  });
  try {
    const message = await run.abort.race(Promise.race([stream.result(), timeout]));
    if (message === ABORTED) return open.abort();
    if (typeof message !== "object" || message === null) return open.fail(early);
    const failed = message.stopReason === "error" || message.stopReason === "aborted";
    if (failed) return open.finish({ type: "error", reason: message.stopReason as "error" | "aborted", error: message });
    return open.finish({ type: "done", reason: message.stopReason as never, message });
  } finally {
    clearTimeout(timer);
  }
}

/** The answer between its first event and its final message. */
class OpenAnswer {
  readonly #run: Run;
  #timestamp: number | undefined;
  #snapshots: AnswerSnapshots | undefined;
  /** What the events said last: kept when the answer fails. */
  #latest: AssistantMessage | undefined;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Delivers an update; the first one, whatever it is, is the start (SPEC 3.3). */
  update(event: UpdateEvent): void {
    if (!UPDATE_TYPES.has(event.type)) return;
    const { delivery } = this.#run;
    const given = event.partial ?? this.#latest ?? emptyAnswer(this.#run.model, Date.now());
    const first = !this.#snapshots;
    this.#snapshots ??= new AnswerSnapshots(this.#stamp());
    const changed = event.type === "start" ? undefined : event.contentIndex;
    const message = this.#snapshots.take(given, changed, event.type === "toolcall_end");
    this.#latest = message;
    if (first) {
      delivery.deliver({ type: "message_start", message });
      if (event.type === "start") return;
    }
    delivery.deliver({ type: "message_update", message, assistantMessageEvent: publicUpdate(event, message) });
  }

  settle(ending: Exclude<Ending, { kind: "ended" }>): Answer {
    if (ending.kind === "terminal") return this.finish(ending.event);
    return ending.kind === "aborted" ? this.abort() : this.fail(ending.error);
  }

  finish(event: TerminalEvent): Answer {
    const given: unknown = event.type === "done" ? event.message : event.error;
    if (typeof given !== "object" || given === null) {
      const field = event.type === "done" ? "message" : "error";
      return this.fail(new Error(`The model's "${event.type}" event has no ${field}; got ${describe(given)}.`));
    }
    const source = given as AssistantMessage<string>;
    if (event.type === "done" && source.stopReason === undefined) return this.#end({ ...source, stopReason: event.reason });
    if (event.type === "done" && source.stopReason !== "error" && source.stopReason !== "aborted") return this.#end(source);
    const aborted =
      source.stopReason === "aborted" || (source.stopReason !== "error" && (event as { reason?: string }).reason === "aborted");
    return this.#end(source, {
      stopReason: aborted ? "aborted" : "error",
      errorMessage: source.errorMessage || (aborted ? "The model call was aborted." : "The model call failed without saying why."),
    });
  }

  fail(error: unknown): Answer {
    if (this.#run.abort.aborted) return this.abort();
    return this.#end(this.#latest ?? {}, { stopReason: "error", errorMessage: errorText(error) });
  }

  abort(): Answer {
    return this.#end(this.#latest ?? {}, { stopReason: "aborted", errorMessage: `Aborted: ${this.#run.abort.reasonText}` });
  }

  #end(given: object, failure?: Failure): Answer {
    const { delivery } = this.#run;
    const message = finalAnswer(this.#run, given, this.#stamp(), failure);
    const shown = copyAnswer(message);
    if (!this.#snapshots) delivery.deliver({ type: "message_start", message: shown });
    delivery.deliver({ type: "message_end", message: shown });
    return { message, shown };
  }

  /** With a `now` of the host every timestamp is its own, so that a run can be replayed (SPEC 2.2). */
  #stamp(): number | undefined {
    if (this.#run.config.now) this.#timestamp ??= this.#run.now();
    return this.#timestamp;
  }
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
  switch (event.type) {
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta":
      return { type: event.type, contentIndex: event.contentIndex, delta: event.delta, partial };
    case "toolcall_end": {
      const block = partial.content[event.contentIndex];
      return { ...event, toolCall: block?.type === "toolCall" ? block : { ...event.toolCall }, partial };
    }
    default:
      return { ...event, partial };
  }
}
