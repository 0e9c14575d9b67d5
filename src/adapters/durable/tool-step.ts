/** One tool execution as one step (SPEC 16.1 to 16.4). */
import { errorText } from "../../errors.js";
import { pause } from "../../loop/abort.js";
import { normalizeResult } from "../../loop/results.js";
import type { AgentTool, AgentToolResult, ToolCallPosition } from "../../tool.js";
import type { JournalClock } from "./clock.js";
import { eitherSignal, runStep, type Step, throughJson, unlessEnded } from "./step.js";

/** What a tool gave, or how it failed. */
interface ToolRecord {
  result?: AgentToolResult;
  error?: string;
  at: number;
}

/** How long a tool may take to settle after the run's abort, before that is what is recorded. */
const ABORT_GRACE_MS = 200;

export function durableTool(
  step: Step,
  tool: AgentTool,
  prefix: string,
  clock: JournalClock,
  toolTimeoutMs: number | undefined,
): AgentTool {
  const timeoutMs = tool.timeoutMs ?? toolTimeoutMs ?? 0;
  return {
    name: tool.name,
    label: tool.label,
    description: tool.description,
    parameters: tool.parameters,
    jsonSchema: tool.jsonSchema,
    kind: tool.kind,
    executionMode: tool.executionMode,
    ...(tool.prepareArguments && { prepareArguments: (args: unknown) => tool.prepareArguments?.(args) }),
    timeoutMs: 0, // a limit outside the step would not be in the journal
    async execute(toolCallId, args, signal, onUpdate, call) {
      const name = `${prefix}/tool:${call.turn}:${call.index}:${tool.name}`;
      const position: ToolCallPosition = { ...call, idempotencyKey: name };
      const run = (own: AbortSignal): unknown => tool.execute(toolCallId, args, own, onUpdate, position);
      const recorded = await runStep(step, name, (attempt) => record(tool.name, run, signal, attempt.signal, timeoutMs), {
        kind: "tool",
        input: { toolCallId, toolName: tool.name, args, idempotencyKey: name },
      });
      clock.advance(recorded.at);
      if (recorded.error !== undefined) throw new Error(recorded.error);
      return recorded.result as AgentToolResult;
    },
  };
}

/** Executes the tool and gives what it did, whatever that is; rejects only when the attempt is ended. */
async function record(
  toolName: string,
  run: (signal: AbortSignal) => unknown,
  signal: AbortSignal,
  attempt: AbortSignal | undefined,
  timeoutMs: number,
): Promise<ToolRecord> {
  const either = eitherSignal(signal, attempt);
  const limit = new AbortController();
  const stop = eitherSignal(either.signal, limit.signal);
  const ended = new AbortController();
  const execution = (async () => normalizeResult(toolName, await run(stop.signal)))();
  const limits = [execution, afterAbort(toolName, signal, ended.signal)];
  if (timeoutMs > 0) limits.push(afterLimit(toolName, timeoutMs, limit, ended.signal));
  try {
    const outcome = await unlessEnded(attempt, Promise.race(limits)).then(
      (result) => ({ result: plainResult(result) }),
      (error: unknown) => {
        if (attempt?.aborted) throw error;
        return { error: errorText(error) };
      },
    );
    return { ...outcome, at: Date.now() };
  } finally {
    execution.catch(() => {});
    ended.abort();
    either.release();
    stop.release();
  }
}

/** Never settles before the run is aborted and the grace is over. */
function afterAbort(toolName: string, signal: AbortSignal, ended: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = async (): Promise<void> => {
      if (!(await pause(ABORT_GRACE_MS, ended))) return;
      reject(new Error(`Tool "${toolName}" did not stop in time: it may still be running or may have taken effect.`));
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    ended.addEventListener("abort", () => signal.removeEventListener("abort", onAbort), { once: true });
  });
}

/** Never settles before the tool's time is over; then aborts its signal. */
async function afterLimit(toolName: string, timeoutMs: number, limit: AbortController, ended: AbortSignal): Promise<never> {
  if (!(await pause(timeoutMs, ended))) return new Promise(() => {});
  const text = `did not finish within its limit of ${timeoutMs} ms`;
  limit.abort(new Error(`The tool ${text}.`));
  throw new Error(`Tool "${toolName}" ${text}; it may still be running or may have taken effect.`);
}

/** The result as the journal will give it back; `details` that JSON would change are left out. */
function plainResult({ details, ...result }: AgentToolResult): AgentToolResult {
  const plain: AgentToolResult = throughJson(result);
  if (details !== undefined && survivesJson(details)) plain.details = throughJson(details);
  return plain;
}

function survivesJson(value: unknown): boolean {
  try {
    return sameJson(value, throughJson(value));
  } catch {
    return false;
  }
}

/** Deep equality of a value with its copy through JSON. */
function sameJson(value: unknown, copy: unknown): boolean {
  if (typeof value !== "object" || value === null) return Object.is(value, copy);
  if (typeof copy !== "object" || copy === null || Array.isArray(value) !== Array.isArray(copy)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return false;
  const keys = Object.keys(value);
  return (
    keys.length === Object.keys(copy).length &&
    keys.every(
      (key) => Object.hasOwn(copy, key) && sameJson((value as Record<string, unknown>)[key], (copy as Record<string, unknown>)[key]),
    )
  );
}
