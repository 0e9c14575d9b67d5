/** Where the provider's prompt cache may cut a request (SPEC 12.2). */
import type { Turn } from "./request.js";

const MARK = { cache_control: { type: "ephemeral" } };

/** Marks the ends of what stays the same: tools, system prompt, and the conversation so far. Writes to what it is given. */
export function markForCache(system: object[], tools: object[], messages: Turn[]): void {
  const last = messages[messages.length - 1]?.content; // thinking cannot be marked, and is never last
  for (const blocks of [system, tools, last]) if (blocks?.length) Object.assign(blocks[blocks.length - 1] as object, MARK);
}
