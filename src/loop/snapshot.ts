/** Copies that make events safe to keep and the transcript safe from whoever writes to them (SPEC 4.8). */
import type {
  AgentMessage,
  AssistantMessage,
  ImageContent,
  StopReason,
  TextContent,
  ToolCall,
  ToolResultMessage,
  UserMessage,
} from "../messages.js";

/** A JSON object. */
export type Json = Record<string, unknown>;
type Content = TextContent | ImageContent;
type AnswerBlock = AssistantMessage["content"][number];

/** Arguments nested deeper are refused: validators and wire clients recurse (SPEC 5.4). */
const MAX_DEPTH = 1000;

const isOwn = Object.prototype.hasOwnProperty;

/**
 * A deep copy of JSON data. Throws on what JSON cannot hold: cycles, bigints, nesting beyond 1,000 levels. Drops undefined
 * and functions. `drop` leaves out keys that could reach a prototype: `proto` those named `__proto__`, `unsafe` also
 * `constructor` and `prototype` holding an object (SPEC 5.7). `size` counts the values copied.
 */
export function copyJson(value: unknown, drop?: "proto" | "unsafe", size?: { values: number }, depth = 0): unknown {
  if (size) size.values++;
  if (typeof value !== "object" || value === null) {
    if (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value))) throw new Error(`${value} is not JSON`);
    return typeof value === "function" || typeof value === "symbol" ? undefined : value;
  }
  if (depth >= MAX_DEPTH) throw new Error(`nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) {
    const copy: unknown[] = value.slice();
    for (let i = 0; i < copy.length; i++) {
      if (size || typeof copy[i] !== "string") copy[i] = copyJson(copy[i], drop, size, depth + 1) ?? null;
    }
    return copy;
  }
  const copy: Record<string, unknown> = {};
  for (const key in value) {
    if (!isOwn.call(value, key)) continue; // in a loop over keys V8 makes this free, not so Object.hasOwn
    const given = (value as Record<string, unknown>)[key];
    const item = !size && (typeof given === "string" || Number.isFinite(given)) ? given : copyJson(given, drop, size, depth + 1);
    if (item === undefined) continue;
    if (key !== "__proto__") {
      if (drop !== "unsafe" || !isUnsafe(key, item)) copy[key] = item;
    } else if (!drop) {
      Object.defineProperty(copy, key, { value: item, enumerable: true, configurable: true, writable: true });
    }
  }
  return copy;
}

function isUnsafe(key: string, item: unknown): boolean {
  return (key === "constructor" || key === "prototype") && typeof item === "object" && item !== null;
}

/** A copy that shares nothing a listener could write to, the host's own `details` aside. */
export function copyMessage<M extends AgentMessage>(message: M, hasExtras = true): M {
  if (message.role === "assistant") return copyAnswer(message as AssistantMessage, hasExtras) as M;
  if (message.role === "user" && !isUserContent((message as UserMessage).content))
    throw new TypeError("content must be a text or a list of blocks");
  if (message.role === "toolResult") return copyResultMessage(message as ToolResultMessage) as M;
  return copyPlain(message);
}

/** As `copyMessage`, of a stored message: one that its host or a hook has made unreadable is shown as it is, for a run comes to its end (SPEC 4.5). */
export function copyStored<M extends AgentMessage>(message: M, hasExtras?: boolean): M {
  try {
    return copyMessage(message, hasExtras);
  } catch {
    return message;
  }
}

function isUserContent(content: unknown): boolean {
  return typeof content === "string" || (Array.isArray(content) && content.every((block) => typeof block === "object" && block !== null));
}

function copyResultMessage(message: ToolResultMessage): ToolResultMessage {
  const copy = { ...message, content: copyContent(message.content) };
  if (copy.usage) copy.usage = copyUsage(copy.usage);
  return copy;
}

export function copyContent(content: readonly Content[]): Content[] {
  const copy = content.slice();
  for (let i = 0; i < copy.length; i++) copy[i] = { ...copy[i] } as Content;
  return copy;
}

/** `hasExtras` false: there is nothing but the fields of SPEC 2. */
export function copyAnswer(message: AssistantMessage, hasExtras = true): AssistantMessage {
  const content = message.content.slice();
  for (let i = 0; i < content.length; i++) content[i] = copyBlock(content[i] as AnswerBlock);
  const copy = { ...message, content, usage: copyUsage(message.usage) };
  if (copy.errorInfo) copy.errorInfo = { ...copy.errorInfo };
  if (hasExtras) copyExtras(copy);
  return copy;
}

/** Fields that a StreamFn added: kept as far as they are JSON, and nobody else's. True if there were any. */
export function copyExtras(message: AssistantMessage): boolean {
  let found = false;
  for (const key in message) {
    const value: unknown = (message as unknown as Json)[key];
    if (typeof value !== "object" || value === null || key === "content" || key === "usage" || key === "errorInfo") continue;
    found = true;
    try {
      (message as unknown as Json)[key] = copyJson(value);
    } catch {
      delete (message as unknown as Json)[key];
    }
  }
  return found;
}

/** A tool's partial result, which the tool may go on writing to. */
export function copyPartial(partial: unknown): unknown {
  if (!isPlainObject(partial)) return partial;
  return Array.isArray(partial.content) ? { ...partial, content: copyContent(partial.content) } : { ...partial };
}

function copyBlock(block: AnswerBlock): AnswerBlock {
  return block?.type === "toolCall" ? copyCall(block) : { ...block };
}

function copyCall(call: ToolCall): ToolCall {
  return { ...call, arguments: copyJson(call.arguments) as ToolCall["arguments"] };
}

export function copyUsage(usage: AssistantMessage["usage"]): AssistantMessage["usage"] {
  return { ...usage, cost: { ...usage?.cost } };
}

/** Any data of a host: plain objects and arrays are copied, cycles kept, everything else is shared. */
export function copyPlain<T>(value: T, seen?: Map<object, unknown>): T {
  if (typeof value !== "object" || value === null) return value;
  const known = seen?.get(value);
  if (known) return known as T;
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    const within = (seen ?? new Map()).set(value, copy);
    for (const item of value) copy.push(copyPlain(item, within));
    return copy as T;
  }
  if (!isPlainObject(value)) return value;
  const copy: Json = Object.getPrototypeOf(value) === null ? Object.assign(Object.create(null), value) : { ...value };
  let within = seen?.set(value, copy);
  for (const key of Object.keys(copy)) {
    if (typeof copy[key] !== "object") continue;
    within ??= new Map().set(value, copy);
    copy[key] = copyPlain(copy[key], within);
  }
  return copy as T;
}

/** Snapshots of one answer while it streams. A delta costs O(blocks): only the block it is about is copied anew. */
export class AnswerSnapshots {
  readonly #timestamp: number | undefined;
  #sources: unknown[] = [];
  #copies: AnswerBlock[] = [];
  /** The same blocks for the transcript, should the answer fail: shown to nobody. */
  kept: AnswerBlock[] = [];
  #calls: { copy: ToolCall["arguments"]; kept: ToolCall["arguments"]; values: number; age: number }[] = [];

  /** `timestamp` replaces the StreamFn's own (SPEC 2.2). */
  constructor(timestamp: number | undefined) {
    this.#timestamp = timestamp;
  }

  /** `changed` is the block the event is about; undefined: all may have. `ended`: it will not change any more. */
  take(partial: AssistantMessage<string>, changed: number | undefined, ended: boolean): AssistantMessage {
    if (changed === undefined) this.#calls = [];
    const source = Array.isArray(partial.content) ? partial.content : [];
    if (this.kept.length > source.length) this.kept.length = source.length;
    const content: AnswerBlock[] = new Array(source.length);
    for (let i = 0; i < source.length; i++) {
      const block = source[i] as AnswerBlock;
      if (i === changed || changed === undefined || this.#sources[i] !== block || !this.#copies[i]) {
        this.#sources[i] = block;
        const copy = this.#copyBlock(block, i, ended);
        this.#copies[i] = copy;
        this.kept[i] = copy.type === "toolCall" ? { ...copy, arguments: this.#calls[i]?.kept ?? {} } : { ...copy };
      }
      content[i] = this.#copies[i] as AnswerBlock;
    }
    const stopReason = isStopReason(partial.stopReason) ? partial.stopReason : "stop";
    const snapshot: AssistantMessage = { ...partial, role: "assistant", content, usage: copyUsage(partial.usage), stopReason };
    if (this.#timestamp !== undefined) snapshot.timestamp = this.#timestamp;
    return snapshot;
  }

  #copyBlock(block: AnswerBlock | undefined, index: number, ended: boolean): AnswerBlock {
    if (!block) return { type: "text", text: "" };
    return block.type === "toolCall" ? { ...block, arguments: this.#copyArguments(block.arguments, index, ended) } : { ...block };
  }

  /** Growing arguments are copied again only after as many deltas as the last copy had values by 8: amortised constant cost. */
  #copyArguments(source: unknown, index: number, ended: boolean): ToolCall["arguments"] {
    const last = this.#calls[index];
    if (last && !ended && ++last.age <= last.values >> 3) return last.copy;
    const size = { values: 0 };
    const copy = copyArguments(source, size);
    this.#calls[index] = { copy, kept: copyArguments(copy), values: size.values, age: 0 };
    return copy;
  }
}

/** Arguments as far as they can be shown. */
export function copyArguments(source: unknown, size?: { values: number }): ToolCall["arguments"] {
  try {
    const copy = copyJson(source, undefined, size);
    if (typeof copy === "object" && copy !== null && !Array.isArray(copy)) return copy as ToolCall["arguments"];
  } catch {
    // what JSON cannot hold is for the final message to refuse
  }
  return {};
}

export function isStopReason(reason: unknown): reason is StopReason {
  return reason === "stop" || reason === "toolUse" || reason === "length" || reason === "error" || reason === "aborted";
}

/** An object that is neither an array nor an instance of a class. */
export function isPlainObject(value: unknown): value is Json {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
