/** Ready-made answers to `shouldStopAfterTurn` (SPEC 6.5). A stopped run is an ordinary end that can be continued. */
import type { AgentLoopConfig } from "../config.js";
import { misuse } from "../errors.js";
import { type AgentMessage, type AssistantMessage, sumUsage, type ToolResultMessage } from "../messages.js";
import { isToolCall } from "../transcript.js";

export type StopCondition = NonNullable<AgentLoopConfig["shouldStopAfterTurn"]>;

/** After `n` turns of the run. */
export function stopAfterTurns(n: number): StopCondition {
  assertCount("stopAfterTurns", n);
  return ({ turn }) => turn >= n;
}

/** After a turn in which the tool was called. */
export function stopOnToolCall(name: string): StopCondition {
  return ({ message }) => message.content.some((block) => block.type === "toolCall" && block.name === name);
}

/** Once the run's answers and tool results have used `n` tokens. */
export function stopOnTokens(n: number): StopCondition {
  assertCount("stopOnTokens", n);
  return ({ newMessages }) => sumUsage(newMessages).totalTokens >= n;
}

/**
 * After a call that was made `n` times in a row with the same name, the same arguments and the same result. A call whose
 * result changes, as in polling, does not count.
 */
export function stopOnRepeatedToolCall(n: number): StopCondition {
  assertCount("stopOnRepeatedToolCall", n);
  return ({ newMessages }) => {
    const calls = lastCalls(newMessages, n);
    return calls.length === n && calls.every((call) => call === calls[0]);
  };
}

/** When one of the conditions says so; they are asked in order. */
export function anyOf(...conditions: StopCondition[]): StopCondition {
  return async (turn) => {
    for (const condition of conditions) if (await condition(turn)) return true;
    return false;
  };
}

/** The last calls with their results, the newest first, each as one text. */
function lastCalls(messages: readonly AgentMessage[], n: number): string[] {
  const calls: string[] = [];
  let results: ToolResultMessage[] = [];
  for (let i = messages.length - 1; i >= 0 && calls.length < n; i--) {
    const message = messages[i] as AgentMessage;
    if (message.role === "toolResult") results.unshift(message as ToolResultMessage);
    if (message.role !== "assistant") continue;
    const made = (message as AssistantMessage).content.filter(isToolCall);
    for (let c = made.length - 1; c >= 0 && calls.length < n; c--) {
      const { name, arguments: args } = made[c] as (typeof made)[number];
      const { content, isError } = results[c] ?? {};
      calls.push(JSON.stringify([name, sorted(args), content, isError]));
    }
    results = [];
  }
  return calls;
}

/** The same arguments, in whatever order the model wrote them. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => [key, sorted(item)]);
}

function assertCount(name: string, n: unknown): void {
  if (Number.isInteger(n) && (n as number) >= 1) return;
  throw misuse(`The count of ${name}`, "a whole number of at least 1", n);
}
