/** One tool execution as one step (SPEC 16.1 to 16.4). */
import { errorText } from "../../errors.js";
import { asRecorded, graceOf, withRecordedAbort } from "../../loop/recorded.js";
import { errorResult, normalizeResult } from "../../loop/results.js";
import { DEFAULT_ABORT_GRACE_MS } from "../../loop/run.js";
import { notExecuted, overLimit, stillRunning, thrownResult, timedOut } from "../../loop/tool-call-results.js";
import { type AgentTool, type AgentToolResult, assertTool } from "../../tool.js";
import { Attempt, throughJson } from "./attempt.js";
import type { Journal, ToolStepInput } from "./journal.js";

/** What a tool gave, or how it failed. */
interface ToolRecord {
  result: AgentToolResult;
  /** Why the run was aborted meanwhile. */
  aborted?: string;
  /** How many calls of the batch had begun by then; a step that was done elsewhere does not know. */
  begun?: number;
  at: number;
}

/** Throws `invalid_tool`. */
export function durableTool(journal: Journal, tool: AgentTool, toolTimeoutMs: number | undefined): AgentTool {
  assertTool(tool);
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
      const graceMs = graceOf(call) ?? DEFAULT_ABORT_GRACE_MS;
      const input: ToolStepInput = { toolCallId, toolName: tool.name, args, call: { ...call, idempotencyKey }, graceMs };
      journal.toolBegins(call.turn);
      const perform = async (own: AbortSignal | undefined): Promise<ToolRecord> => {
        const record = await performToolStep(tool, input, signal, own, toolTimeoutMs, onUpdate);
        return record.aborted === undefined ? record : { ...record, begun: journal.toolsBegun };
      };
      const { result, aborted, begun = 0, at } = await journal.record(idempotencyKey, perform, { kind: "tool", input }, signal);
      journal.advance(at);
      if (aborted === undefined) return result;
      await journal.untilToolsBegun(begun, signal);
      return withRecordedAbort({ ...result }, aborted);
    },
  });
}

/** Executes the tool and gives what it did, whatever that is; rejects only when nothing may be recorded. */
export async function performToolStep(
  tool: AgentTool,
  { toolCallId, args, call, graceMs }: ToolStepInput,
  signal: AbortSignal | undefined,
  own: AbortSignal | undefined,
  toolTimeoutMs: number | undefined,
  onUpdate?: (partial: AgentToolResult) => void,
): Promise<ToolRecord> {
  const attempt = new Attempt(signal, own);
  const update = (partial: AgentToolResult): void => {
    if (!attempt.isOver) onUpdate?.(partial);
  };
  try {
    attempt.assertGoing();
    const given = attempt.aborted
      ? notExecuted({ abort: attempt })
      : await Promise.race([
          settled(tool, attempt, () => tool.execute(toolCallId, args as never, attempt.signal, update, call)),
          overtime(tool, attempt, tool.timeoutMs ?? toolTimeoutMs ?? 0),
          attempt.ended(() => attempt.after(graceMs ?? Number.POSITIVE_INFINITY).then(() => stillRunning({ abort: attempt }, tool))),
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

async function settled(tool: AgentTool, attempt: Attempt, execute: () => unknown): Promise<AgentToolResult> {
  try {
    return normalizeResult(tool.name, await execute());
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
