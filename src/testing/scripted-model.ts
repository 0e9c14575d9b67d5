import { errorText } from "../errors.js";
import { pause } from "../loop/abort.js";
import { copyPlain } from "../loop/snapshot.js";
import { AssistantMessageBuilder } from "../message-builder.js";
import type { AssistantMessage, ModelErrorInfo, Usage } from "../messages.js";
import type { AssistantMessageEvent, AssistantStream, LlmContext, Model, StreamFn, StreamOptions } from "../stream.js";

/** One block of an answer. A tool call's arguments are `args` as JSON, or `rawArgs` word for word. */
export type Block = { text: string } | { thinking: string } | { toolCall: string; args?: unknown; rawArgs?: string; id?: string };

/** What goes wrong with an answer, after `afterEvents` events (default 0) were given. */
export interface Fault {
  /**
   * `throw` the iteration throws; `stall` it never goes on and never returns, whatever the signal says; `end` it ends with
   * no terminal event; `restart` the answer begins again; `noStart` there is no start event; `reject` the StreamFn returns a
   * rejected promise; `throwSync` it throws.
   */
  kind: "throw" | "stall" | "end" | "restart" | "noStart" | "reject" | "throwSync";
  afterEvents?: number;
}

/** An answer with everything that can be said about it. */
export interface DetailedAnswer {
  content?: (string | Block)[];
  /** Default: `error` with an `errorMessage` or an `errorInfo`, `toolUse` with tool calls, else `stop`. */
  stopReason?: string;
  usage?: Partial<Usage>;
  errorMessage?: string;
  errorInfo?: ModelErrorInfo;
  /** Milliseconds of silence before the first event. */
  delayMs?: number;
  fault?: Fault;
}

/** A text, a list of blocks, an answer in detail, or a function that decides by the request. */
export type ScriptedAnswer =
  | string
  | Block[]
  | DetailedAnswer
  | ((context: LlmContext, options?: StreamOptions) => ScriptedAnswer | Promise<ScriptedAnswer>);

export interface ScriptedModelOptions {
  /** UTF-16 units in a delta; a surrogate pair is not cut. @default 16 */
  chunkSize?: number;
  /** Milliseconds before each delta. @default 0: none, and no timer */
  delayMs?: number;
}

export type ScriptedModel = StreamFn & {
  /** A deep copy of each request, in order. */
  requests: LlmContext[];
};

/**
 * A model that gives the answers of a script, call by call, for a host's own tests (SPEC 13.1). Deterministic: the same
 * script gives the same events. It ends as `aborted` when its signal fires. After the last answer: an error turn "script
 * exhausted".
 *
 * @example
 * const model = scriptedModel([[{ toolCall: "add", args: { a: 2, b: 3 } }], "It is 5."]);
 */
export function scriptedModel(answers: ScriptedAnswer[], options: ScriptedModelOptions = {}): ScriptedModel {
  const requests: LlmContext[] = [];
  const streamFn = (model: Model, context: LlmContext, streamOptions?: StreamOptions): AssistantStream | Promise<AssistantStream> => {
    const turn = requests.push(copyPlain(context, new Map()));
    const start = (answer: DetailedAnswer): AssistantStream | Promise<AssistantStream> => {
      if (answer.fault?.kind === "throwSync") throw new Error(answer.errorMessage ?? "scripted throwSync");
      if (answer.fault?.kind === "reject") return Promise.reject(new Error(answer.errorMessage ?? "scripted reject"));
      return play(model, answer, turn, options, streamOptions?.signal);
    };
    const scripted = answers[turn - 1] ?? { stopReason: "error", errorMessage: "script exhausted" };
    const resolved = resolveAnswer(scripted, context, streamOptions);
    return resolved instanceof Promise ? resolved.then(start) : start(resolved);
  };
  return Object.assign(streamFn, { requests });
}

function resolveAnswer(
  answer: ScriptedAnswer,
  context: LlmContext,
  options: StreamOptions | undefined,
): DetailedAnswer | Promise<DetailedAnswer> {
  if (typeof answer === "string") return { content: [answer] };
  if (Array.isArray(answer)) return { content: answer };
  if (typeof answer !== "function") return answer;
  const decided = answer(context, options);
  return decided instanceof Promise
    ? decided.then((later) => resolveAnswer(later, context, options))
    : resolveAnswer(decided, context, options);
}

async function* play(
  model: Model,
  answer: DetailedAnswer,
  turn: number,
  options: ScriptedModelOptions,
  signal: AbortSignal | undefined,
): AsyncGenerator<AssistantMessageEvent<string>> {
  const fault = answer.fault;
  const faultAfter = fault?.afterEvents ?? 0;
  let builder = new AssistantMessageBuilder(model);
  let given = 0;
  let restarted = false;
  let last: AssistantMessage<string> | undefined;
  const abortedEvents = (): AssistantMessageEvent<string>[] => {
    const events = new AssistantMessageBuilder(model).fail(abortError(signal)) as AssistantMessageEvent<string>[];
    if (!last) return events;
    const { stopReason, errorMessage, errorInfo } = (events[1] as Extract<AssistantMessageEvent, { type: "error" }>).error;
    return [{ type: "error", reason: "aborted", error: { ...last, stopReason, errorMessage, errorInfo } }];
  };

  if (answer.delayMs && !(await pause(answer.delayMs, signal))) return yield* abortedEvents();
  for (let steps = eventsOf(builder, answer, turn, options), step = steps.next(); !step.done; step = steps.next()) {
    const event = step.value;
    if (given === faultAfter) {
      if (fault?.kind === "throw") throw new Error(answer.errorMessage ?? "scripted throw");
      if (fault?.kind === "end") return;
      if (fault?.kind === "stall") await new Promise(() => {});
      if (fault?.kind === "restart" && !restarted) {
        restarted = true;
        builder = new AssistantMessageBuilder(model);
        steps = eventsOf(builder, answer, turn, options);
        continue;
      }
    }
    if (fault?.kind === "noStart" && event.type === "start") continue;
    if (options.delayMs && event.type.endsWith("_delta") && !(await pause(options.delayMs, signal))) return yield* abortedEvents();
    if (signal?.aborted) return yield* abortedEvents();
    given++;
    if ("partial" in event) last = event.partial;
    yield event;
  }
}

function* eventsOf(
  builder: AssistantMessageBuilder,
  answer: DetailedAnswer,
  turn: number,
  options: ScriptedModelOptions,
): Generator<AssistantMessageEvent<string>> {
  const chunkSize = options.chunkSize ?? 16;
  let calls = 0;
  for (const block of answer.content ?? []) {
    if (typeof block === "string") for (const chunk of chunks(block, chunkSize)) yield* builder.text(chunk);
    else if ("text" in block) for (const chunk of chunks(block.text, chunkSize)) yield* builder.text(chunk);
    else if ("thinking" in block) for (const chunk of chunks(block.thinking, chunkSize)) yield* builder.thinking(chunk);
    else {
      yield* builder.toolCallStart(block.id ?? `scripted_${turn}_${calls}`, block.toolCall);
      const json = block.rawArgs ?? JSON.stringify(block.args ?? {});
      for (const chunk of chunks(json, chunkSize)) yield* builder.toolCallDelta(chunk);
      yield* builder.toolCallEnd();
      calls++;
    }
  }
  if (answer.usage) yield* builder.usage(answer.usage);
  yield* ending(builder, answer, calls);
}

/** The builder's ending, with a stop reason or failure that only a script can want. */
function ending(builder: AssistantMessageBuilder, answer: DetailedAnswer, calls: number): AssistantMessageEvent<string>[] {
  const failed = answer.errorMessage !== undefined || answer.errorInfo !== undefined;
  const stopReason = answer.stopReason ?? (failed ? "error" : calls > 0 ? "toolUse" : "stop");
  if (stopReason !== "error" && stopReason !== "aborted") {
    return builder.done().map((event) => {
      if (event.type !== "done") return event;
      const message: AssistantMessage<string> = { ...event.message, stopReason };
      return { type: "done", reason: stopReason, message };
    });
  }
  const failure = new Error(answer.errorMessage ?? `scripted ${stopReason}`);
  if (stopReason === "aborted") failure.name = "AbortError";
  return builder.fail(failure, answer.errorInfo);
}

function* chunks(text: string, size: number): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + Math.max(1, size || 1), text.length);
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end++;
    yield text.slice(start, end);
    start = end;
  }
}

function abortError(signal: AbortSignal | undefined): Error {
  const error = new Error(`aborted: ${errorText(signal?.reason)}`);
  error.name = "AbortError";
  return error;
}
