/** All tool calls of one answer: every one gets a start, an end and a result message (SPEC 5.2, 5.3, 5.9). */
import { errorText } from "../errors.js";
import type { PendingToolCall } from "../events.js";
import type { AssistantMessage, ToolCall, ToolResultMessage } from "../messages.js";
import type { AgentToolResult } from "../tool.js";
import { isToolCall, toolCallsOf, withItem } from "../transcript.js";
import { isThenable } from "./abort.js";
import { normalizeResult, toolResultMessage } from "./results.js";
import { append, isStopping, type Run, readClock } from "./run.js";
import { copyMessage, copyStored } from "./snapshot.js";
import { type CallBatch, OpenCall, type Refusal, SUSPENDED } from "./tool-call.js";
import { deniedCall, notExecuted } from "./tool-call-results.js";

export interface BatchOutcome {
  results: ToolResultMessage[];
  /** The results as events show them. */
  shown: ToolResultMessage[];
  /** Every result asked for the end of the run. */
  terminate: boolean;
  /** The calls that wait for a decision, if any (SPEC 15.2). */
  pending?: PendingToolCall[];
  /** Why the run cannot go on: calls were interrupted and have no result (SPEC 16.2). */
  interruption?: string;
}

/**
 * What a host decided about a pending call (SPEC 15.3). `approve` runs the call as the transcript has it; arguments that the
 * host, its user or `beforeToolCall` changed come with it as `args`, are validated, and take the place of the model's.
 */
export type ToolCallDecision =
  | { toolCallId: string; action: "approve"; args?: unknown }
  | { toolCallId: string; action: "deny"; reason?: string }
  | { toolCallId: string; action: "result"; result: AgentToolResult | string };

/** Answers every call of the answer. Without calls it costs no await. */
export function runToolBatch(run: Run, message: AssistantMessage): BatchOutcome | Promise<BatchOutcome> {
  if (!message.content.some(isToolCall)) return { results: [], shown: [], terminate: false };
  return new Batch(run, message).answerAll();
}

/** Answers the calls that were decided on; the others have their results (SPEC 15.3). */
export function resumeToolBatch(run: Run, message: AssistantMessage, decisions: Map<ToolCall, ToolCallDecision>): Promise<BatchOutcome> {
  return new Batch(run, message, decisions).answerAll();
}

class Batch implements CallBatch {
  readonly run: Run;
  readonly answer: AssistantMessage;
  #calls: OpenCall[] = [];
  readonly #decisions: Map<ToolCall, ToolCallDecision> | undefined;
  readonly #outcome: BatchOutcome = { results: [], shown: [], terminate: true };
  #hookCopy: AssistantMessage | undefined;
  #hookCalls: ToolCall[] | undefined;
  /** The calls to execute. */
  #ready: OpenCall[] = [];
  #limit = 1;
  #started = 0;
  #answered = 0;
  #starting = false;
  /** Resolves the promise of the batch, or that of one call of a sequence. */
  #resolve: (outcome: BatchOutcome) => void = () => {};
  #isSequential = false;

  constructor(run: Run, answer: AssistantMessage, decisions?: Map<ToolCall, ToolCallDecision>) {
    this.run = run;
    this.answer = answer;
    this.#decisions = decisions;
    let index = 0;
    for (const block of answer.content) {
      if (!isToolCall(block)) continue;
      if (!decisions || decisions.has(block)) this.#calls = withItem(this.#calls, new OpenCall(this, block, index));
      index++;
    }
  }

  answerAll(): Promise<BatchOutcome> {
    const { abort, config } = this.run;
    abort.running = this;
    this.#isSequential = config.toolExecution === "sequential" || this.#calls.some(isSequential);
    return this.#isSequential ? this.#runSequentially() : this.#runConcurrently();
  }

  async #runSequentially(): Promise<BatchOutcome> {
    const { delivery } = this.run;
    let delivered = 0;
    for (const call of this.#calls) {
      if (this.#outcome.interruption !== undefined) break;
      const refusal = await this.#prepare(call);
      this.#take(call, refusal);
      if (!refusal) {
        await new Promise((resolve) => {
          this.#resolve = resolve;
          this.#startMore();
        });
      }
      // results behind a suspended call wait for it: they are in source order
      for (let next = this.#calls[delivered]; next?.message; next = this.#calls[++delivered]) this.#deliverResult(next);
      if (delivery.busy) await delivery.delivered();
    }
    this.#settle(delivered);
    if (delivery.busy) await delivery.delivered();
    return this.#outcome;
  }

  /** Prepares all calls in order, then runs them at once; without async parts in the preparation it costs one promise. */
  #runConcurrently(): Promise<BatchOutcome> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#prepareFrom(0);
    });
  }

  /** Every call that is ready has been answered. */
  #onDone(): void {
    const { delivery } = this.run;
    if (!this.#isSequential) this.#settle(0);
    if (!this.#isSequential && delivery.busy) delivery.delivered().then(() => this.#resolve(this.#outcome));
    else this.#resolve(this.#outcome);
  }

  #prepareFrom(start: number): void {
    for (let i = start; i < this.#calls.length; i++) {
      const call = this.#calls[i] as OpenCall;
      const refusal = this.#prepare(call);
      if (isThenable(refusal)) {
        refusal.then((settled) => {
          this.#take(call, settled as Refusal);
          this.#prepareFrom(i + 1);
        });
        return;
      }
      this.#take(call, refusal);
    }
    this.#limit = Math.floor(this.run.config.maxParallelToolCalls ?? this.#ready.length);
    if (this.#ready.length === 0) this.#onDone();
    else this.#startMore();
  }

  #take(call: OpenCall, refusal: Refusal): void {
    if (!refusal) this.#ready = withItem(this.#ready, call);
    else if (refusal !== SUSPENDED) this.#answerCall(call, refusal);
  }

  /** Delivers the results from this call on. What is suspended stays so, unless the run was stopped meanwhile. */
  #settle(from: number): void {
    const pending: PendingToolCall[] = [];
    for (const call of this.#calls) {
      if (call.message || this.#outcome.interruption !== undefined) continue;
      if (isStopping(this.run)) this.#answerCall(call, notExecuted(this.run));
      else pending.push(call.pending());
    }
    if (pending.length > 0) this.#outcome.pending = pending;
    for (let i = from; i < this.#calls.length; i++) if (this.#calls[i]?.message) this.#deliverResult(this.#calls[i] as OpenCall);
  }

  #prepare(call: OpenCall): ReturnType<OpenCall["prepare"]> {
    const { delivery } = this.run;
    const decision = this.#decisions?.get(call.call);
    if (decision) return decided(call, decision);
    const { id: toolCallId, name: toolName } = call.call;
    const wait = delivery.deliver({ type: "tool_execution_start", toolCallId, toolName, args: call.shownArgs });
    return wait ? delivery.delivered().then(() => call.prepare()) : call.prepare();
  }

  /** Starts the calls in source order, in one tick up to the limit; each that ends makes room for the next. */
  #startMore(): void {
    if (this.#starting) return; // a call that settles at once would start the next one inside this loop
    this.#starting = true;
    for (let call = this.#ready[this.#started]; call && this.#started - this.#answered < this.#limit; call = this.#ready[this.#started]) {
      this.#started++;
      if (this.#outcome.interruption !== undefined) this.#onAnswered();
      else if (isStopping(this.run)) this.#endExecution(call, notExecuted(this.run));
      else call.execute();
    }
    this.#starting = false;
  }

  #onAnswered(): void {
    this.#answered++;
    if (this.#answered === this.#ready.length) this.#onDone();
    else this.#startMore();
  }

  giveUp(): void {
    for (const call of this.#calls) call.giveUp();
  }

  onExecuted(call: OpenCall, result: AgentToolResult): void {
    if (this.run.config.afterToolCall && !this.run.abort.aborted) call.finish(result).then((final) => this.#endExecution(call, final));
    else this.#endExecution(call, result);
  }

  onInterrupted(error: unknown): void {
    this.#outcome.interruption ??= errorText(error);
    this.#onAnswered();
  }

  #endExecution(call: OpenCall, result: AgentToolResult): void {
    this.#answerCall(call, result);
    this.#onAnswered();
  }

  hookView(index: number): { assistantMessage: AssistantMessage; toolCall: ToolCall } {
    this.#hookCopy ??= copyStored(this.answer);
    this.#hookCalls ??= toolCallsOf(this.#hookCopy.content);
    return { assistantMessage: this.#hookCopy, toolCall: this.#hookCalls[index] as ToolCall };
  }

  /** The message is made before the event, whose listeners may write to the result. */
  #answerCall(call: OpenCall, result: AgentToolResult): void {
    const { id: toolCallId, name: toolName } = call.call;
    call.message = toolResultMessage(call.call, result);
    if (result.terminate !== true) this.#outcome.terminate = false;
    this.run.delivery.deliver({ type: "tool_execution_end", toolCallId, toolName, result, isError: result.isError === true });
  }

  #deliverResult(call: OpenCall): void {
    const message = call.message as ToolResultMessage;
    message.timestamp = readClock(this.run.config);
    append(this.run, message);
    const shown = copyMessage(message); // with nothing of the result, which listeners had
    this.#outcome.results = withItem(this.#outcome.results, message);
    this.#outcome.shown = withItem(this.#outcome.shown, shown);
    this.run.delivery.deliver({ type: "message_start", message: shown });
    this.run.delivery.deliver({ type: "message_end", message: shown });
  }
}

function isSequential(call: OpenCall): boolean {
  return call.isSequential;
}

function decided(call: OpenCall, decision: ToolCallDecision): ReturnType<OpenCall["prepare"]> {
  if (decision.action === "approve") return call.prepare(decision);
  return decision.action === "deny" ? deniedCall(decision.reason) : normalizeResult(call.call.name, decision.result);
}
