/** The loop: two nested loops over turns, stateless, every path closed (SPEC 4). */
import type { AgentContext, AgentLoopConfig } from "../config.js";
import { errorText, TurnLoopError } from "../errors.js";
import type { AgentEventSink } from "../events.js";
import type { AgentMessage, AssistantMessage, ToolResultMessage } from "../messages.js";
import type { StreamFn } from "../stream.js";
import { isFailed, isToolCall } from "../transcript.js";
import { isThenable } from "./abort.js";
import { type Answer, streamAnswer } from "./assistant.js";
import { abortedEnding, askToPrepare, askToStop, type Ending, isEnding, poll, takeChangedState } from "./between-turns.js";
import { assertPrompts, type Incoming, takeIn } from "./incoming.js";
import { type Resumed, takeDecisions } from "./resume.js";
import { append, createRun, isStopping, type Run } from "./run.js";
import { copyStored } from "./snapshot.js";
import { resumeToolBatch, runToolBatch, type ToolCallDecision } from "./tool-batch.js";

const DEFAULT_MAX_TRUNCATED_TURNS = 3;

/**
 * Runs prompts to the end: model answers, tool calls, steering, follow-ups (SPEC 4.2 to 4.6).
 *
 * Resolves with the messages the run added, the prompts first, also when it ended in an error or was aborted: look at
 * `agent_end`. Rejects only with a TurnLoopError: for misuse before any event (SPEC 4.3), or with `sink_failed` when `emit`
 * threw, rejected or, after an abort, did not settle (SPEC 4.10, 7.2). `context` and `config` are never written to.
 */
export async function runAgentLoop(
  prompts: AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  emit: AgentEventSink,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): Promise<AgentMessage[]> {
  assertPrompts(prompts);
  return drive(createRun(context, config, emit, signal, streamFn), takeIn(prompts));
}

/**
 * Runs on from a transcript that ends in a user message, a tool result or a message of the host's own: after a stopped
 * run, or to retry a failed answer (`dropFailedTail`). Adds no message of its own; otherwise as `runAgentLoop`.
 */
export async function runAgentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  emit: AgentEventSink,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): Promise<AgentMessage[]> {
  const run = createRun(context, config, emit, signal, streamFn);
  const last = run.transcript[run.transcript.length - 1];
  if (!last)
    throw new TurnLoopError(
      "empty_context",
      "There is nothing to continue: context.messages is empty. Start with runAgentLoop and a prompt.",
    );
  if (last.role === "assistant") {
    throw new TurnLoopError(
      "cannot_continue_from_assistant",
      "The transcript ends in an assistant message, which the model cannot answer. Add a message, use runAgentLoop, or drop a failed answer with dropFailedTail.",
    );
  }
  return drive(run, []);
}

/**
 * Goes on with calls that wait for a decision: those of a run that ended as `suspended`, or those a crash left without a
 * result. One decision for each: `approve` executes it, with `args` in place of the model's if given; `deny` answers it with
 * an error the model reads; `result` answers it with what was done elsewhere. Then the run goes on as any other.
 *
 * Otherwise as `runAgentLoopContinue`. Rejects before any event with `nothing_pending`, `duplicate_decision`,
 * `unknown_decision`, `missing_decision` or `invalid_decision` (SPEC 15.3). A call whose result is in the transcript never
 * runs again; a host that might resume one transcript twice locks it.
 */
export async function resumeAgentLoop(
  decisions: ToolCallDecision[],
  context: AgentContext,
  config: AgentLoopConfig,
  emit: AgentEventSink,
  signal: AbortSignal | undefined,
  streamFn: StreamFn,
): Promise<AgentMessage[]> {
  const run = createRun(context, config, emit, signal, streamFn);
  return drive(run, [], () => takeDecisions(run, decisions));
}

/** From agent_start to agent_end. What `resume` refuses is refused before. */
async function drive(run: Run, prompts: Incoming[], resume?: () => Promise<Resumed>): Promise<AgentMessage[]> {
  const { delivery } = run;
  run.abort.listen();
  try {
    const resumed = resume && (await resume());
    if (delivery.deliver({ type: "agent_start" })) await delivery.delivered();
    let ending: Ending;
    try {
      ending = await runTurns(run, prompts, resumed);
    } catch (error) {
      ending = { outcome: "error", error: { message: errorText(error) } };
    }
    const outcome = delivery.failure ? "error" : ending.outcome;
    const error = delivery.failure ? { message: `The event sink failed: ${errorText(delivery.failure.cause)}` } : ending.error;
    const messages = run.added.map((message) => copyStored(message, run.hasExtras));
    const pending = outcome === "suspended" && { pending: ending.pending };
    if (delivery.deliver({ type: "agent_end", messages, outcome, ...(error && { error }), ...pending })) await delivery.delivered();
  } finally {
    run.abort.dispose();
  }
  if (!delivery.failure) return run.added;
  const { cause } = delivery.failure;
  throw new TurnLoopError("sink_failed", `The event sink failed, so the run was stopped: ${errorText(cause)}`, {
    cause,
    messages: run.added,
  });
}

/** The nested loops of SPEC 4.4. A resumed run begins with the second half of a turn: its answer is there (SPEC 15.3). */
async function runTurns(run: Run, prompts: Incoming[], resumed?: Resumed): Promise<Ending> {
  let pending = prompts;
  let half = resumed;
  for (;;) {
    let wantsAnswer = true;
    let terminated = false;
    while (wantsAnswer || pending.length > 0) {
      run.turn++;
      takeChangedState(run);
      if (run.delivery.deliver({ type: "turn_start" })) await run.delivery.delivered(); // (a)
      for (const incoming of pending) deliverMessage(run, incoming); // (b)
      if (run.delivery.busy) await run.delivery.delivered();

      const answer = half ? shownAgain(half.answer) : await streamAnswer(run); // (c)
      if (!half) append(run, answer.message);
      if (isFailed(answer.message)) {
        if (endTurn(run, answer, [])) await run.delivery.delivered(); // (d)
        return failedEnding(answer.message);
      }
      let batch = half ? resumeToolBatch(run, half.answer, half.decisions) : runToolBatch(run, answer.message); // (e)
      half = undefined;
      if (isThenable(batch)) batch = await batch;
      if (endTurn(run, answer, batch.shown)) await run.delivery.delivered(); // (f)
      if (batch.interruption !== undefined) return { outcome: "error", error: { message: batch.interruption } };
      if (batch.pending) return { outcome: "suspended", pending: batch.pending };
      wantsAnswer = batch.results.length > 0 && !batch.terminate;
      terminated = batch.terminate;

      if (isStopping(run)) return abortedEnding(run);
      if (tooOftenTruncated(run, answer.message)) return truncatedEnding(run);
      const { prepareNextTurn, shouldStopAfterTurn, getSteeringMessages } = run.config;
      let ending = prepareNextTurn && (await askToPrepare(run, answer.message, batch.results)); // (g)
      if (!ending && shouldStopAfterTurn) ending = await askToStop(run, answer.message, batch.results); // (h)
      if (ending) return ending;
      pending = [];
      if (!getSteeringMessages) continue;
      let steering = poll(run, "getSteeringMessages"); // (i)
      if (isThenable(steering)) steering = await steering;
      if (isEnding(steering)) return steering;
      pending = steering;
    }
    const followUps = await poll(run, "getFollowUpMessages");
    if (isEnding(followUps)) return followUps;
    if (followUps.length === 0) return { outcome: terminated ? "terminated" : "completed" };
    pending = followUps;
  }
}

function shownAgain(message: AssistantMessage): Answer {
  return { message, shown: copyStored(message) };
}

function deliverMessage(run: Run, { message, shown }: Incoming): void {
  run.delivery.deliver({ type: "message_start", message: shown });
  run.delivery.deliver({ type: "message_end", message: shown });
  if (message.role === "assistant") run.hasExtras = true; // a host's own may hold anything
  append(run, message);
}

function endTurn(run: Run, answer: Answer, toolResults: ToolResultMessage[]): boolean {
  return run.delivery.deliver({ type: "turn_end", message: answer.shown, toolResults });
}

function tooOftenTruncated(run: Run, answer: AssistantMessage): boolean {
  const truncated = answer.stopReason === "length" && answer.content.some(isToolCall);
  run.truncatedTurns = truncated ? run.truncatedTurns + 1 : 0;
  return run.truncatedTurns >= (run.config.maxTruncatedTurns ?? DEFAULT_MAX_TRUNCATED_TURNS);
}

function truncatedEnding(run: Run): Ending {
  const message = `The output limit cut the tool calls of ${run.truncatedTurns} answers in a row; raise maxTokens or ask for less at once.`;
  return { outcome: "error", error: { message } };
}

function failedEnding({ stopReason, errorMessage, errorInfo }: AssistantMessage): Ending {
  const error = { message: errorMessage ?? "The model call failed.", ...(errorInfo && { info: { ...errorInfo } }) };
  return { outcome: stopReason === "aborted" ? "aborted" : "error", error };
}
