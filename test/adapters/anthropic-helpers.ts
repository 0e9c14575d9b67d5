import type { LlmContext, Model, StreamFn, StreamOptions } from "turnloop";
import { ask, hi } from "./helpers.js";

export const claude: Model = { id: "claude-test", provider: "anthropic", api: "anthropic-messages" };

/** One call of a StreamFn for Claude, read to its end. */
export function askClaude(streamFn: StreamFn, options?: StreamOptions, context: LlmContext = hi, to: Model = claude) {
  return ask(streamFn, options, context, to);
}

interface WireEvent {
  type: string;
  [field: string]: unknown;
}

/** Server-sent events as Anthropic names them. */
export function wire(...events: WireEvent[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

export function begin(usage: object = { input_tokens: 10, output_tokens: 1 }, more: object = {}): string {
  const message = { id: "msg_1", type: "message", role: "assistant", content: [], model: "m", stop_reason: null, usage, ...more };
  return wire({ type: "message_start", message });
}

export const start = (index: number, content_block: object): string => wire({ type: "content_block_start", index, content_block });
export const delta = (index: number, of: object): string => wire({ type: "content_block_delta", index, delta: of });
export const stopped = (index: number): string => wire({ type: "content_block_stop", index });

const says = (index: number, text: string): string => delta(index, { type: "text_delta", text });
const inputs = (index: number, partial_json: string): string => delta(index, { type: "input_json_delta", partial_json });
const thinks = (index: number, thinking: string): string => delta(index, { type: "thinking_delta", thinking });
const signs = (index: number, signature: string): string => delta(index, { type: "signature_delta", signature });
export const deltas = { says, inputs, thinks, signs };

/** A block of text in these pieces, not closed. */
export function openText(index: number, ...pieces: string[]): string {
  return start(index, { type: "text", text: "" }) + pieces.map((piece) => says(index, piece)).join("");
}

export function text(index: number, ...pieces: string[]): string {
  return openText(index, ...pieces) + stopped(index);
}

export function thinking(index: number, signature: string, ...pieces: string[]): string {
  const opened = start(index, { type: "thinking", thinking: "", signature: "" }) + pieces.map((piece) => thinks(index, piece)).join("");
  return opened + signs(index, signature) + stopped(index);
}

export function call(index: number, id: string, name: string, ...pieces: string[]): string {
  const opened = start(index, { type: "tool_use", id, name, input: {} }) + inputs(index, "");
  return opened + pieces.map((piece) => inputs(index, piece)).join("") + stopped(index);
}

/** How a stream ends. */
export function end(stop_reason: string | null = "end_turn", usage: object = { output_tokens: 5 }, more: object = {}): string {
  return wire({ type: "message_delta", delta: { stop_reason, stop_sequence: null, ...more }, usage }, { type: "message_stop" });
}

/** A whole answer of one text. */
export const ok = begin() + text(0, "ok") + end();
