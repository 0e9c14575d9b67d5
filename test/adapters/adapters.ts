/** The adapters of the shared table: each a row of what it speaks, and how it is made. */
import { createOpenAI } from "@ai-sdk/openai";
import type { Model, StreamFn, StreamOptions } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { anthropicMessages } from "turnloop/anthropic";
import { openaiChat, openaiResponses } from "turnloop/openai";
import { quiet } from "./helpers.js";
import { anthropicWire } from "./wires/anthropic.js";
import { chatWire } from "./wires/chat.js";
import { responsesWire } from "./wires/responses.js";
import type { Wire } from "./wires/wire.js";

export interface Adapter {
  name: string;
  wire: Wire;
  model: Model;
  /** What its provider signs thinking with. */
  proof: string;
  make(baseURL: string): StreamFn;
  options: StreamOptions;
}

const cost = { input: 1, output: 10, cacheRead: 0.5, cacheWrite: 2 };
const row = (name: string, wire: Wire, api: string, provider: string, make: Adapter["make"], options: StreamOptions = {}): Adapter => ({
  ...{ name, wire, model: { id: "m-test", provider, api, cost }, proof: name.replace(/\W/g, "_"), make, options },
});
const openai = (baseURL: string) => createOpenAI({ apiKey: quiet.apiKey, baseURL });
const unstored = { providerOptions: { openai: { store: false } } };

export const adapters: Adapter[] = [
  row("openaiChat", chatWire, "openai-completions", "openai", (baseURL) => openaiChat({ ...quiet, baseURL })),
  row("openaiResponses", responsesWire, "openai-responses", "openai", (baseURL) => openaiResponses({ ...quiet, baseURL })),
  row("anthropicMessages", anthropicWire, "anthropic-messages", "anthropic", (baseURL) => anthropicMessages({ ...quiet, baseURL })),
  row("aiSdk(openai.chat)", chatWire, "ai-sdk", "openai", (baseURL) => aiSdk(openai(baseURL).chat("m-test"))),
  row("aiSdk(openai.responses)", responsesWire, "ai-sdk", "openai", (baseURL) => aiSdk(openai(baseURL).responses("m-test")), unstored),
];
