/** Messages that come into a run from its host: prompts, steering, follow-ups. */
import { describe, misuse, TurnLoopError } from "../errors.js";
import type { AgentMessage, ImageContent, TextContent } from "../messages.js";
import { copyMessage } from "./snapshot.js";

/** A message for the transcript, and the copy that events show. */
export interface Incoming {
  message: AgentMessage;
  shown: AgentMessage;
}

/** Throws `invalid_argument` for what is not a message. */
export function takeIn(messages: readonly AgentMessage[]): Incoming[] {
  const taken: Incoming[] = [];
  for (const message of messages) {
    let shown: AgentMessage | undefined;
    try {
      if (typeof message?.role === "string") shown = copyMessage(message);
    } catch {
      // content that is no list of blocks
    }
    if (!shown) {
      const index = taken.length;
      throw new TurnLoopError("invalid_argument", `expected messages with a role and content; got ${describe(message)} at index ${index}.`);
    }
    taken.push({ message, shown });
  }
  return taken;
}

/** Throws `no_prompts` unless there is something to say (SPEC 4.3). */
export function assertPrompts(prompts: unknown): asserts prompts is AgentMessage[] {
  if (!Array.isArray(prompts) || prompts.length === 0) {
    throw misuse("The prompts of a run", "a non-empty array of messages", prompts, "no_prompts");
  }
  for (const prompt of prompts) {
    if (typeof prompt?.role !== "string") {
      throw misuse("A prompt", "a message with a role", prompt, "no_prompts");
    }
    if (prompt.role === "user" && isEmpty(prompt.content)) {
      throw misuse("A prompt", "a message with text or an image", prompt, "no_prompts");
    }
  }
}

function isEmpty(content: string | (TextContent | ImageContent)[] | undefined): boolean {
  if (!content) return true;
  return Array.isArray(content) && content.every((block) => block?.type === "text" && block.text === "");
}
