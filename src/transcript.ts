/** From the stored transcript to messages a provider accepts (SPEC 2.4 to 2.7). None of these writes to its argument. */
import type { AgentMessage, AssistantMessage, ImageContent, Message, ToolCall, ToolResultMessage } from "./messages.js";

type AssistantBlock = AssistantMessage["content"][number];

export function isFailed(message: AssistantMessage<string>): boolean {
  return message.stopReason === "error" || message.stopReason === "aborted";
}

export function isToolCall(block: object | undefined): block is ToolCall {
  return (block as ToolCall | undefined)?.type === "toolCall";
}

/** In place of `filter`, whose list has room for 16 more: most answers have one call. */
export function toolCallsOf(content: readonly AssistantBlock[]): ToolCall[] {
  let calls: ToolCall[] = [];
  for (const block of content) if (isToolCall(block)) calls = withItem(calls, block);
  return calls;
}

/** The list, longer by one; the first push of an empty array would make room for 16 more. */
export function withItem<T>(list: T[], item: T): T[] {
  if (list.length === 0) return [item];
  list.push(item);
  return list;
}

/** A copy without the assistant messages at the end that failed or were aborted: what a retry continues from (SPEC 2.4). */
export function dropFailedTail(messages: readonly AgentMessage[]): AgentMessage[] {
  let end = messages.length;
  while (end > 0) {
    const last = messages[end - 1] as AgentMessage;
    if (last.role !== "assistant" || !isFailed(last as AssistantMessage)) break;
    end--;
  }
  return messages.slice(0, end);
}

/** The last answer's calls that have no result, when nothing but results and messages of custom roles follows it (SPEC 15.3). */
export function pendingCalls(messages: readonly AgentMessage[]): { answer: AssistantMessage; calls: ToolCall[] } | undefined {
  const answered: string[] = [];
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i] as AgentMessage;
    if (message?.role === "toolResult") answered.push((message as ToolResultMessage).toolCallId);
    if (message?.role === "user") return undefined;
    if (message?.role !== "assistant") continue;
    const answer = message as AssistantMessage;
    if (isFailed(answer) || !Array.isArray(answer.content)) return undefined;
    const calls = answer.content.filter((block): block is ToolCall => {
      if (!isToolCall(block)) return false;
      const at = answered.lastIndexOf(block.id); // results are read backwards
      if (at >= 0) answered.splice(at, 1);
      return at < 0;
    });
    return calls.length > 0 ? { answer, calls } : undefined;
  }
  return undefined;
}

/** The default `convertToLlm`: drops custom roles, empty answers, and all but the text of failed answers (SPEC 2.5). */
export function toLlmMessages(messages: readonly AgentMessage[]): Message[] {
  const converted: Message[] = [];
  for (const message of messages) {
    const kept = toLlmMessage(message);
    if (kept) converted.push(kept);
  }
  return converted;
}

export function toLlmMessage(message: AgentMessage): Message | undefined {
  if (message?.role === "user" || message?.role === "toolResult") return message as Message;
  if (message?.role !== "assistant") return undefined;
  const answer = message as AssistantMessage;
  if (!Array.isArray(answer.content)) return undefined;
  const content = isFailed(answer) ? answer.content.filter((block) => block.type === "text" && block.text !== "") : answer.content;
  if (content.every(isEmptyBlock)) return undefined;
  return content.length === answer.content.length ? answer : { ...answer, content };
}

/** Nothing a provider would accept as content: an empty text, or empty reasoning with nothing to prove. */
function isEmptyBlock(block: AssistantBlock): boolean {
  if (!block || block.type === "text") return !block?.text;
  return block.type === "thinking" && block.thinking === "" && !block.thinkingSignature && !block.redacted;
}

/**
 * Makes the messages provider-valid: each call has exactly one result, in source order directly after its assistant
 * message. A missing result becomes an error result, a result without a call is dropped, calls inside a failed answer are
 * removed. Returns the same array when nothing needs fixing (SPEC 2.6).
 */
export function pairToolCalls(messages: Message[]): Message[] {
  const pairing = new Pairing();
  for (const message of messages) pairing.add(message);
  const paired = pairing.finish();
  const changed = paired.length !== messages.length || paired.some((message, i) => message !== messages[i]);
  return changed ? paired : messages;
}

/** Pairs message by message, so that a growing transcript is paired in linear time. */
export class Pairing {
  readonly #paired: Message[] = [];
  /** The calls of the last answer, each until its result takes its place. */
  #calls: (ToolCall | ToolResultMessage)[] = [];
  #missing = 0;
  /** User messages that came before all results did. */
  #behind: Message[] = [];
  /** When the open calls were made, for results that have to be made up. */
  #timestamp = 0;

  add(message: Message): void {
    if (message.role === "toolResult") {
      this.#addResult(message);
      return;
    }
    if (message.role === "user") {
      // a result may still come behind it: that of a call which was resumed
      (this.#calls.length > 0 ? this.#behind : this.#paired).push(message);
      return;
    }
    this.finish();
    const calls = toolCallsOf(message.content);
    if (calls.length > 0 && isFailed(message)) {
      const content = message.content.filter((block) => !isToolCall(block));
      if (content.length > 0) this.#paired.push({ ...message, content });
      return;
    }
    this.#paired.push(message);
    this.#calls = calls;
    this.#missing = calls.length;
    this.#timestamp = message.timestamp;
  }

  /** Answers what is still open. Later results of these calls would be dropped. The array grows with the next `add`. */
  finish(): Message[] {
    if (this.#calls.length > 0) {
      for (const call of this.#calls) this.#paired.push(isToolCall(call) ? missingResult(call, this.#timestamp) : call);
      this.#calls = [];
      if (this.#behind.length > 0) for (const message of this.#behind.splice(0)) this.#paired.push(message);
    }
    return this.#paired;
  }

  #addResult(result: ToolResultMessage): void {
    const expected = this.#calls.length - this.#missing;
    let slot = this.#isOpen(expected, result.toolCallId) ? expected : -1;
    for (let i = 0; slot < 0 && i < this.#calls.length; i++) if (this.#isOpen(i, result.toolCallId)) slot = i;
    if (slot < 0) return;
    this.#calls[slot] = result;
    this.#missing--;
    if (this.#missing === 0) this.finish();
  }

  #isOpen(slot: number, toolCallId: string): boolean {
    const call = this.#calls[slot];
    return isToolCall(call) && call.id === toolCallId;
  }
}

function missingResult(call: ToolCall, timestamp: number): ToolResultMessage {
  const text = `No result was recorded for this call of "${call.name}". Do not assume that it ran or that it did not; check before you rely on it.`;
  return { role: "toolResult", toolCallId: call.id, toolName: call.name, content: [{ type: "text", text }], isError: true, timestamp };
}

/** Replaces lone surrogates by U+FFFD in every text, name and argument. Messages without any are returned as they are (SPEC 2.7). */
export function toWellFormed(messages: Message[]): Message[] {
  let fixed: Message[] | undefined;
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i] as Message;
    const well = wellFormedMessage(message);
    if (well !== message) {
      fixed ??= messages.slice();
      fixed[i] = well;
    }
  }
  return fixed ?? messages;
}

export function wellFormedMessage(message: Message): Message {
  const { content, toolCallId, toolName, errorMessage } = message as Partial<ToolResultMessage & AssistantMessage>;
  const named = isWellFormed(toolCallId) && isWellFormed(toolName) && isWellFormed(errorMessage);
  const well = typeof content === "string" ? isWellFormed(content) : (content as AssistantBlock[] | undefined)?.every(isWellFormedBlock);
  if (named && well) return message;
  const { details, ...rest } = message as ToolResultMessage;
  return { ...(fixDeep(rest) as Message), ...(details !== undefined && { details }) };
}

const LONE_SURROGATE = /\p{Surrogate}/gu;

function isWellFormed(text: unknown): boolean {
  if (typeof text !== "string") return true;
  const given = text as { isWellFormed?: () => boolean };
  return given.isWellFormed ? given.isWellFormed() : text.search(LONE_SURROGATE) === -1;
}

function isWellFormedBlock(block: AssistantBlock | ImageContent): boolean {
  for (const key in block) if (key !== "type" && !isWellFormedDeep((block as unknown as Record<string, unknown>)[key])) return false;
  return true;
}

function isWellFormedDeep(value: unknown): boolean {
  if (typeof value === "string") return isWellFormed(value);
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isWellFormedDeep);
  for (const key in value) {
    if (!isWellFormed(key) || !isWellFormedDeep((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}

/** The value itself when all its strings and keys are well-formed, else a fixed copy. */
export function wellFormedDeep<T>(value: T): T {
  return isWellFormedDeep(value) ? value : (fixDeep(value) as T);
}

function fixDeep(value: unknown): unknown {
  if (typeof value === "string") return value.replace(LONE_SURROGATE, "\uFFFD");
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(fixDeep);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [fixDeep(key), fixDeep(item)]));
}
