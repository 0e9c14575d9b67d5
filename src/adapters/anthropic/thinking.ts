/** From `reasoning` to a thinking budget (SPEC 12.2). */
import type Anthropic from "@anthropic-ai/sdk";
import type { StreamOptions } from "../../stream.js";
import type { Turn } from "./request.js";

/** The tokens a model may think for. */
const BUDGETS: Record<NonNullable<StreamOptions["reasoning"]>, number> = {
  minimal: 1024,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
};

/** The smallest budget the API accepts. It has to lie below `max_tokens`, which counts thinking too. */
const MIN_BUDGET = 1024;

/**
 * A budget of at most three quarters of `maxTokens`, so that something is left for the answer. None where the API would
 * refuse to think: no room, a forced tool call, the middle of a tool loop that began without thinking.
 */
export function thinkingFor(
  reasoning: StreamOptions["reasoning"],
  maxTokens: unknown,
  toolChoice: unknown,
  messages: readonly Turn[],
): Anthropic.ThinkingConfigEnabled | undefined {
  const wanted = reasoning && BUDGETS[reasoning];
  if (!wanted || typeof maxTokens !== "number" || maxTokens <= MIN_BUDGET) return undefined;
  const { type } = Object(toolChoice) as { type?: unknown };
  if (type === "any" || type === "tool" || inUnthinkingLoop(messages)) return undefined;
  return { type: "enabled", budget_tokens: Math.max(MIN_BUDGET, Math.min(wanted, Math.floor(maxTokens * 0.75))) };
}

/** The calls that are being answered belong to an answer whose first message did not begin with thinking. */
function inUnthinkingLoop(messages: readonly Turn[]): boolean {
  let first: string | undefined;
  for (let i = messages.length - 1; i >= 0; i--) {
    const { role, content } = messages[i] as Turn;
    if (role === "assistant") first = content[0]?.type;
    else if (!content.some(({ type }) => type === "tool_result")) break;
  }
  return first !== undefined && first !== "thinking" && first !== "redacted_thinking";
}
