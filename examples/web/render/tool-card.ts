/** The card of one tool call: what is asked for, how far it is, what came out. */
import type { ToolCall, ToolCallView, ToolResultMessage } from "turnloop";
import type { ProgressDetails } from "../tools/proofread.js";
import { button, el, setAttributes, setText } from "./dom.js";
import { argumentLine, duration, imagesOf, textOf } from "./format.js";
import { figure } from "./images.js";

const LABELS: Record<string, string> = { running: "Running", suspended: "Suspended", completed: "Done", failed: "Failed" };

export class ToolCard {
  readonly #name = el("span", { class: "tool-name" });
  readonly #args = el("span", { class: "tool-args" });
  readonly #status = el("span", { class: "tool-status" }, "Preparing");
  readonly #time = el("span", { class: "tool-time" });
  readonly #head = el("div", { class: "tool-head" }, this.#name, this.#args, this.#status, this.#time);
  readonly element = el("div", { class: "tool", role: "group", "data-status": "preparing" }, this.#head);
  readonly #labelOf: (toolName: string) => string;
  readonly #progress = el("progress", { class: "tool-bar" });
  readonly #progressText = el("span");
  readonly #progressRow = el("div", { class: "tool-progress" }, this.#progress, this.#progressText);
  #call: ToolCall | undefined;
  #view: ToolCallView | undefined;
  #review: HTMLButtonElement | undefined;
  #edited: unknown;

  constructor(labelOf: (toolName: string) => string) {
    this.#labelOf = labelOf;
  }

  /** The call as it streams in, and then as it is stored. */
  setCall(call: ToolCall): void {
    if (call === this.#call) return;
    this.#call = call;
    const label = this.#labelOf(call.name);
    setText(this.#name, label);
    setAttributes(this.element, { "aria-label": `Tool: ${label}` });
    setText(this.#args, argumentLine(call.arguments));
  }

  /** The answer failed before the call could be made. */
  setNotMade(): void {
    this.#show("stopped", "Not made");
  }

  setView(view: ToolCallView, now: number): void {
    if (view === this.#view) return;
    this.#view = view;
    if (!this.#review) this.#show(view.status, LABELS[view.status] as string);
    if (view.status === "running") this.#showProgress(view.progress);
    else this.#progressRow.remove();
    this.tick(now);
  }

  /** `onReview` opens the question again; undefined once it is answered. */
  setWaiting(onReview: (() => void) | undefined): void {
    if (Boolean(onReview) === Boolean(this.#review)) return;
    this.#review?.remove();
    this.#review = onReview && button("Review", onReview, { class: "small primary" });
    if (this.#review) {
      this.#head.append(this.#review);
      this.#show("waiting", "Waits for you");
    } else if (this.#view) this.#show(this.#view.status, LABELS[this.#view.status] as string);
  }

  setEdited(args: unknown): void {
    if (args === this.#edited) return;
    this.#edited = args;
    setText(this.#args, `edited · ${argumentLine(args)}`);
  }

  setResult(result: ToolResultMessage): void {
    const text = textOf(result).trim();
    const [first = ""] = text.split("\n", 1);
    const images = imagesOf(result.content).map((image) => figure(image, `Result of ${this.#labelOf(result.toolName)}`));
    if (text !== "" && text !== first) {
      this.element.append(
        el(
          "details",
          { class: "tool-result", open: result.isError },
          el("summary", {}, first),
          el("pre", { tabindex: "0" }, text.slice(first.length + 1)),
        ),
      );
    } else if (text !== "") this.element.append(el("p", { class: "tool-result" }, text));
    this.element.append(...images);
  }

  tick(now: number): void {
    const { startedAt, endedAt } = this.#view ?? {};
    if (startedAt !== undefined) setText(this.#time, duration((endedAt ?? now) - startedAt));
  }

  #show(status: string, text: string): void {
    this.element.dataset["status"] = status;
    setText(this.#status, text);
  }

  #showProgress(partial: { content?: unknown; details?: Partial<ProgressDetails> } | undefined): void {
    if (!partial) return;
    const { done, total } = partial.details ?? {};
    setAttributes(this.#progress, {
      "aria-label": `${this.#labelOf(this.#view?.toolName ?? "")} progress`,
      max: total === undefined ? undefined : String(total),
      value: done === undefined ? undefined : String(done),
    });
    setText(this.#progressText, textOf(partial as never));
    if (!this.#progressRow.isConnected) this.#head.after(this.#progressRow);
  }
}
