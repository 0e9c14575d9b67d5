import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent } from "../../stream.js";
import type { Block } from "./request.js";

/** A content block as it begins; blocks of the provider's own tools have more fields. */
export interface ContentBlock {
  type: string;
  text?: string;
  thinking?: string;
  signature?: string;
  data?: string;
  id?: string;
  name?: string;
  input?: unknown;
  citations?: unknown[] | null;
}

export interface BlockDelta {
  type?: string;
  text?: string;
  thinking?: string;
  signature?: string;
  partial_json?: string;
  citation?: unknown;
}

/** One block of a response: what is to be shown of it, and what it is as a whole. */
export class BlockLane {
  readonly index: number | undefined;
  closed = false;
  readonly #start: ContentBlock;
  /** All of its text, thinking or JSON, unless it is a call, which never goes back while its answer is not finished. */
  #text = "";
  /** What was not shown of it yet. */
  #held = "";
  #empty = true;
  #signature: string | undefined;
  #signatureShown = true;
  readonly #citations: unknown[] = [];
  #begun = false;

  constructor(index: number | undefined, start: ContentBlock) {
    this.index = index;
    this.#start = start;
    this.#write(start.text ?? start.thinking ?? "");
    this.#sign(start.signature || start.data);
  }

  add(delta: BlockDelta): void {
    this.#write(delta.text ?? delta.thinking ?? delta.partial_json ?? "");
    this.#sign(delta.signature);
    if (delta.citation) this.#citations.push(delta.citation);
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    // some servers send the input of a call whole, at its start
    const { type, input } = this.#start;
    if (type === "tool_use" && this.#empty && Object.keys(Object(input)).length > 0) this.#write(JSON.stringify(input));
  }

  /** What came since the last time. */
  show(builder: AssistantMessageBuilder): AssistantMessageEvent[] {
    const held = this.#held;
    this.#held = "";
    const { type, id = "", name = "" } = this.#start;
    if (type === "text") return builder.text(held);
    if (type === "tool_use") {
      const start = this.#begun ? [] : builder.toolCallStart(id, name);
      this.#begun = true;
      return held === "" ? start : [...start, ...builder.toolCallDelta(held)];
    }
    if (type !== "thinking" && type !== "redacted_thinking") return []; // the provider's own tools
    const signature = this.#signatureShown ? undefined : this.#signature;
    this.#signatureShown = true;
    return held === "" && signature === undefined ? [] : builder.thinking(held, signature, type === "redacted_thinking");
  }

  /** The block as it goes back to the provider while its answer is not finished. */
  whole(): Block {
    const { type } = this.#start;
    const block: Record<string, unknown> = { ...this.#start };
    if (type === "text") block["text"] = this.#text;
    if (this.#citations.length > 0) block["citations"] = [...(this.#start.citations ?? []), ...this.#citations];
    if (type === "thinking") Object.assign(block, { thinking: this.#text, signature: this.#signature ?? "" });
    if (type !== "text" && type !== "thinking" && this.#text !== "") block["input"] = JSON.parse(this.#text);
    return block as unknown as Block;
  }

  #write(text: string): void {
    if (text === "") return;
    this.#empty = false;
    if (this.#start.type !== "tool_use") this.#text += text;
    this.#held += text;
  }

  #sign(signature: string | undefined): void {
    if (!signature) return;
    this.#signature = signature;
    this.#signatureShown = false;
  }
}
