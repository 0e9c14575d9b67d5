/** What a StreamFn is asked in each scenario, and whether it leaves the request alone. */
import { describe } from "../../errors.js";
import type { LlmContext, StreamOptions } from "../../stream.js";
import type { StreamFnScenario } from "./check-message.js";
import { jsonOf, type RecordedCall, terminalOf } from "./record-call.js";

const PROMPTS: Record<StreamFnScenario, string> = {
  text: "Write three sentences about the sea.",
  thinking: "How many primes are there below 30? Think before you answer.",
  calls: "What is the weather in Paris and in Rome? Ask for both at once.",
  length: "Write a long story about the sea.",
  error: "Say hello.",
  hang: "Write a long story about the sea.",
};

/** A fresh request, such that a real model could answer it as the scenario says. */
export function requestFor(scenario: StreamFnScenario): { context: LlmContext; options: StreamOptions } {
  const messages: LlmContext["messages"] = [{ role: "user", content: [{ type: "text", text: PROMPTS[scenario] }], timestamp: 1 }];
  const context: LlmContext = { systemPrompt: "Do as you are told.", messages };
  if (scenario === "calls") {
    const parameters = { type: "object", properties: { city: { type: "string", description: "Its name" } }, required: ["city"] };
    context.tools = [{ name: "weather", description: "The weather in a city", parameters }];
  }
  const options: StreamOptions = scenario === "length" ? { maxTokens: 16 } : scenario === "thinking" ? { reasoning: "low" } : {};
  return { context, options };
}

export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const item of Object.values(value)) deepFreeze(item);
  return value;
}

/** The request after the call against a fresh one. */
export function writtenProblem(context: LlmContext, scenario: StreamFnScenario): string | undefined {
  const path = firstDifference(requestFor(scenario).context, context, "context");
  return path === undefined ? undefined : `SPEC 13.3: the request is not written to; ${path}.`;
}

/** A call with a frozen request against the same one with a request that could be written to. */
export function frozenProblem(usual: RecordedCall, frozen: RecordedCall): string | undefined {
  const [one, other] = [terminalOf(usual), terminalOf(frozen)];
  if (!one || other?.event.type === one.event.type) return undefined;
  const got = frozen.ending === "threw" ? frozen.thrown : (other?.message?.errorMessage ?? "no terminal event");
  return `SPEC 13.3: the request is not written to; with a frozen one the call fails: ${describe(got instanceof Error ? got.message : got)}.`;
}

function firstDifference(before: unknown, after: unknown, path: string): string | undefined {
  if (typeof before !== "object" || before === null || typeof after !== "object" || after === null)
    return jsonOf(before) === jsonOf(after) ? undefined : `${path} was ${describe(before)} and is ${describe(after)}`;
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const step = Array.isArray(before) ? `[${key}]` : `.${key}`;
    const found = firstDifference((before as Record<string, unknown>)[key], (after as Record<string, unknown>)[key], path + step);
    if (found) return found;
  }
  return undefined;
}
