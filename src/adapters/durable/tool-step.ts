/** One tool execution as one step (SPEC 16.1 to 16.4). */
import { errorText } from "../../errors.js";
import { asRecorded, graceOf, withRecordedAbort } from "../../loop/recorded.js";
import { errorResult, normalizeResult } from "../../loop/results.js";
import { DEFAULT_ABORT_GRACE_MS } from "../../loop/run.js";
import { notExecuted, overLimit, stillRunning, thrownResult, timedOut } from "../../loop/tool-call-results.js";
import { type AgentTool, type AgentToolResult, assertTool, type ToolCallPosition } from "../../tool.js";
import { Attempt, throughJson } from "./attempt.js";
import type { Journal } from "./journal.js";

/** What a tool gave, or how it failed. */
interface ToolRecord {
  result: AgentToolResult;
  /** Why the run was aborted meanwhile. */
  aborted?: string;
  at: number;
}

/** Throws `invalid_tool`. */
export function durableTool(journal: Journal, tool: AgentTool, toolTimeoutMs: number | undefined): AgentTool {
  assertTool(tool);
  const timeoutMs = tool.timeoutMs ?? toolTimeoutMs ?? 0;
  return asRecorded<AgentTool>({
    ...tool, // of a class instance that is not all
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
      const idempotencyKey = journal.stepName(`tool:${call.turn}:${call.index}:${tool.name}`);
      const position: ToolCallPosition = { ...call, idempotencyKey };
      const run = (attempt: Attempt): unknown =>
        tool.execute(toolCallId, args, attempt.signal, (partial) => attempt.isOver || onUpdate(partial), position);
      const graceMs = graceOf(call) ?? DEFAULT_ABORT_GRACE_MS;
      const { result, aborted, at } = await journal.record(
        idempotencyKey,
        (own) => record(tool, run, new Attempt(signal, own.signal), timeoutMs, graceMs),
        { kind: "tool", input: { toolCallId, toolName: tool.name, args, idempotencyKey } },
        signal,
      );
      journal.advance(at);
      return aborted === undefined ? result : withRecordedAbort({ ...result }, aborted);
    },
  });
}

/** Executes the tool and gives what it did, whatever that is; rejects only when nothing may be recorded. */
async function record(
  tool: AgentTool,
  run: (attempt: Attempt) => unknown,
  attempt: Attempt,
  timeoutMs: number,
  graceMs: number,
): Promise<ToolRecord> {
  try {
    attempt.assertGoing();
    const given = attempt.aborted
      ? notExecuted({ abort: attempt })
      : await Promise.race([
          execute(tool, run, attempt),
          overtime(tool, attempt, timeoutMs),
          attempt.ended(() => attempt.after(graceMs).then(() => stillRunning({ abort: attempt }, tool))),
        ]);
    attempt.assertGoing();
    const result = plainResult(tool.name, given);
    if (!attempt.aborted) return { result, at: Date.now() };
    // the signal decides, not what the tool made of it (SPEC 7.4)
    return { result: { ...result, isError: true }, aborted: attempt.reasonText, at: Date.now() };
  } finally {
    attempt.close();
  }
}

async function execute(tool: AgentTool, run: (attempt: Attempt) => unknown, attempt: Attempt): Promise<AgentToolResult> {
  try {
    return normalizeResult(tool.name, await run(attempt));
  } catch (error) {
    return thrownResult({ abort: attempt }, tool, error);
  }
}

/** Never settles before the tool's time is over; then aborts its signal. */
async function overtime(tool: AgentTool, attempt: Attempt, timeoutMs: number): Promise<AgentToolResult> {
  if (!(timeoutMs > 0)) return new Promise(() => {});
  await attempt.after(timeoutMs);
  attempt.stop(new Error(`The tool ${overLimit(timeoutMs)}.`));
  return timedOut(tool, timeoutMs);
}

/** The result as a journal will give it back; `details` that JSON would change are left out. */
function plainResult(toolName: string, { details, ...result }: AgentToolResult): AgentToolResult {
  try {
    const plain = throughJson(`The result of tool "${toolName}", which was executed,`, result);
    const copy = detailsThroughJson(details);
    return copy === undefined ? plain : { ...plain, details: copy };
  } catch (error) {
    return errorResult(errorText(error));
  }
}

function detailsThroughJson(details: unknown): unknown {
  try {
    const copy: unknown = details === undefined ? undefined : throughJson("details", details);
    return sameJson(details, copy) ? copy : undefined;
  } catch {
    return undefined;
  }
}

/** Deep equality of a value with its copy through JSON. */
function sameJson(value: unknown, copy: unknown): boolean {
  if (typeof value !== "object" || value === null) return Object.is(value, copy);
  if (typeof copy !== "object" || copy === null) return false;
  if (Object.getPrototypeOf(value) !== Object.getPrototypeOf(copy) || Object.getOwnPropertySymbols(value).length > 0) return false;
  const source = value as Record<string, unknown>;
  const target = copy as Record<string, unknown>;
  const keys = Object.keys(source);
  return (
    keys.length === Object.keys(target).length && keys.every((key) => Object.hasOwn(target, key) && sameJson(source[key], target[key]))
  );
}
