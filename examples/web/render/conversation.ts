/** The messages, oldest first. A message's node is made once; what a delta costs does not depend on what came before. */
import type { AgentMessage, AssistantMessage, ToolResultMessage, UserMessage } from "turnloop";
import type { PageState } from "../state.js";
import { AnswerNode } from "./answer.js";
import { el } from "./dom.js";
import { imagesOf, textOf } from "./format.js";
import { figure } from "./images.js";
import type { ToolCard } from "./tool-card.js";

interface Shown {
  message: AgentMessage;
  element?: HTMLElement;
}

export class Conversation {
  readonly #parent: HTMLElement;
  readonly #labelOf: (toolName: string) => string;
  readonly #onReview: () => void;
  #shown: Shown[] = [];
  #streaming: AnswerNode | undefined;
  /** An id may come again in a later turn: its first card is of the first call of that id, and so on. */
  #cards = new Map<string, ToolCard[]>();
  #results = new Map<string, number>();
  /** The cards in the order of the view's `toolCalls`. */
  #started: (ToolCard | undefined)[] = [];
  #startedById = new Map<string, number>();
  #last: PageState | undefined;

  constructor(parent: HTMLElement, labelOf: (toolName: string) => string, onReview: () => void) {
    this.#parent = parent;
    this.#labelOf = labelOf;
    this.#onReview = onReview;
  }

  update(state: PageState, now: number): void {
    const { view } = state;
    const last = this.#last;
    this.#last = state;
    if (view.messages !== last?.view.messages) this.#showMessages(view.messages);
    if (view.streamingMessage !== last?.view.streamingMessage) this.#showStreaming(view.streamingMessage);
    if (view.toolCalls !== last?.view.toolCalls) this.#showCalls(state, last, now);
    if (state.approval !== last?.approval) {
      if (last?.approval) this.#started[last.approval.callIndex]?.setWaiting(undefined);
      if (state.approval) this.#started[state.approval.callIndex]?.setWaiting(this.#onReview);
    }
    if (state.edited !== last?.edited) for (const [index, args] of state.edited) this.#started[index]?.setEdited(args);
  }

  /** Moves the clocks of what runs. */
  tick(now: number): void {
    for (const [index, call] of (this.#last?.view.toolCalls ?? []).entries())
      if (call.status === "running") this.#started[index]?.tick(now);
  }

  #showMessages(messages: readonly AgentMessage[]): void {
    const known = this.#shown.length;
    if (known > messages.length || (known > 0 && this.#shown[known - 1]?.message !== messages[known - 1])) this.#goBackTo(messages);
    for (const message of messages.slice(this.#shown.length)) this.#shown.push({ message, ...this.#append(message) });
  }

  /** Removes what is not in the list any more: a failed answer before it is retried, or everything. */
  #goBackTo(messages: readonly AgentMessage[]): void {
    let same = 0;
    while (same < this.#shown.length && this.#shown[same]?.message === messages[same]) same++;
    for (const { element } of this.#shown.splice(same)) element?.remove();
    if (same > 0) return;
    this.#cards.clear();
    this.#results.clear();
    this.#started = [];
    this.#startedById.clear();
  }

  #append(message: AgentMessage): { element?: HTMLElement } {
    if (message.role === "toolResult") {
      const { toolCallId } = message as ToolResultMessage;
      const nth = next(this.#results, toolCallId);
      this.#cards.get(toolCallId)?.[nth]?.setResult(message as ToolResultMessage);
      return {};
    }
    if (message.role === "user") {
      const element = question(message as UserMessage);
      this.#parent.append(element);
      return { element };
    }
    const node = this.#streaming ?? new AnswerNode(this.#labelOf);
    this.#streaming = undefined;
    // a request that failed at once has nothing to show; the page says so below
    if (!node.element.isConnected && (message as AssistantMessage).content.length > 0) this.#parent.append(node.element);
    node.finish(message as AssistantMessage);
    for (const { id, card } of node.cards) this.#cards.set(id, [...(this.#cards.get(id) ?? []), card]);
    return { element: node.element };
  }

  #showStreaming(message: AssistantMessage | undefined): void {
    if (!message) {
      this.#streaming?.element.remove();
      this.#streaming = undefined;
      return;
    }
    this.#streaming ??= new AnswerNode(this.#labelOf);
    this.#streaming.stream(message);
    if (!this.#streaming.element.isConnected && message.content.length > 0) this.#parent.append(this.#streaming.element);
  }

  #showCalls({ view: { toolCalls } }: PageState, last: PageState | undefined, now: number): void {
    const before = last?.view.toolCalls ?? [];
    for (const [index, call] of toolCalls.entries()) {
      if (call === before[index]) continue;
      if (index === this.#started.length) this.#started.push(this.#cards.get(call.toolCallId)?.[next(this.#startedById, call.toolCallId)]);
      this.#started[index]?.setView(call, now);
    }
  }
}

/** Which one of its id this is, from 0. */
function next(counts: Map<string, number>, id: string): number {
  const nth = counts.get(id) ?? 0;
  counts.set(id, nth + 1);
  return nth;
}

function question(message: UserMessage): HTMLElement {
  const images = imagesOf(message.content).map((image, index) => figure(image, `Attached image ${index + 1}`));
  const text = textOf(message);
  const body = text === "" ? images : [el("div", { class: "prose" }, text), ...images];
  return el("article", { class: "question", "aria-label": "You" }, el("h2", { class: "who" }, "You"), ...body);
}
