/** The thinking card: a request is on its way and nothing has come yet. */
import type { PageState } from "../state.js";
import { el, setAttributes, setText } from "./dom.js";
import { clock } from "./format.js";

export class WaitingCard {
  readonly #element: HTMLElement;
  readonly #time = el("span", { class: "clock", role: "timer", "aria-label": "Waiting time" });
  readonly #notice = el("span", { class: "muted" });
  #shown: PageState["view"]["thinking"];
  /** When the request was sent. */
  #since = 0;

  constructor(element: HTMLElement) {
    this.#element = element;
    setAttributes(element, { role: "group", "aria-label": "Thinking" });
    element.append(el("span", { class: "pulse", "aria-hidden": "true" }), el("span", {}, "Thinking"), this.#time, this.#notice);
  }

  update({ view: { thinking }, notice = "" }: PageState, now: number): void {
    this.#element.hidden = !thinking;
    setText(this.#notice, notice);
    if (thinking && thinking !== this.#shown) this.#since = now - thinking.elapsedMs;
    this.#shown = thinking;
    this.tick(now);
  }

  tick(now: number): void {
    if (this.#shown) setText(this.#time, clock(now - this.#since));
  }
}
