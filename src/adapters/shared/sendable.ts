import type { Message } from "../../messages.js";
import { pairToolCalls, toLlmMessages, toWellFormed } from "../../transcript.js";

/** The loop sends this already; a StreamFn called by hand may not. */
export function sendable(messages: readonly Message[]): Message[] {
  return pairToolCalls(toWellFormed(toLlmMessages(messages)));
}
