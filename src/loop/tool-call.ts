/** One tool call: prepare, execute, finalise (SPEC 5.6 to 5.13, 7.4). Nothing here throws. */
import type { AfterToolCallResult, BeforeToolCallResult } from "../config.js";
import { errorText, isInterruptedRun } from "../errors.js";
import type { PendingToolCall } from "../events.js";
import type { AssistantMessage, ToolCall, ToolResultMessage } from "../messages.js";
import type { AgentTool, AgentToolResult } from "../tool.js";
import { ABORTED, isThenable, liftListenerLimit, type RunAbort, startTimer } from "./abort.js";
import { InvalidArguments, validateArguments } from "./arguments.js";
import { isRecorded, recordedAbort, withGrace } from "./recorded.js";
import { errorResult, normalizeResult } from "./results.js";
import { contextView, isStopping, type Run } from "./run.js";
import { copyArguments, copyContent, copyJson, copyPartial, copyPlain, isPlainObject } from "./snapshot.js";
import {
  argumentsUnusable,
  notExecuted,
  overLimit,
  stillRunning,
  thrownResult,
  timedOut,
  truncatedCall,
  unknownTool,
} from "./tool-call-results.js";

/** What a call knows of the batch it is part of. */
export interface CallBatch {
  readonly run: Run;
  readonly answer: AssistantMessage;
  /** The answer as hooks see it: a copy of its own, made when the first hook asks. */
  hookView(index: number): { assistantMessage: AssistantMessage; toolCall: ToolCall };
  /** An execution has settled, timed out, or was given up. */
  onExecuted(call: OpenCall, result: AgentToolResult): void;
  /** The run cannot go on; the call is not answered. */
  onInterrupted(error: unknown): void;
}

/** The call waits for a decision. */
export const SUSPENDED: unique symbol = Symbol("suspended");

/** The result that takes the place of an execution, or SUSPENDED; undefined: the call may be executed. */
export type Refusal = AgentToolResult | typeof SUSPENDED | undefined;

export class OpenCall {
  readonly #batch: CallBatch;
  readonly call: ToolCall;
  /** The arguments as events show them: a copy that nobody has written to before. */
  readonly shownArgs: unknown;
  readonly index: number;
  readonly #entry: ReturnType<Run["tools"]["get"]>;
  #args: unknown;
  #executing = false;
  #limit: TimeLimit | undefined;
  /** Set as soon as the call is answered: the message for the transcript. */
  message: ToolResultMessage | undefined;
  /** Why it was suspended. */
  reason: string | undefined;

  constructor(batch: CallBatch, call: ToolCall, index: number) {
    this.#batch = batch;
    this.call = call;
    this.shownArgs = copyArguments(call.arguments);
    this.index = index;
    this.#entry = batch.run.tools.get(call.name);
  }

  get isSequential(): boolean {
    return this.#entry?.tool.executionMode === "sequential";
  }

  /** Only for calls that passed the lookup. */
  get #tool(): AgentTool {
    return (this.#entry as { tool: AgentTool }).tool;
  }

  /**
   * Lookup, `prepareArguments`, validation, `beforeToolCall`. Without async parts it costs no await. An approved call was
   * asked about before; arguments that came with the approval are complete.
   */
  prepare(approval?: { args?: unknown }): Refusal | Promise<Refusal> {
    const { run, answer } = this.#batch;
    const { call } = this;
    if (answer.stopReason === "length") return truncatedCall();
    if (isStopping(run)) return notExecuted(run);
    if (!this.#entry) return unknownTool(run, call);
    const edited = approval?.args;
    if (call.argumentsError && edited === undefined) return errorResult(call.argumentsError);
    const { tool, schema } = this.#entry;
    const mustAsk = run.config.beforeToolCall !== undefined && !approval;
    let validated: unknown;
    try {
      let args = edited;
      if (args === undefined) args = tool.prepareArguments ? tool.prepareArguments(copyJson(call.arguments)) : call.arguments;
      validated = validateArguments(tool, schema, args);
    } catch (error) {
      return argumentsUnusable(tool, error);
    }
    if (isThenable(validated) || mustAsk) return this.#prepareSlowly(validated, mustAsk);
    return this.#accept(validated);
  }

  async #prepareSlowly(validating: unknown, mustAsk: boolean): Promise<Refusal> {
    const { run } = this.#batch;
    try {
      const validated = isThenable(validating) ? await run.abort.race(validating) : validating;
      if (validated === ABORTED || isStopping(run)) return notExecuted(run);
      const refusal = this.#accept(validated);
      return refusal || !mustAsk ? refusal : await this.#askBefore();
    } catch (error) {
      return argumentsUnusable(this.#tool, error);
    }
  }

  #accept(validated: unknown): Refusal {
    if (validated instanceof InvalidArguments) return errorResult(validated.error);
    this.#args = validated;
    return undefined;
  }

  async #askBefore(): Promise<Refusal> {
    const { run } = this.#batch;
    const args = this.#args;
    const asked = copyPlain(args); // validated arguments may hold what a schema made of them, such as dates
    let decision: unknown;
    try {
      const { assistantMessage, toolCall } = this.#batch.hookView(this.index);
      decision = run.config.beforeToolCall?.({ assistantMessage, toolCall, args, context: contextView(run) }, run.abort.signal);
      if (isThenable(decision)) decision = await run.abort.race(decision);
    } catch (error) {
      return isStopping(run) ? notExecuted(run) : errorResult(`Tool call blocked: beforeToolCall failed: ${errorText(error)}`);
    }
    if (decision === ABORTED || isStopping(run)) return notExecuted(run);
    const { block, reason, terminate, args: replaced, suspend } = (decision ?? {}) as BeforeToolCallResult;
    if (block === true) {
      const refused = errorResult(typeof reason === "string" && reason !== "" ? reason : "The tool call was blocked.");
      if (terminate === true) refused.terminate = true;
      return refused;
    }
    if (suspend === true && typeof reason === "string") this.reason = reason;
    const accepted = suspend === true ? SUSPENDED : undefined;
    if (replaced === undefined && sameArgs(args, asked)) {
      this.#args = asked; // the hook may have kept the other one
      return accepted;
    }
    const { tool, schema } = this.#entry as NonNullable<ReturnType<Run["tools"]["get"]>>;
    const validating = validateArguments(tool, schema, replaced === undefined ? args : replaced);
    const validated = isThenable(validating) ? await run.abort.race(validating) : validating;
    return validated === ABORTED || isStopping(run) ? notExecuted(run) : (this.#accept(validated) ?? accepted);
  }

  /** What a decision about the call is made on. */
  pending(): PendingToolCall {
    const pending: PendingToolCall = {
      toolCall: { ...this.call, arguments: copyArguments(this.call.arguments) },
      args: copyPlain(this.#args),
    };
    return this.reason === undefined ? pending : { ...pending, reason: this.reason };
  }

  /** Runs the tool; the batch hears of the result once. */
  execute(): void {
    const { run } = this.#batch;
    const tool = this.#tool;
    this.#executing = true;
    this.#limitTime(tool.timeoutMs ?? run.config.toolTimeoutMs);
    try {
      const signal = this.#limit?.signal ?? run.abort.signal;
      const position = { turn: run.turn, index: this.index };
      if (isRecorded(tool)) withGrace(position, run.abort.graceMs);
      const value: unknown = tool.execute(this.call.id, this.#args as never, signal, (partial) => this.#update(partial), position);
      if (!isThenable(value)) this.#return(value);
      else {
        Promise.resolve(value).then(
          (settled) => this.#return(settled),
          (error: unknown) => this.#throw(error),
        );
      }
    } catch (error) {
      this.#throw(error);
    }
  }

  #limitTime(ms: unknown): void {
    if (typeof ms === "number" && ms > 0)
      this.#limit = new TimeLimit(this.#batch.run.abort, ms, () => this.#settle(timedOut(this.#tool, ms)));
  }

  /** The run was aborted and the grace is over. */
  giveUp(): void {
    const { abort } = this.#batch.run;
    if (this.#executing && isRecorded(this.#tool) && !isInterruptedRun(abort.signal.reason)) return;
    if (this.#executing) this.#settle(stillRunning(this.#batch.run, this.#tool));
  }

  /** Runs `afterToolCall` on the result of the execution, unless the run is aborted. */
  async finish(executed: AgentToolResult): Promise<AgentToolResult> {
    const { run } = this.#batch;
    if (run.abort.aborted) return executed;
    const isError = executed.isError === true;
    try {
      const result = { ...executed, content: copyContent(executed.content) };
      const { assistantMessage, toolCall } = this.#batch.hookView(this.index);
      const asked = { assistantMessage, toolCall, args: this.#args, result, isError, context: contextView(run) };
      let changes: unknown = run.config.afterToolCall?.(asked, run.abort.signal);
      if (isThenable(changes)) changes = await run.abort.race(changes);
      if (changes === ABORTED) return executed;
      const changed = (changes ?? {}) as AfterToolCallResult;
      return normalizeResult(this.call.name, {
        content: changed.content ?? executed.content,
        details: changed.details ?? executed.details,
        usage: changed.usage ?? executed.usage,
        terminate: changed.terminate ?? executed.terminate,
        isError: typeof changed.isError === "boolean" ? changed.isError : isError,
      });
    } catch (error) {
      if (run.abort.aborted) return executed;
      const failed = errorResult(`afterToolCall failed for tool "${this.call.name}", which was executed: ${errorText(error)}`);
      if (executed.usage !== undefined) failed.usage = executed.usage;
      return failed;
    }
  }

  #return(value: unknown): void {
    const result = normalizeResult(this.#tool.name, value);
    const { abort } = this.#batch.run;
    const reason = recordedAbort(value);
    if (reason !== undefined) abort.abort(reason);
    // the signal decides, not what the tool made of it (SPEC 7.4)
    else if (abort.aborted && !isRecorded(this.#tool)) result.isError = true;
    this.#settle(result);
  }

  #throw(error: unknown): void {
    // the abort's own reason, passed on as fetch does, is a failure like any other
    if (isInterruptedRun(error) && error !== this.#batch.run.abort.signal.reason && this.#executing) {
      this.#executing = false;
      this.#limit?.clear();
      return this.#batch.onInterrupted(error);
    }
    this.#settle(thrownResult(this.#batch.run, this.#tool, error));
  }

  #settle(result: AgentToolResult): void {
    if (!this.#executing) return;
    this.#executing = false;
    this.#limit?.clear();
    this.#batch.onExecuted(this, result);
  }

  #update(partial: AgentToolResult): void {
    const { run } = this.#batch;
    if (!this.#executing || run.abort.aborted) return;
    const { id: toolCallId, name: toolName } = this.call;
    const partialResult = copyPartial(partial);
    run.delivery.deliver({ type: "tool_execution_update", toolCallId, toolName, args: this.shownArgs, partialResult });
  }
}

/** A signal of the call's own, which fires at the time limit or with the run's. */
class TimeLimit {
  readonly #controller = new AbortController();
  readonly #stopForwarding: () => void;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(abort: RunAbort, timeoutMs: number, onTimeout: () => void) {
    liftListenerLimit(this.#controller.signal);
    this.#stopForwarding = abort.onAbort(() => this.#controller.abort(abort.signal.reason));
    this.#timer = startTimer(() => {
      onTimeout();
      this.#controller.abort(new Error(`The tool ${overLimit(timeoutMs)}.`));
    }, timeoutMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#stopForwarding();
  }
}

function sameArgs(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => sameArgs(item, b[i]));
  if (!isPlainObject(a) || !isPlainObject(b)) return Object.is(a, b);
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameArgs(a[key], b[key]));
}
