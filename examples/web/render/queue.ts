/** What the user has said and the model has not heard yet, as chips that can be taken back. */
import type { AgentMessage } from "turnloop";
import { shortened } from "../../wording.js";
import type { PageState } from "../state.js";
import { button, el, KeyedList } from "./dom.js";
import { imagesOf, textOf } from "./format.js";

export interface QueueActions {
  takeBack(message: AgentMessage): void;
  sendWaiting(): void;
}

export class Queue {
  readonly #element: HTMLElement;
  readonly #list: KeyedList<AgentMessage>;
  readonly #send: HTMLElement;
  readonly #fallback: HTMLElement;
  #steering: ReadonlySet<AgentMessage> = new Set();

  /** `fallback` gets the focus when the chip that had it goes. */
  constructor(element: HTMLElement, { takeBack, sendWaiting }: QueueActions, fallback: HTMLElement) {
    this.#element = element;
    this.#list = new KeyedList(element, (message) => {
      const text = labelOf(message);
      const remove = button("×", () => takeBack(message), { class: "remove", "aria-label": `Take back: ${text}` });
      const kind = el("span", { class: "chip-kind" }, this.#steering.has(message) ? "Next" : "Later");
      return el("li", { class: "chip" }, kind, el("span", { class: "chip-text", title: text }, shortened(text, 60)), remove);
    });
    this.#send = button("Send now", sendWaiting, { class: "small" });
    this.#fallback = fallback;
  }

  update({ view, running }: PageState): void {
    const { steering, followUp } = view.queues;
    const hadFocus = this.#element.contains(document.activeElement);
    this.#steering = new Set(steering);
    this.#list.update([...steering, ...followUp]);
    const isEmpty = steering.length + followUp.length === 0;
    this.#element.hidden = isEmpty;
    if (running || isEmpty) this.#send.remove();
    else if (!this.#send.isConnected) this.#element.after(this.#send);
    if (hadFocus && !this.#element.contains(document.activeElement)) this.#fallback.focus();
  }
}

function labelOf(message: AgentMessage): string {
  const images = imagesOf((message as { content?: unknown }).content).length;
  return [textOf(message).replace(/\s+/g, " "), images > 0 ? `${images} image${images === 1 ? "" : "s"}` : ""].filter(Boolean).join(", ");
}
