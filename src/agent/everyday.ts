/** Everyday helpers for hooks and stored transcripts (SPEC 6.6). */
import type { AfterToolCallContext, AfterToolCallResult } from "../config.js";
import { assertAtLeast, misuse, type TurnLoopError } from "../errors.js";
import type { AgentMessage, ImageContent, TextContent } from "../messages.js";

/**
 * A `transformContext` that keeps the last `n` messages, and the first user message. It never separates a call from its
 * results: when the cut falls between them, it keeps more.
 */
export function keepLast(n: number): (messages: AgentMessage[]) => AgentMessage[] {
  assertAtLeast(1, "The count of keepLast", n);
  return (messages) => {
    let start = Math.max(0, messages.length - Math.floor(n));
    if (isLoose(messages, start)) while (start > 0 && messages[start]?.role !== "assistant") start--;
    const kept = messages.slice(start);
    const first = messages.findIndex((message) => message.role === "user");
    return first >= 0 && first < start ? [messages[first] as AgentMessage, ...kept] : kept;
  };
}

/** The first message for the model from here on is a result whose call comes before. */
function isLoose(messages: readonly AgentMessage[], start: number): boolean {
  const next = messages.slice(start).find(({ role }) => role === "user" || role === "assistant" || role === "toolResult");
  return next?.role === "toolResult";
}

/**
 * An `afterToolCall` that cuts a result's text to `chars` UTF-16 units over all its text blocks, and says how much was cut.
 * Images stay; a surrogate pair is never cut.
 */
export function limitToolOutput(chars: number): (call: Pick<AfterToolCallContext, "result">) => AfterToolCallResult | undefined {
  assertAtLeast(0, "The limit of limitToolOutput", chars);
  return ({ result }) => {
    const total = result.content.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0);
    if (total <= chars) return undefined;
    const content: (TextContent | ImageContent)[] = [];
    let left = chars;
    for (const block of result.content) {
      if (block.type !== "text") content.push(block);
      else if (left > 0) {
        const text = cut(block.text, left);
        left = text.length < block.text.length ? 0 : left - text.length;
        if (text !== "") content.push({ ...block, text });
      }
    }
    const kept = content.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0);
    content.push({ type: "text", text: `[${total - kept} of ${total} characters were cut]` });
    return { content };
  };
}

function cut(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, length < text.length && last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/** A stored transcript, given as JSON text or as a value. Throws `invalid_transcript` naming the path of what is wrong; roles of a host's own pass. */
export function parseTranscript(given: unknown): AgentMessage[] {
  let value = given;
  if (typeof given === "string") {
    try {
      value = JSON.parse(given);
    } catch (error) {
      throw invalid("the text", `JSON (${(error as Error).message})`, given);
    }
  }
  if (!Array.isArray(value)) throw invalid("the transcript", "an array of messages", value);
  for (let index = 0; index < value.length; index++) assertMessage(value[index], `[${index}]`);
  return value;
}

type Fields = Record<string, unknown>;

function assertMessage(message: unknown, path: string): void {
  if (!isObject(message)) throw invalid(path, "a message", message);
  const { role, content } = message;
  if (typeof role !== "string" || role === "") throw invalid(`${path}.role`, "a role", role);
  if (role !== "user" && role !== "assistant" && role !== "toolResult") return;
  if (!Number.isFinite(message.timestamp)) throw invalid(`${path}.timestamp`, "Unix milliseconds", message.timestamp);
  if (!Array.isArray(content) && !(role === "user" && typeof content === "string")) {
    throw invalid(`${path}.content`, role === "user" ? "a text or an array of blocks" : "an array of blocks", content);
  }
  if (role === "assistant") {
    for (const field of ["api", "provider", "model"]) expectType(message, field, "string", path);
    const reasons = ["stop", "length", "toolUse", "error", "aborted"];
    if (!reasons.includes(message.stopReason as string))
      throw invalid(`${path}.stopReason`, `one of ${reasons.join(", ")}`, message.stopReason);
    if (!isObject(message.usage)) throw invalid(`${path}.usage`, "an object", message.usage);
  } else if (role === "toolResult") {
    for (const field of ["toolCallId", "toolName"]) expectType(message, field, "string", path);
    expectType(message, "isError", "boolean", path);
  }
  const allowed = role === "assistant" ? ["text", "thinking", "toolCall"] : ["text", "image"];
  if (Array.isArray(content)) content.forEach((block, index) => void assertBlock(block, allowed, `${path}.content[${index}]`));
}

const BLOCK_FIELDS: Record<string, string[]> = {
  text: ["text"],
  thinking: ["thinking"],
  image: ["data", "mimeType"],
  toolCall: ["id", "name"],
};

function assertBlock(block: unknown, allowed: string[], path: string): void {
  if (!isObject(block)) throw invalid(path, "a content block", block);
  if (!allowed.includes(block.type as string)) throw invalid(`${path}.type`, `one of ${allowed.join(", ")}`, block.type);
  for (const field of BLOCK_FIELDS[block.type as string] ?? []) expectType(block, field, "string", path);
  if (block.type === "toolCall" && !isObject(block.arguments)) throw invalid(`${path}.arguments`, "an object", block.arguments);
}

function expectType(fields: Fields, field: string, type: string, path: string): void {
  if (typeof fields[field] !== type) throw invalid(`${path}.${field}`, `a ${type}`, fields[field]);
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(path: string, expected: string, got: unknown): TurnLoopError {
  return misuse(`The transcript cannot be used: ${path}`, expected, got, "invalid_transcript");
}
