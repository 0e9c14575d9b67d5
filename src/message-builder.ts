import { describe, errorText, TurnLoopError } from "./errors.js";
import type { AssistantMessage, ModelErrorInfo, StopReason, TextContent, ThinkingContent, ToolCall, Usage } from "./messages.js";
import { PartialObject, parseObject } from "./partial-json.js";
import { type AssistantMessageEvent, emptyAnswer, type Model } from "./stream.js";

type Block = AssistantMessage["content"][number];
/** @inline */
type FinishReason = Exclude<StopReason, "error" | "aborted">;

/**
 * Builds the events of one answer, for people who write a StreamFn (SPEC 3.2). Each method returns the events to yield;
 * the first one begins with `start`, a block is closed when another one begins and by `done` or `fail`, and after these
 * two there are no more events. The `partial`s are snapshots that never change and share the blocks that did not.
 *
 * @example
 * async function* echo(model: Model, context: LlmContext) {
 *   const b = new AssistantMessageBuilder(model);
 *   yield* b.text("You said: ");
 *   yield* b.text(String(context.messages.at(-1)?.content));
 *   yield* b.done("stop");
 * }
 */
export class AssistantMessageBuilder {
  readonly #model: Model;
  #message: AssistantMessage;
  #started = false;
  #ended = false;
  /** The last block is still open for deltas. */
  #blockOpen = false;
  /** The arguments of the open call. */
  #json = new PartialObject();

  /** `now` gives the message's timestamp in Unix milliseconds (default `Date.now`). */
  constructor(model: Model, options?: { now?: () => number }) {
    this.#model = model;
    this.#message = emptyAnswer(model, (options?.now ?? Date.now)());
  }

  /** More of the visible answer. */
  text(delta: string): AssistantMessageEvent[] {
    const events = this.#begin();
    if (this.#ended || delta === "") return events;
    const open = this.#openBlock("text");
    if (!open) this.#openNew({ type: "text", text: "" }, "text_start", events);
    this.#replaceLast({ ...(this.#last() as TextContent), text: (this.#last() as TextContent).text + delta });
    events.push({ type: "text_delta", contentIndex: this.#index(), delta, partial: this.#message });
    return events;
  }

  /** More of the model's reasoning. `signature` is the provider's proof of it, kept for replay; `redacted`: it is all there is. */
  thinking(delta: string, signature?: string, redacted?: boolean): AssistantMessageEvent[] {
    const events = this.#begin();
    if (this.#ended || (delta === "" && signature === undefined)) return events;
    if (!this.#openBlock("thinking")) this.#openNew({ type: "thinking", thinking: "" }, "thinking_start", events);
    const last = this.#last() as ThinkingContent;
    this.#replaceLast({
      ...last,
      thinking: last.thinking + delta,
      ...(signature === undefined ? {} : { thinkingSignature: signature }),
      ...(redacted ? { redacted } : {}),
    });
    events.push({ type: "thinking_delta", contentIndex: this.#index(), delta, partial: this.#message });
    return events;
  }

  /** A tool call begins. */
  toolCallStart(id: string, name: string): AssistantMessageEvent[] {
    const events = this.#begin();
    if (this.#ended) return events;
    this.#openNew({ type: "toolCall", id, name, arguments: {} }, "toolcall_start", events);
    this.#json = new PartialObject();
    return events;
  }

  /** More of the JSON text of the open call's arguments. */
  toolCallDelta(jsonText: string): AssistantMessageEvent[] {
    if (this.#ended) return [];
    if (!this.#openBlock("toolCall")) {
      throw new TurnLoopError("invalid_argument", "toolCallDelta needs an open tool call: call toolCallStart(id, name) first.");
    }
    const events: AssistantMessageEvent[] = [];
    this.#json.add(jsonText);
    const read = this.#json.read();
    if (read) this.#replaceLast({ ...(this.#last() as ToolCall), arguments: read });
    events.push({ type: "toolcall_delta", contentIndex: this.#index(), delta: jsonText, partial: this.#message });
    return events;
  }

  /** The open tool call is complete. Arguments that are not a JSON object leave `{}` and an `argumentsError` (SPEC 5.4). */
  toolCallEnd(): AssistantMessageEvent[] {
    return this.#openBlock("toolCall") ? this.blockEnd() : this.#begin();
  }

  /**
   * The open block, whatever it is, is complete: what follows is another one, also if it is of the same type. `signature`
   * is kept with it for replay, as `textSignature`, `thinkingSignature` or `thoughtSignature`.
   */
  blockEnd(signature?: string): AssistantMessageEvent[] {
    const events = this.#begin();
    if (this.#blockOpen && signature !== undefined) this.#replaceLast(signed(this.#last(), signature));
    this.#close(events);
    return events;
  }

  /**
   * Token counts so far; given ones replace earlier ones. `totalTokens` defaults to the sum of the four counts, `cost` to
   * what `model.cost` makes of them.
   */
  usage(usage: Partial<Usage>): AssistantMessageEvent[] {
    const merged = { ...this.#message.usage };
    for (const key of ["input", "output", "cacheRead", "cacheWrite"] as const) merged[key] = usage[key] ?? merged[key];
    const { input, output, cacheRead, cacheWrite } = merged;
    merged.totalTokens = usage.totalTokens ?? input + output + cacheRead + cacheWrite;
    const price = this.#model.cost;
    if (usage.cost) merged.cost = { ...usage.cost };
    else if (price) {
      const cost = {
        input: (input * price.input) / 1e6,
        output: (output * price.output) / 1e6,
        cacheRead: (cacheRead * price.cacheRead) / 1e6,
        cacheWrite: (cacheWrite * price.cacheWrite) / 1e6,
      };
      merged.cost = { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite };
    }
    this.#message = { ...this.#message, usage: merged };
    return this.#begin();
  }

  /** The answer is complete. Without a reason: `toolUse` when there are calls, else `stop`. */
  done(reason?: FinishReason): AssistantMessageEvent[] {
    const events = this.#begin();
    if (this.#ended) return events;
    this.#close(events);
    this.#ended = true;
    const stopReason = reason ?? (this.#message.content.some((block) => block.type === "toolCall") ? "toolUse" : "stop");
    events.push({ type: "done", reason: stopReason, message: { ...this.#message, stopReason } });
    return events;
  }

  /** The answer failed; what came so far is kept. An AbortError, or an `info` of that kind, ends it as `aborted`. `info` tells retries what it was. */
  fail(error: unknown, info?: ModelErrorInfo): AssistantMessageEvent[] {
    const events = this.#begin();
    if (this.#ended) return events;
    this.#close(events);
    this.#ended = true;
    const reason = isAbortError(error) || info?.kind === "aborted" ? "aborted" : "error";
    const message: AssistantMessage = { ...this.#message, stopReason: reason, errorMessage: errorText(error) };
    if (info) message.errorInfo = info;
    else if (reason === "aborted") message.errorInfo = { kind: "aborted", retryable: false };
    events.push({ type: "error", reason, error: message });
    return events;
  }

  #begin(): AssistantMessageEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [{ type: "start", partial: this.#message }];
  }

  #openNew(block: Block, type: "text_start" | "thinking_start" | "toolcall_start", events: AssistantMessageEvent[]): void {
    this.#close(events);
    this.#blockOpen = true;
    this.#message = { ...this.#message, content: [...this.#message.content, block] };
    events.push({ type, contentIndex: this.#index(), partial: this.#message });
  }

  #close(events: AssistantMessageEvent[]): void {
    if (!this.#blockOpen) return;
    this.#blockOpen = false;
    const contentIndex = this.#index();
    const block = this.#last();
    if (block.type === "text") events.push({ type: "text_end", contentIndex, content: block.text, partial: this.#message });
    else if (block.type === "thinking") {
      events.push({ type: "thinking_end", contentIndex, content: block.thinking, partial: this.#message });
    } else {
      const toolCall = finishedCall(block, this.#json.text);
      this.#replaceLast(toolCall);
      events.push({ type: "toolcall_end", contentIndex, toolCall, partial: this.#message });
    }
  }

  #replaceLast(block: Block): void {
    const content = this.#message.content.slice();
    content[content.length - 1] = block;
    this.#message = { ...this.#message, content };
  }

  #last(): Block {
    return this.#message.content[this.#index()] as Block;
  }

  #index(): number {
    return this.#message.content.length - 1;
  }

  #openBlock(type: Block["type"]): boolean {
    return this.#blockOpen && this.#last().type === type;
  }
}

function signed(block: Block, signature: string): Block {
  if (block.type === "text") return { ...block, textSignature: signature };
  return block.type === "thinking" ? { ...block, thinkingSignature: signature } : { ...block, thoughtSignature: signature };
}

/** The call with its arguments read from their complete text. */
function finishedCall(call: ToolCall, text: string): ToolCall {
  if (text.trim() === "") return { ...call, arguments: {} };
  const value = parseObject(text);
  if (value) return { ...call, arguments: value };
  return { ...call, arguments: {}, argumentsError: argumentsErrorText(text) };
}

/** Why given arguments cannot be used, for the model to read. */
export function argumentsErrorText(given: unknown): string {
  return `The tool call's arguments must be a JSON object, but were ${describe(given)}. Send the call again with valid JSON.`;
}

function isAbortError(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { name?: unknown }).name === "AbortError";
}
