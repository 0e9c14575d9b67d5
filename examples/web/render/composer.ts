/** Where the user writes. While an answer is on, what is sent steers it, or waits for later. */
import type { ImageContent } from "turnloop";
import type { PageState } from "../state.js";
import { Attachments } from "./attachments.js";
import { byId, setAttributes, setText } from "./dom.js";

export interface ComposerActions {
  send(text: string, images: ImageContent[]): void;
  later(text: string, images: ImageContent[]): void;
  stop(): void;
}

const IDLE_HINT = "Enter sends, Shift+Enter begins a new line";
const RUNNING_HINT = "Enter steers this answer, Ctrl+Enter asks when it is complete, Esc stops it";

export class Composer {
  readonly text = byId<HTMLTextAreaElement>("text");
  readonly #send = byId<HTMLButtonElement>("send");
  readonly #later = byId<HTMLButtonElement>("later");
  readonly #stop = byId<HTMLButtonElement>("stop");
  readonly #hint = byId("hint");
  readonly #attachments = new Attachments(this.text);
  readonly #actions: ComposerActions;
  #running = false;

  constructor(actions: ComposerActions) {
    this.#actions = actions;
    byId<HTMLFormElement>("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit("send");
    });
    this.#later.addEventListener("click", () => this.#submit("later"));
    this.#stop.addEventListener("click", () => actions.stop());
    this.text.addEventListener("keydown", (event) => this.#onKey(event));
    this.text.addEventListener("input", () => this.#fit());
    this.#showRunning();
  }

  update({ running }: PageState): void {
    if (running === this.#running) return;
    this.#running = running;
    this.#showRunning();
  }

  #onKey(event: KeyboardEvent): void {
    // Enter also ends the composition of a character
    if (event.isComposing) return;
    if (event.key === "Escape" && this.#running) return this.#actions.stop();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    this.#submit(event.ctrlKey || event.metaKey ? "later" : "send");
  }

  #submit(how: "send" | "later"): void {
    const text = this.text.value.trim();
    const images = this.#attachments.images;
    if (text === "" && images.length === 0) return this.text.focus();
    this.text.value = "";
    this.#attachments.clear();
    this.#fit();
    this.text.focus();
    this.#actions[how](text, images);
  }

  #showRunning(): void {
    const running = this.#running;
    // a button that goes must not take the focus with it
    if (!running && [this.#stop, this.#later].includes(document.activeElement as HTMLButtonElement)) this.text.focus();
    this.#stop.hidden = !running;
    this.#later.hidden = !running;
    setText(this.#send, running ? "Steer" : "Send");
    setText(this.#hint, running ? RUNNING_HINT : IDLE_HINT);
    setAttributes(this.text, { placeholder: running ? "Say something to the running answer" : "Ask something" });
  }

  #fit(): void {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, 200)}px`;
  }
}
