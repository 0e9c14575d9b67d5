import type { AgentMessage } from "./messages.js";

/** Stable names of the errors a host can act on (SPEC 4.3, 4.10, 14.4). */
export type TurnLoopErrorCode =
  | "no_prompts"
  | "empty_context"
  | "cannot_continue_from_assistant"
  | "duplicate_tool"
  | "invalid_tool"
  | "no_stream_fn"
  | "invalid_argument"
  | "sink_failed";

const BRAND = Symbol.for("turnloop.TurnLoopError");

/** The one error class of this library. Tell errors apart by `code`, never by their text. */
export class TurnLoopError extends Error {
  readonly code: TurnLoopErrorCode;
  /** With `sink_failed`: the new messages of the run up to its end. */
  readonly messages?: AgentMessage[];

  constructor(code: TurnLoopErrorCode, message: string, options?: { cause?: unknown; messages?: AgentMessage[] }) {
    super(message, options && "cause" in options ? { cause: options.cause } : undefined);
    this.name = "TurnLoopError";
    this.code = code;
    if (options?.messages) this.messages = options.messages;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** True for a TurnLoopError of any copy of this package, where `instanceof` would miss one of another copy. */
  static is(error: unknown): error is TurnLoopError {
    return typeof error === "object" && error !== null && (error as Record<symbol, unknown>)[BRAND] === true;
  }
}

/**
 * A non-empty text for anything that can be thrown or given as an abort reason: an Error, a string, a Symbol, undefined,
 * an object without prototype, an Error whose `message` getter throws (SPEC 5.11, 7.6). Never throws.
 */
export function errorText(thrown: unknown): string {
  try {
    if (typeof thrown === "object" && thrown !== null) {
      const { message, name } = thrown as { message?: unknown; name?: unknown };
      for (const text of [message, name]) if (typeof text === "string" && text.trim() !== "") return text;
      return describe(thrown);
    }
    if (typeof thrown === "symbol") return thrown.toString();
    const text = String(thrown);
    if (thrown !== undefined && thrown !== null && text.trim() !== "") return text;
  } catch {
    // a getter or a conversion threw: the fixed text below has to do
  }
  return thrown === undefined || thrown === null ? `unknown error (${thrown} was thrown)` : "unknown error";
}

/** A short, safe rendering of a value for an error text: at most 80 characters, never cut inside a surrogate pair. */
export function describe(value: unknown): string {
  let text: string | undefined;
  try {
    if (typeof value === "bigint") text = `${value}n`;
    else if (typeof value === "string") text = JSON.stringify(value.length > 100 ? value.slice(0, 100) : value);
    else if (typeof value === "object" && value !== null) text = JSON.stringify(shallow(value));
    else text = String(value);
  } catch {
    text = undefined;
  }
  if (text === undefined) return `a value of type ${typeof value}`;
  if (text.length <= 80) return text;
  const end = isHighSurrogate(text.charCodeAt(76)) ? 76 : 77;
  return `${text.slice(0, end)}...`;
}

/** The first entries of a value only, so that describing a huge one costs little. */
function shallow(value: object): unknown {
  if (Array.isArray(value)) return value.slice(0, 20).map(leaf);
  const head: [string, unknown][] = [];
  for (const key of Object.keys(value).slice(0, 20)) head.push([key, leaf((value as Record<string, unknown>)[key])]);
  return Object.fromEntries(head);
}

function leaf(value: unknown): unknown {
  if (typeof value === "string") return value.length > 100 ? value.slice(0, 100) : value;
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? ["..."] : { "...": "" };
  return typeof value === "bigint" ? `${value}n` : value;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
