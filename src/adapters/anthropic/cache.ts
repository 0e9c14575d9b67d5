/** Where the provider's prompt cache may cut a request (SPEC 12.2). */
import type { Turn } from "./request.js";

const MARK = { cache_control: { type: "ephemeral" } };

/** Marks the ends of what stays the same: tools, system prompt, and the conversation so far. Writes to what it is given. */
export function markForCache(system: object[], tools: object[], messages: Turn[]): void {
  for (const end of [system[system.length - 1], tools[tools.length - 1], lastMarkable(messages)]) if (end) Object.assign(end, MARK);
}

/** The last block of the last message; thinking cannot be marked. */
function lastMarkable(messages: Turn[]): object | undefined {
  const { content } = messages[messages.length - 1] ?? { content: [] };
  return content.filter(({ type }) => type !== "thinking" && type !== "redacted_thinking").pop();
}
