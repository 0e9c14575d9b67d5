/** The final message, and how each scenario must end. */
import { describe } from "../../errors.js";
import type { ModelErrorInfo, ToolCall } from "../../messages.js";
import { nameOf } from "./check-events.js";
import { type Answer, type RecordedCall, terminalOf } from "./record-call.js";

/** An answer a StreamFn is asked for. */
export type StreamFnScenario = "text" | "thinking" | "calls" | "length" | "error" | "hang";

const ERROR_KINDS: Record<ModelErrorInfo["kind"], true> = {
  rate_limit: true,
  overloaded: true,
  auth: true,
  context_overflow: true,
  invalid_request: true,
  network: true,
  timeout: true,
  refusal: true,
  aborted: true,
  unknown: true,
};

/** The message has all its parts, and they are plain data (SPEC 2, 2.1). */
export function messageProblem(record: RecordedCall): string | undefined {
  const terminal = terminalOf(record);
  if (!terminal) return undefined;
  const { event, message } = terminal;
  if (!message) return `SPEC 3: a ${event.type} event has its message in "${event.type === "done" ? "message" : "error"}"; got none.`;
  const found = message.role !== "assistant" ? `role must be "assistant"; got ${describe(message.role)}` : partProblem(message);
  if (found) return `SPEC 2: the final message's ${found}.`;
  const path = notJson(message, "message", []);
  return path === undefined ? undefined : `SPEC 2.1: messages are plain JSON data; ${path}.`;
}

function partProblem(message: Answer): string | undefined {
  for (const key of ["api", "provider", "model", "stopReason"] as const) {
    if (typeof message[key] !== "string" || message[key] === "") return `${key} must be a non-empty string; got ${describe(message[key])}`;
  }
  if (!isCount(message.timestamp)) return `timestamp must be in Unix milliseconds; got ${describe(message.timestamp)}`;
  if (!Array.isArray(message.content)) return `content must be a list of blocks; got ${describe(message.content)}`;
  const wrong = message.content.findIndex((block) => !isBlock(block));
  if (wrong >= 0) return `content[${wrong}] must be a text, a thinking or a toolCall block; got ${describe(message.content[wrong])}`;
  return usageProblem(message.usage);
}

function isBlock(block: unknown): boolean {
  const { type, text, thinking, id, name, arguments: args } = Object(block) as Record<string, unknown>;
  if (type === "toolCall") return typeof id === "string" && typeof name === "string" && typeof args === "object" && args !== null;
  return (type === "text" && typeof text === "string") || (type === "thinking" && typeof thinking === "string");
}

function usageProblem(usage: unknown): string | undefined {
  const { cost, ...counts } = Object(usage) as Record<string, unknown>;
  for (const key of ["input", "output", "cacheRead", "cacheWrite", "totalTokens"]) {
    if (!isCount(counts[key])) return `usage.${key} must be a number from 0; got ${describe(counts[key])}`;
  }
  for (const key of ["input", "output", "cacheRead", "cacheWrite", "total"]) {
    const value: unknown = Object(cost)[key];
    if (!isCount(value)) return `usage.cost.${key} must be a number from 0; got ${describe(value)}`;
  }
  return undefined;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** Where something is that JSON does not keep. Undefined properties are as good as absent. */
function notJson(value: unknown, path: string, above: object[]): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return undefined;
  if (typeof value !== "object") return `${path} is ${describe(value)}, a ${typeof value}`;
  if (above.includes(value)) return `${path} contains itself`;
  const prototype: unknown = Object.getPrototypeOf(value);
  // an object of another realm has another Object.prototype, and that has none
  const plain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!Array.isArray(value) && !plain) return `${path} is an instance of ${Object(prototype).constructor?.name ?? "a class"}`;
  for (const [key, item] of Object.entries(value)) {
    const found = item === undefined ? undefined : notJson(item, `${path}.${key}`, [...above, value]);
    if (found) return found;
  }
  return undefined;
}

const REASONS = { text: "stop", thinking: "stop", calls: "toolUse", length: "length", error: "error", hang: "aborted" } as const;

/** Ends with the scenario's reason, in the event and in the message, with what the scenario is about. */
export function endingProblem(record: RecordedCall, scenario: StreamFnScenario): string | undefined {
  const reason = REASONS[scenario];
  const type = reason === "error" || reason === "aborted" ? "error" : "done";
  const terminal = terminalOf(record);
  if (!terminal) {
    if (record.ending !== "threw") return undefined;
    return `SPEC 13.3: a failure is an error event of the stream, not thrown; this was thrown: ${describe(thrownText(record.thrown))}.`;
  }
  const { at, event, message } = terminal;
  if (event.type !== type || event.reason !== reason) {
    const said = message?.errorMessage === undefined ? "" : `, saying ${describe(message.errorMessage)}`;
    const what = record.aborted ? "an aborted call ends" : `the scenario "${scenario}" ends`;
    return `SPEC 13.3: ${what} in ${type} with the reason "${reason}"; got ${nameOf(record, at)}, reason ${describe(event.reason)}${said}.`;
  }
  if (!message) return undefined;
  if (message.stopReason !== event.reason)
    return `SPEC 3: the reason of ${nameOf(record, at)} is its message's stopReason; got "${reason}" and ${describe(message.stopReason)}.`;
  const problem = type === "error" ? failureProblem(message, reason === "aborted") : contentProblem(message, scenario);
  return problem === undefined ? undefined : `SPEC 13.3: ${problem}.`;
}

function thrownText(thrown: unknown): unknown {
  return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : thrown;
}

function failureProblem({ errorMessage, errorInfo }: Answer, aborted: boolean): string | undefined {
  if (typeof errorMessage !== "string" || errorMessage.trim() === "")
    return `a failed message says why in errorMessage; got ${describe(errorMessage)}`;
  if (errorInfo === undefined) return undefined;
  const { kind, status, retryable, retryAfterMs } = Object(errorInfo) as Record<string, unknown>;
  if (!Object.hasOwn(ERROR_KINDS, String(kind)))
    return `errorInfo.kind is one of ${Object.keys(ERROR_KINDS).join(", ")}; got ${describe(kind)}`;
  if (aborted && kind !== "aborted") return `errorInfo.kind of an aborted call is "aborted"; got ${describe(kind)}`;
  if (typeof retryable !== "boolean") return `errorInfo.retryable is a boolean; got ${describe(retryable)}`;
  if (status !== undefined && !Number.isInteger(status))
    return `errorInfo.status is an integer where there is one; got ${describe(status)}`;
  if (retryAfterMs !== undefined && !isCount(retryAfterMs))
    return `errorInfo.retryAfterMs is a number of milliseconds where there is one; got ${describe(retryAfterMs)}`;
  return undefined;
}

function contentProblem({ content }: Answer, scenario: StreamFnScenario): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const has = (part: "text" | "thinking"): boolean =>
    content.some((block) => typeof Object(block)[part] === "string" && Object(block)[part] !== "");
  if (scenario === "text" && !has("text")) return `the scenario "text" answers with text; got ${describe(content)}`;
  const redacted = content.some((block) => block?.type === "thinking" && block.redacted);
  if (scenario === "thinking" && !has("thinking") && !redacted)
    return `the scenario "thinking" answers with a thinking block; got ${describe(content)}`;
  return scenario === "calls" ? callsProblem(content.filter((block): block is ToolCall => block?.type === "toolCall")) : undefined;
}

function callsProblem(calls: ToolCall[]): string | undefined {
  if (calls.length < 2) return `the scenario "calls" answers with two tool calls or more; got ${calls.length}`;
  for (const call of calls) {
    if (!call.id || !call.name) return `a tool call has an id and a name; got ${describe(call)}`;
    if (typeof call.arguments !== "object" || call.arguments === null || Array.isArray(call.arguments) || call.argumentsError !== undefined)
      return `a tool call's arguments are an object; got ${describe(call.argumentsError ?? call.arguments)}`;
    if (calls.some((other) => other !== call && other.id === call.id))
      return `the calls of an answer have ids of their own; two are ${call.id}`;
  }
  return undefined;
}
