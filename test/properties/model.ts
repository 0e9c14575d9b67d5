/** The StreamFn of an interpreted run, with every fault of SPEC 3.3 and 3.4. */
import { type AssistantMessage, emptyUsage, type LlmContext, type Model, type StreamFn, type StreamOptions, type ToolCall } from "turnloop";
import { ARGUMENTS, raise, show, THROWN, UNKNOWN_NAMES } from "./odd-values.js";
import { type Answer, type Block, UNKNOWN } from "./scenario.js";
import type { ModelCall, World } from "./world.js";

type Content = AssistantMessage["content"];
interface Frame {
  type: string;
  contentIndex?: number;
  delta?: string;
  /** All blocks so far. */
  content: Content;
}

export const GARBAGE = "#garbage#";
export const STALE = "#stale#";
const STALE_ARGUMENTS = { [STALE]: Array.from({ length: 30 }, (_, i) => i) };

/** The id that the n-th call of an answer is given. */
function idOf(block: Block, modelCall: number, index: number): unknown {
  const ids: Record<Block["id"], unknown> = {
    own: `own_${modelCall}_${index}`,
    same: "same",
    empty: "",
    blank: " ",
    number: 7,
    missing: undefined,
    generated: `call_${modelCall}_${index === 0 ? 1 : 0}`,
    suffixed: "same_2",
    lone: "\ud800",
    lone2: "\ud801",
  };
  return ids[block.id];
}

/** Which of the scenario's tools a call is for; -1: none. */
export function toolIndex(world: World, block: Block): number {
  const { length } = world.scenario.tools;
  return block.tool < UNKNOWN && length > 0 ? block.tool % length : -1;
}

function toolName(world: World, block: Block): unknown {
  const index = toolIndex(world, block);
  return index < 0 ? UNKNOWN_NAMES[block.tool % UNKNOWN] : `t${index}`;
}

interface Step {
  type: string;
  block: Content[number];
  delta?: string;
}

/** The frames of an answer. A stale attempt is the one before a restart. */
function framesOf(world: World, answer: Answer, modelCall: number, stale: boolean): Frame[] {
  const frames: Frame[] = [{ type: "start", content: [] }];
  const blocks: Content = [];
  const queues = answer.blocks.map((block, index) => stepsOf(world, block, modelCall, index, stale));
  const take = (contentIndex: number): void => {
    const step = queues[contentIndex]?.shift();
    if (!step) return;
    blocks[contentIndex] = step.block;
    frames.push({ type: step.type, contentIndex, content: [...blocks], ...(step.delta !== undefined && { delta: step.delta }) });
  };
  const longest = answer.interleaved ? Math.max(0, ...queues.map(({ length }) => length)) : 0;
  for (let round = 0; round < longest; round++) for (const i of queues.keys()) take(i);
  queues.forEach((queue, i) => {
    while (queue.length > 0) take(i);
  });
  return frames;
}

function stepsOf(world: World, block: Block, modelCall: number, index: number, stale: boolean): Step[] {
  if (block.kind === "call") {
    const given = stale ? STALE_ARGUMENTS : ARGUMENTS[block.args]?.given();
    const base = { type: "toolCall", id: idOf(block, modelCall, index), name: toolName(world, block) } as ToolCall;
    const size = typeof given === "object" && given !== null ? Object.keys(given).length : 0;
    const steps: Step[] = [{ type: "toolcall_start", block: { ...base, arguments: {} } }];
    for (let items = 10; size > 0 && items <= 40; items += 10) {
      steps.push({ type: "toolcall_delta", block: { ...base, arguments: firstOf(given, items) }, delta: "{" });
    }
    return [...steps, { type: "toolcall_end", block: { ...base, arguments: given as ToolCall["arguments"] } }];
  }
  const { kind } = block;
  const whole = stale ? STALE : `${kind} ${index} \ud83d\ude00`;
  const part = (end: number) => ({ type: kind, [kind]: whole.slice(0, end) }) as unknown as Content[number];
  const steps: Step[] = [{ type: `${kind}_start`, block: part(0) }];
  for (let end = 5; end < whole.length + 5; end += 5)
    steps.push({ type: `${kind}_delta`, block: part(end), delta: whole.slice(end - 5, end) });
  return [...steps, { type: `${kind}_end`, block: part(whole.length) }];
}

/** An object with the first items of its lists. */
function firstOf(given: unknown, items: number): Record<string, unknown> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return {};
  return Object.fromEntries(Object.entries(given).map(([key, value]) => [key, Array.isArray(value) ? value.slice(0, items) : value]));
}

/** The message whose content grows: a new one for each frame, or one that is changed in place. */
class Draft {
  readonly #live: AssistantMessage | undefined;
  readonly #base: AssistantMessage;

  constructor(model: string, live: boolean) {
    this.#base = {
      role: "assistant",
      content: [],
      api: "scenario",
      provider: "scenario",
      model,
      usage: { ...emptyUsage(), input: 3 },
      stopReason: "stop",
      timestamp: 42,
    };
    if (live) this.#live = this.#base;
  }

  show(content: Content): AssistantMessage {
    if (!this.#live) return { ...this.#base, usage: emptyUsage(), content: content.map(copyBlock) };
    const live = this.#live.content;
    live.length = Math.min(live.length, content.length);
    content.forEach((block, i) => {
      const target = live[i];
      const copy = copyBlock(block);
      if (target?.type === "toolCall" && copy.type === "toolCall" && isPlainObject(target.arguments) && isPlainObject(copy.arguments)) {
        copy.arguments = Object.assign(target.arguments, copy.arguments);
      }
      live[i] = target ? Object.assign(target, copy) : copy;
    });
    return this.#live;
  }

  ruin(): void {
    const ruined = this.#live ?? this.#base;
    for (const block of ruined.content) {
      if (block.type === "text") block.text = GARBAGE;
      if (block.type === "toolCall")
        Object.assign(block, { name: GARBAGE, arguments: Object.assign(block.arguments ?? {}, { n: GARBAGE }) });
    }
    ruined.content.push({ type: "text", text: GARBAGE });
    ruined.usage.input = -5;
  }
}

/** An object that can be changed in place without reaching a prototype. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !Object.hasOwn(value, "__proto__");
}

function copyBlock(block: Content[number]): Content[number] {
  return block.type === "toolCall" && isPlainObject(block.arguments) ? { ...block, arguments: { ...block.arguments } } : { ...block };
}

export function interpretedModel(world: World): StreamFn {
  return (model: Model, context: LlmContext, options?: StreamOptions): any => {
    world.start("streamFn");
    const modelCall: ModelCall = { modelId: model.id, messages: context.messages, context, options, tools: world.tools, frames: [] };
    const number = world.modelCalls.push(modelCall);
    const answer = world.scenario.answers[number - 1];
    if (!answer) return finalAnswer(number, modelCall);
    const { fault } = answer;
    if (fault?.kind === "throwSync") world.thrown(fault.odd);
    if (fault?.kind === "reject") return world.answer(answer.open === "sync" ? "micro" : answer.open, () => world.thrown(fault.odd));
    if (fault?.kind === "notIterable") return world.answer(answer.open, () => [undefined, null, 5, {}, "text"][fault.odd % 5]);
    return world.answer(answer.open, () => new Playing(world, answer, number, modelCall, options?.signal).stream());
  };
}

/** After the script: a text, which ends the run. */
async function* finalAnswer(number: number, modelCall: ModelCall) {
  const message = { ...new Draft(`call-${number}`, false).show([{ type: "text", text: "over" }]) };
  modelCall.frames.push({ type: "start", content: show(message.content) });
  modelCall.terminal = show(message.content);
  yield { type: "start", partial: message } as const;
  yield { type: "done", reason: "stop", message } as const;
}

class Playing {
  readonly #partial: Draft;
  readonly #script: { event: () => unknown; frame?: Frame; fault?: () => unknown }[] = [];
  #last: Content = [];
  #at = 0;

  constructor(
    readonly world: World,
    readonly answer: Answer,
    readonly number: number,
    readonly log: ModelCall,
    readonly signal: AbortSignal | undefined,
  ) {
    this.#partial = new Draft(`call-${number}`, answer.live);
    if (answer.garbage === "abort") signal?.addEventListener("abort", () => this.#partial.ruin());
    const { fault } = answer;
    let frames = framesOf(world, answer, number, false);
    if (fault?.kind === "restart") frames = [...framesOf(world, answer, number, true).slice(0, fault.after + 1), ...frames];
    if (fault?.kind === "noStart") frames = frames.slice(1);
    if (fault?.kind === "lateStart" && frames.length > 1) frames = [frames[1] as Frame, frames[0] as Frame, ...frames.slice(2)];
    for (const frame of frames) this.#script.push({ frame, event: () => this.#update(frame) });
    this.#script.push({ event: () => this.#terminal() });
    if (answer.eventsAfterEnd)
      this.#script.push(...frames.map((frame) => ({ event: () => this.#update(frame) })), { event: () => this.#terminal() });
    const at = Math.min(fault?.after ?? 0, frames.length);
    if (fault?.kind === "throw") this.#script.splice(at, Infinity, { event: () => world.thrown(fault.odd) });
    if (fault?.kind === "stall") this.#script.splice(at, Infinity, { event: () => world.hang() });
    if (fault?.kind === "end") this.#script.splice(at);
    if (fault?.kind === "junk")
      this.#script.splice(at, 0, {
        event: () => [undefined, null, 5, {}, { type: "text_delta" }, { type: "ping", partial: 3 }][fault.odd % 6],
      });
  }

  stream(): unknown {
    const iterator: Record<string, unknown> = { next: () => this.#next() };
    const { onReturn, result } = this.answer;
    if (onReturn !== "absent") iterator.return = () => this.#onReturn();
    const stream: Record<PropertyKey, unknown> = { [Symbol.asyncIterator]: () => iterator };
    if (result !== "absent") stream.result = () => this.#result();
    return stream;
  }

  #next(): unknown {
    const { world } = this;
    // a decorator reads on in a stream whose call is over, until the stream itself says so
    const over = world.decorate !== undefined && this.signal?.aborted;
    if (world.sinkBusy && !world.stopped && !over) world.fail("4.7: a stream event is pulled while the sink is busy");
    if (world.stopped && !over) world.fail("7.3: a stream event is pulled after the abort");
    world.point();
    const step = this.#script[this.#at++];
    if (!step) return Promise.resolve({ done: true, value: undefined });
    const { arrive, obey } = this.answer;
    const give = (): unknown => {
      if (this.signal?.aborted && obey !== "ignore")
        return obey === "throw" ? raise(THROWN[7]?.()) : { done: false, value: this.#failure("aborted") };
      const value = step.event();
      if (value instanceof Promise) return value.then((late) => ({ done: false, value: late }));
      if (step.frame) {
        this.#last = step.frame.content;
        this.log.frames.push({ type: step.frame.type, content: show(step.frame.content) });
      }
      return { done: false, value };
    };
    if (arrive === "sync") return new Promise((resolve) => resolve(give()));
    return world.answer(arrive, give);
  }

  #update(frame: Frame): unknown {
    const partial = this.#partial.show(frame.content);
    const { contentIndex, type, delta } = frame;
    if (contentIndex === undefined) return { type, partial };
    const block = partial.content[contentIndex] as any;
    const more = type === "toolcall_end" ? { toolCall: block } : type.endsWith("_end") ? { content: block.text ?? block.thinking } : {};
    return { type, contentIndex: contentIndex + this.answer.indexOffset, partial, ...(delta !== undefined && { delta }), ...more };
  }

  #whole(): AssistantMessage<string> {
    const frames = framesOf(this.world, this.answer, this.number, false);
    return { ...this.#partial.show((frames[frames.length - 1] as Frame).content) };
  }

  #terminal(): unknown {
    const { stop, fault } = this.answer;
    if (fault?.kind === "noMessage") return { type: "done", reason: "stop" };
    if (stop === "error" || stop === "aborted") return this.#failure(stop);
    const message = this.answer.live ? this.#partial.show(this.#whole().content) : this.#whole();
    const reason =
      stop === "auto" || stop === "none" ? (this.answer.blocks.some(({ kind }) => kind === "call") ? "toolUse" : "stop") : stop;
    Object.assign(message, { stopReason: stop === "none" ? undefined : reason });
    this.log.terminal ??= show(message.content);
    if (this.answer.garbage === "later") this.world.later(1, () => this.#partial.ruin());
    return { type: "done", reason, message };
  }

  #failure(reason: "error" | "aborted"): unknown {
    const error = {
      ...this.#partial.show(this.#last),
      stopReason: reason,
      errorMessage: `scenario ${reason}`,
      errorInfo: { kind: "unknown", retryable: false },
    };
    return { type: "error", reason, error };
  }

  #onReturn(): unknown {
    const { onReturn, garbage } = this.answer;
    if (garbage === "return") this.#partial.ruin();
    if (onReturn === "throw") throw new Error("return() throws");
    if (onReturn === "reject") return Promise.reject(new Error("return() rejects"));
    return onReturn === "hang" ? new Promise(() => {}) : Promise.resolve({ done: true, value: undefined });
  }

  #result(): unknown {
    const { world } = this;
    const failed = (): unknown => ({ ...this.#whole(), stopReason: "aborted" });
    const message = (): unknown => ({
      ...this.#whole(),
      stopReason: this.answer.blocks.some(({ kind }) => kind === "call") ? "toolUse" : "stop",
    });
    const wholeJson = (): string => (this.log.terminal = show(this.#whole().content));
    switch (this.answer.result) {
      case "message":
        wholeJson();
        return Promise.resolve(message());
      case "aborted":
        wholeJson();
        return Promise.resolve(failed());
      case "late":
        return new Promise((resolve) => world.later(1500, () => resolve(message())));
      case "reject":
        return Promise.reject(new Error("result() rejects"));
      case "throwSync":
        throw new Error("result() throws");
      case "junk":
        return Promise.resolve(5);
      default:
        return new Promise(() => {});
    }
  }
}
