/** How the last run ended, where that is not what the user wanted, and the way to go on. */
import { type AssistantMessage, dropFailedTail } from "turnloop";
import type { PageState } from "../state.js";
import { button, el } from "./dom.js";

const WORDS: Record<string, string> = {
  auth: "The server refused the key.",
  rate_limit: "The server asks to slow down.",
  overloaded: "The server is overloaded.",
  context_overflow: "The conversation is too long for this model.",
  network: "No answer came. Is the address right, and does the server let this page in (CORS)?",
  timeout: "The server did not answer in time.",
  refusal: "The model refused to answer.",
};

export class Ending {
  readonly #parent: HTMLElement;
  readonly #onRetry: () => void;
  #shown: { outcome: unknown; running: boolean; notice: unknown } | undefined;

  constructor(parent: HTMLElement, onRetry: () => void) {
    this.#parent = parent;
    this.#onRetry = onRetry;
  }

  update(state: PageState): void {
    const { running, notice, view } = state;
    const last = this.#shown;
    if (last?.outcome === view.outcome && last?.running === running && last?.notice === notice) return;
    this.#shown = { outcome: view.outcome, running, notice };
    const box = running ? undefined : boxFor(state);
    if (box && canRetry(state)) box.append(button("Try again", this.#onRetry, { class: "small primary" }));
    this.#parent.replaceChildren(...(box ? [box] : []));
  }
}

function boxFor({ view: { outcome, error, messages }, notice }: PageState): HTMLElement | undefined {
  if (outcome === "aborted") return el("div", { class: "ending" }, el("p", {}, "You stopped this answer."));
  if (outcome === "error") {
    const kind = error?.info?.kind ?? "";
    const hasBegun = ((messages.at(-1) as AssistantMessage | undefined)?.content.length ?? 0) > 0;
    const explained = kind === "network" && hasBegun ? "The answer broke off." : (WORDS[kind] ?? "The answer failed.");
    const lines = [explained, error?.message ?? ""].filter((line) => line !== "");
    return el(
      "div",
      { class: "ending failed", role: "alert" },
      ...lines.map((line, index) => el("p", { class: index > 0 && "muted small-text" }, line)),
    );
  }
  return notice === undefined ? undefined : el("div", { class: "ending", role: "alert" }, el("p", {}, notice));
}

/** There is something to answer once the failed answer is gone. */
function canRetry({ view: { messages, outcome } }: PageState): boolean {
  if (outcome !== "error" && outcome !== "aborted") return false;
  const tail = dropFailedTail(messages.slice(-3)).at(-1);
  return tail !== undefined && tail.role !== "assistant";
}
