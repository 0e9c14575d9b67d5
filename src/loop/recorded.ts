/**
 * How a StreamFn or tool whose outcomes are recorded elsewhere tells the loop so (SPEC 16). Symbols of the registry: it may
 * come from another copy of this code.
 */
import type { AgentToolResult } from "../tool.js";

const RECORDED = Symbol.for("turnloop.recorded");
const RECORDED_ABORT = Symbol.for("turnloop.recordedAbort");
const GRACE_MS = Symbol.for("turnloop.graceMs");

/** After an abort the loop waits for what this one gives, and takes it as it is: a replay would give the same. */
export function asRecorded<T extends object>(part: T): T {
  return Object.defineProperty(part, RECORDED, { value: true });
}

export function isRecorded(part: object): boolean {
  return RECORDED in part;
}

/** The run was aborted while this result came about; a replay, whose caller may not know, is aborted there too. */
export function withRecordedAbort(result: AgentToolResult, reason: string): AgentToolResult {
  return Object.defineProperty(result, RECORDED_ABORT, { value: reason });
}

export function recordedAbort(result: unknown): string | undefined {
  try {
    const reason = (Object(result) as { [RECORDED_ABORT]?: unknown })[RECORDED_ABORT];
    return typeof reason === "string" ? reason : undefined; // a Proxy answers to any name
  } catch {
    return undefined; // or to none
  }
}

/** A recorded tool keeps the grace time itself. */
export function withGrace<T extends object>(position: T, graceMs: number): T {
  return Object.defineProperty(position, GRACE_MS, { value: graceMs });
}

export function graceOf(position: object): number | undefined {
  return (position as { [GRACE_MS]?: number })[GRACE_MS];
}
