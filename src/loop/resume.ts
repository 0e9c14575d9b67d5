/** Going on with calls that were suspended, or that a crash left without a result (SPEC 15.3). */
import { describe, errorText, misuse, TurnLoopError, type TurnLoopErrorCode } from "../errors.js";
import type { AgentMessage, AssistantMessage, ToolCall } from "../messages.js";
import { pendingCalls } from "../transcript.js";
import { isThenable } from "./abort.js";
import { InvalidArguments, validateArguments } from "./arguments.js";
import type { Run } from "./run.js";
import type { ToolCallDecision } from "./tool-batch.js";

/** The answer whose calls were pending, and what was decided about each. */
export interface Resumed {
  answer: AssistantMessage;
  decisions: Map<ToolCall, ToolCallDecision>;
}

/** Throws a TurnLoopError unless each pending call has one usable decision; nothing has happened then. */
export async function takeDecisions(run: Run, decisions: readonly ToolCallDecision[]): Promise<Resumed> {
  const { answer, calls } = pendingOf(run.transcript);
  if (!Array.isArray(decisions)) throw misuse("decisions", "an array", decisions);
  const byId = new Map<unknown, ToolCallDecision>();
  for (const given of decisions) {
    const decision = { ...given }; // validation may take a while
    const id: unknown = decision.toolCallId;
    if (byId.has(id)) refuse("duplicate_decision", `There are two decisions for call ${describe(id)}; expected one for each pending call.`);
    byId.set(id, decision);
  }
  const waiting = calls.map(({ id }) => id).join(", ");
  for (const id of byId.keys())
    if (!calls.some((call) => call.id === id)) refuse("unknown_decision", `Call ${describe(id)} is not pending; pending are: ${waiting}.`);
  for (const { id } of calls)
    if (!byId.has(id)) refuse("missing_decision", `There is no decision for call ${describe(id)}; decide on all of: ${waiting}.`);
  const taken = new Map(calls.map((call) => [call, byId.get(call.id) as ToolCallDecision]));
  for (const [call, decision] of taken) await assertUsable(run, call, decision);
  return { answer, decisions: taken };
}

function pendingOf(messages: readonly AgentMessage[]): NonNullable<ReturnType<typeof pendingCalls>> {
  const pending = pendingCalls(messages);
  if (pending) return pending;
  const text = "No tool call is pending: the transcript must end in an answer with calls that have no result. Use runAgentLoopContinue.";
  return refuse("nothing_pending", text);
}

async function assertUsable(run: Run, call: ToolCall, decision: ToolCallDecision): Promise<void> {
  const { action } = decision;
  if (action !== "approve" && action !== "deny" && action !== "result") {
    refuse("invalid_decision", `The action for call "${call.id}" must be "approve", "deny" or "result"; got ${describe(action)}.`);
  }
  const entry = run.tools.get(call.name);
  if (action !== "approve" || decision.args === undefined || !entry) return;
  let fault: string | undefined;
  try {
    const checking = validateArguments(entry.tool, entry.schema, decision.args);
    const checked = isThenable(checking) ? await run.abort.race(checking) : checking; // an aborted run executes nothing
    if (checked instanceof InvalidArguments) fault = checked.error;
  } catch (error) {
    fault = errorText(error);
  }
  if (fault !== undefined) refuse("invalid_decision", `The edited arguments of call "${call.id}" cannot be used. ${fault}`);
}

function refuse(code: TurnLoopErrorCode, text: string): never {
  throw new TurnLoopError(code, text);
}
