/** The few things a screen reader is told unasked. Failures are alerts of their own; the text of answers is read on demand. */
import type { PageState } from "../state.js";
import { byId, setText } from "./dom.js";

export class Announcer {
  readonly #element = byId("announcer");
  #last: PageState | undefined;

  update(state: PageState): void {
    const last = this.#last;
    this.#last = state;
    const text = last && news(last, state);
    if (text) setText(this.#element, text);
  }
}

function news(last: PageState, { running, view, approval }: PageState): string | undefined {
  if (approval && !last.approval) return `${approval.label}: your decision is needed.`;
  if (running && !last.running) return "Working on it.";
  if (!running && last.running) {
    if (view.outcome === "completed") return "The answer is complete.";
    if (view.outcome === "aborted") return "The answer was stopped.";
  }
  const [before, after] = [last, { view }].map(({ view: { queues } }) => queues.steering.length + queues.followUp.length);
  if ((after as number) > (before as number)) return "Your message waits.";
  return undefined;
}
