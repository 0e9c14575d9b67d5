/** What each turn cost, as the provider reported it. */
import { type AgentMessage, type AssistantMessage, sumUsage, type Usage } from "turnloop";
import type { PageState } from "../state.js";
import { byId, el, KeyedList } from "./dom.js";
import { count } from "./format.js";

export class UsageTable {
  readonly #table = byId("usage");
  readonly #none = byId("no-usage");
  readonly #sum = byId("usage-sum");
  readonly #rows: KeyedList<AgentMessage>;
  #messages: readonly AgentMessage[] = [];
  #turns = new Map<AgentMessage, number>();

  constructor() {
    this.#rows = new KeyedList(byId("usage-rows"), (message) => {
      const row = el("tr");
      row.append(el("th", { scope: "row" }, String(this.#turns.get(message))), ...cells((message as AssistantMessage).usage));
      return row;
    });
  }

  update({ view: { messages }, running }: PageState): void {
    if (messages !== this.#messages) this.#show(messages);
    this.#none.hidden = running || messages.length === 0 || !this.#table.hidden;
  }

  #show(messages: readonly AgentMessage[]): void {
    this.#messages = messages;
    const answers = messages.filter(({ role }) => role === "assistant");
    this.#turns = new Map(answers.map((answer, index) => [answer, index + 1]));
    this.#rows.update(answers);
    const sum = sumUsage(messages);
    this.#table.hidden = sum.totalTokens === 0;
    this.#sum.replaceChildren(el("th", { scope: "row" }, "All"), ...cells(sum));
  }
}

function cells({ input, output, cacheRead, cacheWrite, cost, totalTokens }: Usage): HTMLElement[] {
  if (!(totalTokens > 0)) return ["–", "–", "–"].map((text) => el("td", { title: "Not reported" }, text));
  const money = cost?.total > 0 ? `$${cost.total.toFixed(4)}` : "–";
  return [count(input + cacheRead + cacheWrite), count(output), money].map((text) => el("td", {}, text));
}
