/** From the events of a Messages stream to those of an answer (SPEC 12.2). */
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent } from "../../stream.js";
import type { AnswerReader } from "../shared/stream-answer.js";
import { type BlockDelta, BlockLane, type ContentBlock } from "./block.js";
import type { Block } from "./request.js";
import { TokenCounts, type WireUsage } from "./usage.js";

/** The parts of an event that are read; nothing a compatible server leaves out is relied on. */
export interface WireEvent {
  type?: string;
  index?: number;
  message?: { usage?: WireUsage | null; container?: { id?: string } | null } | null;
  content_block?: ContentBlock;
  delta?: (BlockDelta & StopDelta) | null;
  usage?: WireUsage | null;
}

interface StopDelta {
  stop_reason?: string | null;
  stop_details?: { explanation?: string | null; category?: string | null } | null;
  container?: { id?: string } | null;
}

/** What goes back so that a paused model can go on. */
export interface Continuation {
  content: Block[];
  container?: string;
}

/** Reads one answer, which may take several requests: `read` each event, `resume` before the next request, then `finish`. */
export class MessagesAnswer implements AnswerReader<WireEvent | null> {
  readonly #builder: AssistantMessageBuilder;
  readonly #counts = new TokenCounts();
  /** The blocks of this request, and the first of them that is not shown whole. */
  #blocks: BlockLane[] = [];
  #shown = 0;
  #container: string | undefined;
  #stop: StopDelta = {};
  #complete = false;

  constructor(builder: AssistantMessageBuilder) {
    this.#builder = builder;
  }

  /** The last event of this request has come. */
  get complete(): boolean {
    return this.#complete;
  }

  read(event: WireEvent | null): AssistantMessageEvent[] {
    const { type, index, delta, message, content_block } = event ?? {};
    const usage = event?.usage ?? message?.usage;
    const events = usage ? this.#builder.usage(this.#counts.read(usage)) : [];
    this.#container = message?.container?.id ?? delta?.container?.id ?? this.#container;
    if (type === "error") throw Object.assign(new Error(JSON.stringify(event)), { error: event });
    if (type === "content_block_start" && content_block) this.#blocks.push(new BlockLane(index, content_block));
    if (type === "content_block_delta" && delta) this.#open(index)?.add(delta);
    if (type === "content_block_stop") this.#open(index)?.close();
    if (type === "message_delta" && delta) this.#stop = { ...this.#stop, ...delta };
    if (type === "message_stop") this.#complete = true;
    return [...events, ...this.#show()];
  }

  /** What a model that paused wants back; the next request's events belong to the same answer. */
  resume(): Continuation | undefined {
    if (!this.#complete || this.#stop.stop_reason !== "pause_turn") return undefined;
    const content = this.#blocks.map((block) => block.whole()).filter((block) => block.type !== "text" || block.text.trim() !== "");
    if (content.some(({ type }) => type === "tool_use")) return undefined; // the loop has to answer first
    return { content, ...(this.#container === undefined ? {} : { container: this.#container }) };
  }

  /** Another request begins. What is held back of the last one comes first. */
  nextRequest(): AssistantMessageEvent[] {
    const events = this.flush();
    this.#counts.nextRequest();
    this.#blocks = [];
    this.#shown = 0;
    this.#stop = {};
    this.#complete = false;
    return events;
  }

  /** What is still held back. */
  flush(): AssistantMessageEvent[] {
    for (const block of this.#blocks) block.close();
    return this.#show();
  }

  /** Closes an answer that is complete. */
  finish(): AssistantMessageEvent[] {
    const events = this.flush();
    const { stop_reason, stop_details } = this.#stop;
    const reason = stop_reason ?? "end_turn";
    if (reason === "refusal") {
      const { explanation, category } = stop_details ?? {};
      const why = explanation || (category ? `The model refused to answer (${category}).` : "The model refused to answer.");
      return [...events, ...this.#builder.fail(new Error(why), { kind: "refusal", retryable: false })];
    }
    // the calls decide between stop and toolUse
    const cut = reason === "max_tokens" || reason === "model_context_window_exceeded";
    events.push(...this.#builder.done(cut ? "length" : undefined));
    if (["end_turn", "tool_use", "max_tokens"].includes(reason)) return events;
    return events.map((event) => (event.type === "done" ? { ...event, message: { ...event.message, rawStopReason: reason } } : event));
  }

  /** The block a delta is about; the newest one where a server gives no index. */
  #open(index: number | undefined): BlockLane | undefined {
    for (let i = this.#blocks.length - 1; i >= this.#shown; i--) {
      const block = this.#blocks[i] as BlockLane;
      if (!block.closed && (index === undefined || block.index === index)) return block;
    }
    return undefined;
  }

  /** Blocks are shown one after the other, the first open one as it comes: the others wait for it. */
  #show(): AssistantMessageEvent[] {
    const events: AssistantMessageEvent[] = [];
    for (; this.#shown < this.#blocks.length; this.#shown++) {
      const block = this.#blocks[this.#shown] as BlockLane;
      events.push(...block.show(this.#builder));
      if (!block.closed) break;
      events.push(...this.#builder.blockEnd());
    }
    return events;
  }
}
