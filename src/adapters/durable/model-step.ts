/** One model call as one step (SPEC 16.1, 16.2). */
import { EventReader, type StreamEvent } from "../../decorators/event-reader.js";
import { describe, errorText } from "../../errors.js";
import { asRecorded } from "../../loop/recorded.js";
import { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessage } from "../../messages.js";
import type { LlmContext, Model, StreamFn, StreamOptions } from "../../stream.js";
import { abortError } from "../shared/call.js";
import { Attempt, throughJson } from "./attempt.js";
import { Handoff } from "./handoff.js";
import type { Journal, ModelStepInput, StepInfo } from "./journal.js";

type Answer = AssistantMessage<string>;
type TerminalEvent = Extract<StreamEvent, { type: "done" | "error" }>;

interface AnswerRecord {
  message: Answer;
  /** When it was complete, in Unix milliseconds. */
  at: number;
}

export function durableStreamFn(journal: Journal, streamFn: StreamFn): StreamFn {
  let calls = 0;
  return asRecorded((model: Model, context: LlmContext, options: StreamOptions = {}) => {
    const name = journal.stepName(`model:${++calls}`);
    return answer(journal, name, new ModelCall(streamFn, model, context, options));
  });
}

/** The deltas of a step that runs, live; then, in any case, what was recorded. */
async function* answer(journal: Journal, name: string, call: ModelCall): AsyncGenerator<StreamEvent> {
  const recording = journal.record(name, (own) => call.record(own), call.info, call.options.signal);
  const closing = (): void => call.live.close();
  recording.then(closing, closing);
  let started = false;
  try {
    for (let event = await call.live.take(); event; event = await call.live.take()) {
      started ||= event.type === "start";
      yield event;
    }
    const { message, at } = await recording;
    // the answer is stamped when it starts: before its record counts, on a replay too
    if (!started) yield { type: "start", partial: { ...message, content: [] } };
    journal.advance(at);
    yield terminalEvent(message);
  } finally {
    call.live.close();
  }
}

/** The record of a model call, made where its closure cannot go. */
export function performModelStep(
  streamFn: StreamFn,
  { model, context, options }: ModelStepInput,
  signal: AbortSignal | undefined,
  attempt: AbortSignal | undefined,
): Promise<AnswerRecord> {
  const call = new ModelCall(streamFn, model, context, signal ? { ...options, signal } : options);
  call.live.close(); // nobody listens
  return call.record(attempt);
}

class ModelCall {
  readonly live = new Handoff<StreamEvent>();
  readonly options: StreamOptions;
  readonly #streamFn: StreamFn;
  readonly #model: Model;
  readonly #context: LlmContext;

  constructor(streamFn: StreamFn, model: Model, context: LlmContext, options: StreamOptions) {
    this.#streamFn = streamFn;
    this.#model = model;
    this.#context = context;
    this.options = options;
  }

  get info(): StepInfo {
    const { apiKey, signal, headers, ...options } = this.options;
    const { apiKey: _, headers: __, ...model } = this.#model as Model & { apiKey?: unknown; headers?: unknown };
    return { kind: "model", input: { model, context: this.#context, options } };
  }

  /** Calls the model and gives its answer, whatever that is; rejects only when nothing may be recorded. */
  async record(own: AbortSignal | undefined): Promise<AnswerRecord> {
    const attempt = new Attempt(this.options.signal, own);
    let partial: Answer | undefined;
    try {
      attempt.assertGoing();
      const reading = attempt.aborted ? undefined : this.#read(attempt, (latest) => (partial = latest));
      const aborted = attempt.ended<Answer>(() => Promise.reject(abortError(this.options.signal as AbortSignal)));
      const message = await Promise.race(reading ? [reading, aborted] : [aborted]).catch((error: unknown) => {
        attempt.assertGoing();
        if (!attempt.aborted) return this.#failed(error, partial);
        return { ...this.#failed(error, partial), errorMessage: `Aborted: ${attempt.reasonText}` };
      });
      attempt.assertGoing();
      return { message: this.#plain(message), at: Date.now() };
    } finally {
      attempt.close();
    }
  }

  async #read(attempt: Attempt, onPartial: (partial: Answer) => void): Promise<Answer> {
    const reader = new EventReader(await this.#streamFn(this.#model, this.#context, { ...this.options, signal: attempt.signal }));
    let partial: Answer | undefined;
    try {
      for (let event = await reader.next(); event && !attempt.isOver; event = await reader.next()) {
        if (event.type === "done" || event.type === "error") return this.#final(event, partial);
        partial = event.partial ?? partial;
        if (partial) onPartial(partial);
        await this.live.give(event);
      }
      throw new Error("The model's stream ended early: it gave no done and no error event.");
    } finally {
      reader.close();
    }
  }

  /** The message of a terminal event as the loop would take it: the event decides where the message does not say. */
  #final(event: TerminalEvent, partial: Answer | undefined): Answer {
    const given: unknown = event.type === "done" ? event.message : event.error;
    if (typeof given !== "object" || given === null) {
      throw new Error(`The model's "${event.type}" event has no ${event.type === "done" ? "message" : "error"}; got ${describe(given)}.`);
    }
    const { content, stopReason, errorMessage, errorInfo } = given as Answer;
    // an Error where the failed message should be
    if (event.type === "error" && !Array.isArray(content)) return this.#failed(errorMessage ?? given, partial, errorInfo);
    const isSaid = event.type === "done" ? stopReason !== undefined : stopReason === "error" || stopReason === "aborted";
    return {
      ...(given as Answer),
      stopReason: isSaid ? stopReason : event.reason,
      ...(errorMessage !== undefined && { errorMessage: errorText(errorMessage) }),
    };
  }

  /** What had come, with the failure. */
  #failed(error: unknown, partial: Answer | undefined, info = (Object(error) as Partial<Answer>).errorInfo): Answer {
    const { error: message } = new AssistantMessageBuilder(this.#model).fail(error, info).at(-1) as Extract<StreamEvent, { type: "error" }>;
    return { ...message, content: partial?.content ?? [], usage: partial?.usage ?? message.usage };
  }

  /** As JSON, without the key: some servers repeat it in their errors. */
  #plain(message: Answer): Answer {
    try {
      const plain = throughJson("The model's answer", message);
      const { apiKey } = this.options;
      if (plain.errorMessage && apiKey && apiKey.length >= 12) plain.errorMessage = plain.errorMessage.split(apiKey).join("[API key]");
      return plain;
    } catch (error) {
      return this.#failed(error, undefined);
    }
  }
}

function terminalEvent(message: Answer): StreamEvent {
  const { stopReason } = message;
  if (stopReason === "error" || stopReason === "aborted") return { type: "error", reason: stopReason, error: message };
  return { type: "done", reason: stopReason, message };
}
