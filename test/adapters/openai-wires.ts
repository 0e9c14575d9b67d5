import type { Model, StreamFn } from "turnloop";
import { type OpenAIOptions, openaiChat, openaiResponses } from "turnloop/openai";
import { calls, chunk, model, sse, text } from "./helpers.js";

export const responsesModel: Model = { id: "gpt-5-test", provider: "openai", api: "openai-responses" };

/** How one API says the same things. */
export interface Wire {
  name: string;
  model: Model;
  make(options: OpenAIOptions): StreamFn;
  text(...parts: string[]): string;
  /** The beginning of a call and of its arguments, behind a text. */
  callBegins: string;
  refusal: string;
  filtered: string;
  /** The last word; without the usage, where that follows. */
  last: string;
}

export const chatWire: Wire = {
  name: "openaiChat",
  model,
  make: openaiChat,
  text,
  callBegins: calls({ index: 0, id: "c", function: { name: "x", arguments: '{"a' } }),
  refusal: sse(chunk({ refusal: "I will " }), chunk({ refusal: "not" }), chunk({}, "stop"), "[DONE]"),
  filtered: sse(chunk({}, "content_filter")),
  last: sse(chunk({}, "stop")),
};

/** Events of a Responses stream, each with its type as the name of the event. */
export function events(...list: { type: string; [field: string]: unknown }[]): string {
  return list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

export const added = (output_index: number, item: object): string => events({ type: "response.output_item.added", output_index, item });
export const itemDone = (output_index: number, item: object): string => events({ type: "response.output_item.done", output_index, item });
export const delta = (kind: string, output_index: number, text: string, more: object = {}): string =>
  events({ type: `response.${kind}.delta`, output_index, content_index: 0, delta: text, ...more });
/** The last event, with the response as it is then. */
export const ends = (status: string, response: object = {}): string =>
  events({ type: `response.${status}`, response: { object: "response", status, ...response } });

export const responsesWire: Wire = {
  name: "openaiResponses",
  model: responsesModel,
  make: openaiResponses,
  text: (...parts) =>
    events({ type: "response.created", response: { status: "in_progress" } }) +
    added(0, { type: "message", id: "msg_1", role: "assistant", content: [] }) +
    parts.map((part) => delta("output_text", 0, part)).join(""),
  callBegins:
    added(1, { type: "function_call", id: "fc_1", call_id: "c", name: "x", arguments: "" }) + delta("function_call_arguments", 1, '{"a'),
  refusal: delta("refusal", 0, "I will ") + delta("refusal", 0, "not") + ends("completed"),
  filtered: ends("incomplete", { incomplete_details: { reason: "content_filter" } }),
  last: ends("completed"),
};
