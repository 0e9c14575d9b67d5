/** The final message of a model call, made safe before anyone sees it (SPEC 2.3, 5.4, 7.3). */
import { describe, errorText } from "../errors.js";
import { argumentsErrorText } from "../message-builder.js";
import { type AssistantMessage, type ModelErrorInfo, sumUsage, type TextContent, type ToolCall, type Usage } from "../messages.js";
import { parseObject } from "../partial-json.js";
import { isToolCall, wellFormedDeep } from "../transcript.js";
import type { Run } from "./run.js";
import { copyExtras, copyJson, copyUsage, isStopReason } from "./snapshot.js";

type AnswerBlock = AssistantMessage["content"][number];

/** Why a call ended other than by the model's own `done`. */
export interface Failure {
  stopReason: "error" | "aborted";
  errorMessage: string;
  errorInfo?: ModelErrorInfo;
}

/**
 * A message of the loop's own from what a StreamFn gave: its shape made sure, ids unique, arguments objects, the stop
 * reason one of five. `timestamp` replaces the StreamFn's own (SPEC 2.2).
 */
export function finalAnswer(run: Run, given: object, timestamp: number | undefined, failure?: Failure): AssistantMessage {
  const source = given as Partial<AssistantMessage<string>>;
  const content = finalContent(source.content, run.turn);
  const { model } = run;
  const message: AssistantMessage = {
    ...source,
    role: "assistant",
    content,
    api: source.api ?? model.api ?? "unknown",
    provider: source.provider ?? model.provider,
    model: source.model ?? model.id,
    usage: wholeUsage(source.usage),
    timestamp: timestamp ?? (typeof source.timestamp === "number" ? source.timestamp : Date.now()),
    stopReason: "stop",
  };
  if (source.errorInfo) message.errorInfo = { ...source.errorInfo };
  if (copyExtras(message)) run.hasExtras = true;
  if (failure) return Object.assign(message, failure);
  if (isStopReason(source.stopReason)) message.stopReason = source.stopReason;
  else {
    message.stopReason = content.some(isToolCall) ? "toolUse" : "stop";
    if (source.stopReason !== undefined) message.rawStopReason = String(source.stopReason);
  }
  return message;
}

/** A copy with every count a number, whatever the provider left out. */
function wholeUsage(given: Partial<Usage> | undefined): Usage {
  if (isWhole(given, given?.totalTokens) && isWhole(given?.cost, given?.cost?.total)) return copyUsage(given as Usage);
  return { ...given, ...sumUsage([{ role: "assistant", usage: given } as AssistantMessage]) };
}

function isWhole(counts: Partial<Usage | Usage["cost"]> | undefined, total: unknown): boolean {
  const finite = Number.isFinite;
  return finite(total) && finite(counts?.input) && finite(counts?.output) && finite(counts?.cacheRead) && finite(counts?.cacheWrite);
}

function finalContent(given: unknown, turn: number): AnswerBlock[] {
  if (typeof given === "string") return given === "" ? [] : [{ type: "text", text: given }];
  if (!Array.isArray(given)) return [];
  const content: AnswerBlock[] = given.every(isObject) ? given.slice() : given.filter(isObject);
  for (let i = 0; i < content.length; i++) content[i] = finalBlock(content[i] as AnswerBlock);
  makeIdsUnique(content, turn);
  return content;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function finalBlock(block: AnswerBlock): AnswerBlock {
  if (block.type === "toolCall") return safeCall(block);
  const copy = { ...block };
  if (copy.type === "text" && typeof copy.text !== "string")
    (copy as TextContent).text = copy.text === undefined || copy.text === null ? "" : describe(copy.text);
  return copy;
}

function safeCall(given: ToolCall): ToolCall {
  const source: unknown = given.arguments;
  let copy: unknown;
  let argumentsError: string | undefined;
  try {
    const isAbsent = source === undefined || source === null || (typeof source === "string" && source.trim() === "");
    const value = isAbsent ? {} : typeof source === "string" ? parseObject(source) : source;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) copy = copyJson(value);
    else argumentsError = argumentsErrorText(source);
  } catch (error) {
    argumentsError = `The tool call's arguments cannot be used: ${placeOfNonJson(source)}${errorText(error)}. Send the call again with plain JSON.`;
  }
  const name = typeof given.name === "string" ? given.name : "";
  if (argumentsError) return { ...given, name, arguments: {}, argumentsError };
  return { ...given, name, arguments: copy as ToolCall["arguments"] };
}

/** The keys down to the first number or bigint that JSON cannot hold, as `a.b: `; empty when there is none to be found. */
function placeOfNonJson(value: unknown, depth = 0): string {
  try {
    for (const [key, item] of depth > 100 ? [] : Object.entries(Object(value))) {
      if (typeof item === "bigint" || (typeof item === "number" && !Number.isFinite(item))) return `${key}: `;
      const place = typeof item === "object" ? placeOfNonJson(item, depth + 1) : "";
      if (place) return `${key}.${place}`;
    }
  } catch {
    // a getter that throws
  }
  return "";
}

/** An empty id becomes `call_<turn>_<index>`; a repeated one gets a suffix, the first keeps its own. */
function makeIdsUnique(content: AnswerBlock[], turn: number): void {
  const own = content.length > 1 ? new Set<string>() : undefined; // the id of an only call costs no set
  const again: ToolCall[] = [];
  let index = 0;
  for (const call of content) {
    if (!isToolCall(call)) continue;
    const id: unknown = call.id;
    const given = typeof id === "number" ? String(id) : id;
    const isGiven = typeof given === "string" && given.trim() !== "";
    call.id = isGiven ? wellFormedDeep(given) : `call_${turn}_${index}`;
    if (!isGiven || own?.add(call.id).size === index - again.length) again.push(call);
    index++;
  }
  for (const call of again) {
    const base = call.id;
    for (let suffix = 2; own?.has(call.id); suffix++) call.id = `${base}_${suffix}`;
    own?.add(call.id);
  }
}
