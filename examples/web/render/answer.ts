/** An answer of the model, while it streams and afterwards. */
import type { AssistantMessage } from "turnloop";
import { el, GrowingText, setText } from "./dom.js";
import { usageLine } from "./format.js";
import { ToolCard } from "./tool-card.js";

type Block = AssistantMessage["content"][number];

interface BlockNode {
  type: Block["type"];
  element: HTMLElement;
  set(block: Block, isLast: boolean): void;
}

export class AnswerNode {
  readonly #label = el("h2", { class: "who" }, "Assistant");
  readonly #footer = el("footer", { class: "usage" });
  readonly element = el("article", { class: "answer", "aria-label": "Assistant" }, this.#label);
  readonly #labelOf: (toolName: string) => string;
  #blocks: BlockNode[] = [];
  /** By the id that each call has in the transcript. */
  readonly cards: { id: string; card: ToolCard }[] = [];

  constructor(labelOf: (toolName: string) => string) {
    this.#labelOf = labelOf;
  }

  stream({ content }: AssistantMessage): void {
    for (const [index, block] of content.entries()) {
      const known = this.#blocks[index];
      const node = known?.type === block.type ? known : this.#create(block, known);
      this.#blocks[index] = node;
      node.set(block, index === content.length - 1);
    }
    for (const extra of this.#blocks.splice(content.length)) extra.element.remove();
  }

  /** The answer as it is stored. */
  finish(message: AssistantMessage): void {
    this.stream(message);
    const failed = message.stopReason === "error" || message.stopReason === "aborted";
    for (const [index, block] of message.content.entries()) {
      if (block.type === "thinking") (this.#blocks[index] as ThoughtNode).end();
      if (block.type !== "toolCall") continue;
      const { card } = this.#blocks[index] as CallNode;
      if (failed) card.setNotMade();
      else this.cards.push({ id: block.id, card });
    }
    const parts = [usageLine(message.usage)];
    if (message.stopReason === "length") parts.push("cut by the output limit");
    if (message.stopReason === "aborted") parts.push("stopped");
    setText(this.#footer, parts.filter((part) => part !== "").join(" · "));
    if (this.#footer.textContent !== "") this.element.append(this.#footer);
    // a turn of calls alone needs no name above it
    this.element.classList.toggle("only-calls", !message.content.some(({ type }) => type === "text"));
  }

  #create(block: Block, replaced: BlockNode | undefined): BlockNode {
    const node =
      block.type === "text" ? new TextNode() : block.type === "thinking" ? new ThoughtNode() : new CallNode(new ToolCard(this.#labelOf));
    if (replaced) replaced.element.replaceWith(node.element);
    else this.element.append(node.element);
    return node;
  }
}

class TextNode implements BlockNode {
  readonly type = "text";
  readonly #text = new GrowingText();
  readonly element = el("div", { class: "prose" }, this.#text.node);

  set(block: Block): void {
    if (block.type === "text") this.#text.set(block.text);
  }
}

/** Open while it is being thought. */
class ThoughtNode implements BlockNode {
  readonly type = "thinking";
  readonly #text = new GrowingText();
  readonly #title = el("summary", {}, "Thinking");
  readonly element = el("details", { class: "thought", open: true }, this.#title, el("div", { class: "prose" }, this.#text.node));

  set(block: Block, isLast: boolean): void {
    if (block.type === "thinking") this.#text.set(block.redacted ? "The provider does not show this thought." : block.thinking);
    if (!isLast) this.end();
  }

  end(): void {
    if (this.#title.textContent === "Thought") return;
    setText(this.#title, "Thought");
    this.element.open = false;
  }
}

class CallNode implements BlockNode {
  readonly type = "toolCall";
  readonly card: ToolCard;
  readonly element: HTMLElement;

  constructor(card: ToolCard) {
    this.card = card;
    this.element = card.element;
  }

  set(block: Block): void {
    if (block.type === "toolCall") this.card.setCall(block);
  }
}
