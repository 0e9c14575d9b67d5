/** The offline model, or a server of the user's. The key stays in this page's memory. */
import { type Endpoint, endpointChoice, type ModelChoice, offlineChoice } from "../models.js";
import type { PageState } from "../state.js";
import { button, byId, el, setText } from "./dom.js";

export class ModelDialog {
  readonly #opener = byId<HTMLButtonElement>("model-button");
  readonly #dialog = byId<HTMLDialogElement>("model");
  readonly #onChoose: (choice: ModelChoice) => void;
  readonly #onRetry: (text: string) => void;
  readonly #fields = {
    baseURL: el("input", {
      id: "base-url",
      type: "url",
      required: true,
      pattern: "https?://.+",
      title: "An address that begins with http:// or https://",
      placeholder: "http://localhost:11434/v1",
    }),
    apiKey: el("input", { id: "api-key", type: "password", autocomplete: "off" }),
    model: el("input", { id: "model-name", type: "text", required: true, autocomplete: "off", placeholder: "qwen3" }),
  };

  constructor(onChoose: (choice: ModelChoice) => void, onRetry: (text: string) => void) {
    this.#onChoose = onChoose;
    this.#onRetry = onRetry;
    this.#opener.addEventListener("click", () => this.#dialog.showModal());
    const form = el(
      "form",
      { method: "dialog" },
      ...field("Base URL", this.#fields.baseURL, "An OpenAI-compatible server that lets this page in (CORS)."),
      ...field("API key", this.#fields.apiKey, "Kept in memory only; empty if the server wants none."),
      ...field("Model", this.#fields.model),
      el(
        "div",
        { class: "buttons" },
        button("Use the offline model", () => this.#choose(offlineChoice())),
        el("span", { class: "space" }),
        button("Cancel", () => this.#dialog.close()),
        el("button", { type: "submit", class: "primary" }, "Use this server"),
      ),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#choose(endpointChoice(this.#endpoint(), this.#onRetry));
    });
    this.#dialog.append(
      el("h2", { id: "model-title" }, "Model"),
      el("p", { class: "muted" }, "The offline model is a small planner in this page. A server gets the conversation and its files."),
      form,
    );
  }

  update({ model: { id, place } }: PageState): void {
    setText(this.#opener, `${id}, ${place}`);
    this.#opener.setAttribute("aria-label", `Model: ${id}, ${place}. Change`);
  }

  #endpoint(): Endpoint {
    const { baseURL, apiKey, model } = this.#fields;
    return { baseURL: baseURL.value.trim(), apiKey: apiKey.value.trim(), model: model.value.trim() };
  }

  #choose(choice: ModelChoice): void {
    this.#dialog.close();
    this.#onChoose(choice);
  }
}

function field(label: string, input: HTMLInputElement, help?: string): HTMLElement[] {
  const note = help === undefined ? [] : [el("p", { id: `${input.id}-help`, class: "muted small-text" }, help)];
  if (help !== undefined) input.setAttribute("aria-describedby", `${input.id}-help`);
  return [el("label", { for: input.id }, label), input, ...note];
}
