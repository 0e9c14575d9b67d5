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
  | "invalid_transcript"
  | "busy"
  | "calls_pending"
  | "nothing_pending"
  | "duplicate_decision"
  | "unknown_decision"
  | "missing_decision"
  | "invalid_decision"
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

/** Misuse of a parameter or an option, as what it must be and what came. */
export function misuse(name: string, expected: string, got: unknown, code: TurnLoopErrorCode = "invalid_argument"): TurnLoopError {
  return new TurnLoopError(code, `${name} must be ${expected}; got ${describe(got)}.`);
}

/** Throws `invalid_argument` for what is no number, NaN included, or too small a one. */
export function assertAtLeast(least: number, name: string, value: unknown): void {
  if (!(typeof value === "number" && value >= least)) throw misuse(name, `a number of at least ${least}`, value);
}

const INTERRUPTED = Symbol.for("turnloop.InterruptedRun");

/**
 * The run cannot go on, and that is nothing the model should read. Thrown by a tool or StreamFn whose call was neither done
 * nor refused and will run again: the run ends, the call gets no result (SPEC 16.2). As an abort's reason: nobody asked for it.
 */
export class InterruptedRun extends Error {
  readonly [INTERRUPTED] = true;
}

export function isInterruptedRun(error: unknown): boolean {
  try {
    return typeof error === "object" && error !== null && INTERRUPTED in error;
  } catch {
    return false; // a Proxy
  }
}

/**
 * A non-empty text for anything that can be thrown or given as an abort reason: an Error, a string, a Symbol, undefined,
 * an object without prototype, an Error whose `message` getter throws (SPEC 5.11, 7.6). Never throws.
 */
export function errorText(thrown: unknown): string {
  try {
    const { message, name } = Object(thrown) as { message?: unknown; name?: unknown };
    for (const text of [message, name, thrown]) if (typeof text === "string" && text.trim() !== "") return text;
    if (thrown !== undefined && thrown !== null && thrown !== "") return describe(thrown);
  } catch {
    // a getter threw
  }
  return `unknown error (${describe(thrown)} was thrown)`;
}

/** A short rendering of a value for an error text: at most 80 characters. Never throws. */
export function describe(value: unknown): string {
  let text: string | undefined;
  try {
    const isJson = typeof value === "string" || (typeof value === "object" && value !== null);
    text = isJson ? JSON.stringify(typeof value === "string" ? value.slice(0, 100) : value) : String(value);
  } catch {
    // a cycle, a bigint, a getter or a toJSON that throws
  }
  return shorten(text ?? `a value of type ${typeof value}`, 80);
}

/** At most `length` UTF-16 units, never cut inside a surrogate pair. */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 3).replace(/[\ud800-\udbff]$/, "")}...`;
}
