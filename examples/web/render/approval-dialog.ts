/** Asks the user about a call: allow it, change its arguments first, or refuse it and say why. */
import type { Approval, PageState } from "../state.js";
import { button, byId, el } from "./dom.js";

export class ApprovalDialog {
  readonly #dialog = byId<HTMLDialogElement>("approval");
  #approval: Approval | undefined;

  constructor() {
    this.#dialog.addEventListener("submit", (event) => event.preventDefault());
  }

  update({ approval }: PageState): void {
    if (approval === this.#approval) return;
    this.#approval = approval;
    if (approval) this.#ask(approval);
    else this.#dialog.close();
  }

  /** Escape puts the question aside; this brings it back. */
  readonly reopen = (): void => {
    if (!this.#dialog.open && this.#approval) this.#open();
  };

  #ask({ label, args, decide }: Approval): void {
    const title = el("h2", { id: "approval-title", tabindex: "-1" }, `${label}?`);
    const fields = Object.entries(args).map(([name, value]) => new ArgumentField(name, value));
    const reason = el("input", { id: "approval-reason", type: "text", autocomplete: "off", placeholder: "The model reads it" });
    const problem = el("p", { class: "problem", role: "alert" });
    const allow = (): void => {
      const wrong = fields.filter((field) => field.problem !== undefined);
      problem.textContent = wrong.map((field) => field.problem).join(" ");
      if (wrong.length > 0) return wrong[0]?.input.focus();
      decide({
        allow: true,
        args: Object.fromEntries(fields.map(({ name, value }) => [name, value])),
        edited: fields.some((field) => field.edited),
      });
    };
    const deny = (): void => decide({ allow: false, reason: reason.value.trim() });
    reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) deny();
    });
    this.#dialog.replaceChildren(
      title,
      el("p", { class: "muted" }, "The model asks for this. You may change what it wrote before you allow it."),
      ...fields.map(({ element }) => element),
      el("label", { for: reason.id }, "Reason for refusing (optional)"),
      reason,
      problem,
      el("div", { class: "buttons" }, button("Deny", deny), button("Allow", allow, { class: "primary" })),
    );
    this.#open();
  }

  /** The focus goes to the title: a key meant for the message must not answer the question. */
  #open(): void {
    this.#dialog.showModal();
    this.#dialog.querySelector("h2")?.focus();
  }
}

/** Reorders, hides or controls text: with it a file can seem to have another name. */
const UNSEEN = /[\p{Cf}\p{Cc}]/gu;
/** Also what joins and parts letters and emoji. */
const SEEN = ["\n", "\r", "\t", "\u200c", "\u200d"];

function unseenIn(text: string): string {
  const found = new Set([...text.matchAll(UNSEEN)].map(([character]) => character).filter((character) => !SEEN.includes(character)));
  return [...found].map((character) => `\\u${character.codePointAt(0)?.toString(16).padStart(4, "0")}`).join(" ");
}

/** One argument: a text as it is, anything else as JSON. */
class ArgumentField {
  readonly name: string;
  readonly #original: unknown;
  /** A textarea has line ends of its own: only what differs from this was edited. */
  readonly #shown: string;
  readonly input: HTMLTextAreaElement;
  readonly element: HTMLElement;

  constructor(name: string, original: unknown) {
    this.name = name;
    this.#original = original;
    const text = typeof original === "string" ? original : JSON.stringify(original, null, 2);
    const rows = String(Math.min(8, text.replace(/\n$/, "").split("\n").length));
    this.input = el("textarea", { id: `argument-${name}`, rows, spellcheck: "false" });
    this.input.value = text;
    this.#shown = this.input.value;
    this.element = el("div", { class: "argument" }, el("label", { for: this.input.id }, name), this.input);
    const unseen = unseenIn(text);
    if (unseen !== "")
      this.element.append(el("p", { class: "problem small-text" }, `${name} has characters that cannot be seen: ${unseen}`));
  }

  get problem(): string | undefined {
    try {
      this.value;
      return undefined;
    } catch (error) {
      return `${this.name} must be JSON: ${(error as Error).message}`;
    }
  }

  get value(): unknown {
    if (!this.edited) return this.#original;
    return typeof this.#original === "string" ? this.input.value : JSON.parse(this.input.value);
  }

  get edited(): boolean {
    return this.input.value !== this.#shown;
  }
}
