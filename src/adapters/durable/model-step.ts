/** One model call as one step (SPEC 16.1, 16.2). */
import { EventReader, type StreamEvent } from "../../decorators/event-reader.js";
import { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessage } from "../../messages.js";
import type { LlmContext, Model, StreamFn, StreamOptions } from "../../stream.js";
import { abortError } from "../shared/call.js";
import type { JournalClock } from "./clock.js";
import { Handoff } from "./handoff.js";
import { eitherSignal, runStep, type Step, type StepInfo, throughJson, unlessEnded } from "./step.js";

interface AnswerRecord {
  message: AssistantMessage<string>;
  /** When it was complete, in Unix milliseconds. */
  at: number;
}

export function durableStreamFn(step: Step, streamFn: StreamFn, prefix: string, clock: JournalClock): StreamFn {
  let calls = 0;
  return (model, context, options) => answer(step, `${prefix}/model:${++calls}`, streamFn, clock, model, context, options);
}

/** The deltas of a step that runs, live; then, in any case, what was recorded. */
async function* answer(
  step: Step,
  name: string,
  streamFn: StreamFn,
  clock: JournalClock,
  model: Model,
  context: LlmContext,
  options: StreamOptions = {},
): AsyncGenerator<StreamEvent> {
  const live = new Handoff<StreamEvent>();
  const recording = runStep(
    step,
    name,
    (attempt) => record(streamFn, model, context, options, attempt.signal, live),
    info(model, context, options),
  );
  const closing = (): void => live.close();
  recording.then(closing, closing);
  let started = false;
  try {
    for (let event = await live.take(); event; event = await live.take()) {
      started ||= event.type === "start";
      yield event;
    }
    const { message, at } = await recording;
    // the answer is stamped when it starts: before its record counts, on a replay too
    if (!started) yield { type: "start", partial: { ...message, content: [] } };
    clock.advance(at);
    yield terminalEvent(message);
  } finally {
    live.close();
  }
}

/** Calls the model and gives its answer, whatever that is; rejects only when the attempt is ended. */
async function record(
  streamFn: StreamFn,
  model: Model,
  context: LlmContext,
  options: StreamOptions,
  attempt: AbortSignal | undefined,
  live: Handoff<StreamEvent>,
): Promise<AnswerRecord> {
  const either = eitherSignal(options.signal, attempt);
  let partial: AssistantMessage<string> | undefined;
  const read = async (): Promise<AssistantMessage<string>> => {
    const reader = new EventReader(await streamFn(model, context, { ...options, signal: either.signal }));
    for (let event = await reader.next(); event; event = await reader.next()) {
      if (event.type === "done") return event.message;
      if (event.type === "error") return event.error;
      partial = event.partial;
      await live.give(event);
    }
    throw new Error("The model's stream ended early: it gave no done and no error event.");
  };
  try {
    const message = await unlessEnded(attempt, unlessAborted(options.signal, read())).catch((error: unknown) => {
      if (attempt?.aborted) throw error;
      return failedAnswer(model, partial, error);
    });
    return throughJson({ message, at: Date.now() });
  } finally {
    either.release();
  }
}

/** Rejects at the abort of the run: a model that does not listen to it must not hold up the record. */
function unlessAborted<T>(signal: AbortSignal | undefined, value: Promise<T>): Promise<T> {
  return unlessEnded(signal, value).catch((error: unknown) => {
    throw signal?.aborted ? abortError(signal) : error;
  });
}

/** What had come, with the failure. */
function failedAnswer(model: Model, partial: AssistantMessage<string> | undefined, error: unknown): AssistantMessage<string> {
  const { errorInfo } = Object(error) as { errorInfo?: AssistantMessage["errorInfo"] };
  const events = new AssistantMessageBuilder(model).fail(error, errorInfo);
  const last = events[events.length - 1] as Extract<StreamEvent, { type: "error" }>;
  return { ...last.error, content: partial?.content ?? [], usage: partial?.usage ?? last.error.usage };
}

function terminalEvent(message: AssistantMessage<string>): StreamEvent {
  const { stopReason } = message;
  if (stopReason === "error" || stopReason === "aborted") return { type: "error", reason: stopReason, error: message };
  return { type: "done", reason: stopReason, message };
}

function info(model: Model, context: LlmContext, { apiKey, signal, headers, ...options }: StreamOptions): StepInfo {
  return { kind: "model", input: { model, context, options } };
}
