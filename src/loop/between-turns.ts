/** The hooks between two turns (SPEC 4.4 g to i, 6.3, 6.4). Each gives the ending it leads to, if any. */
import type { NextTurn, TurnContext } from "../config.js";
import { describe, errorText, misuse, TurnLoopError } from "../errors.js";
import type { AgentEvent, PendingToolCall, RunOutcome } from "../events.js";
import type { AgentMessage, AssistantMessage, ToolResultMessage } from "../messages.js";
import { ABORTED, isThenable } from "./abort.js";
import { type Incoming, takeIn } from "./incoming.js";
import { RequestLog } from "./request.js";
import { contextView, isStopping, type Run, reusable, setCopy } from "./run.js";
import { copyStored } from "./snapshot.js";

/** How a run ended and why. */
export interface Ending {
  outcome: RunOutcome;
  error?: Extract<AgentEvent, { type: "agent_end" }>["error"];
  pending?: PendingToolCall[];
}

type Poll = "getSteeringMessages" | "getFollowUpMessages";
type MaybePromise<T> = T | Promise<T>;

export function isEnding(value: Incoming[] | Ending): value is Ending {
  return "outcome" in value;
}

export function abortedEnding(run: Run): Ending {
  return { outcome: "aborted", error: { message: `Aborted: ${run.abort.reasonText}` } };
}

/** Asks a hook, unless the run is stopping. Without a promise of the host it costs none. */
function ask<A>(
  run: Run,
  hook: "prepareNextTurn" | "shouldStopAfterTurn" | Poll,
  call: () => unknown,
  take: (answer: unknown) => A,
): MaybePromise<A | Ending> {
  if (isStopping(run)) return abortedEnding(run);
  const fail = (error: unknown): Ending =>
    run.abort.aborted ? abortedEnding(run) : { outcome: "error", error: { message: `${hook} failed: ${errorText(error)}` } };
  const settle = (answer: unknown): A | Ending => {
    try {
      return take(answer);
    } catch (error) {
      return fail(error);
    }
  };
  try {
    const answer = call();
    return isThenable(answer) ? Promise.resolve(answer).then(settle, fail) : settle(answer);
  } catch (error) {
    return fail(error);
  }
}

/** The answer of a hook that an abort does not wait for. */
function raced(run: Run, answer: unknown): unknown {
  return isThenable(answer) ? run.abort.race(answer) : answer;
}

export function askToPrepare(run: Run, answer: AssistantMessage, results: ToolResultMessage[]): MaybePromise<Ending | undefined> {
  const call = (): unknown => raced(run, run.config.prepareNextTurn?.(turnContext(run, answer, results), run.abort.signal));
  return ask(run, "prepareNextTurn", call, (next) => {
    if (next === ABORTED || isStopping(run)) return abortedEnding(run);
    if (next) applyNextTurn(run, next as NextTurn);
    return undefined;
  });
}

export function askToStop(run: Run, answer: AssistantMessage, results: ToolResultMessage[]): MaybePromise<Ending | undefined> {
  const call = (): unknown =>
    raced(run, run.config.shouldStopAfterTurn?.(Object.assign(turnContext(run, answer, results), { turn: run.turn })));
  return ask(run, "shouldStopAfterTurn", call, (stop): Ending | undefined => {
    if (stop === ABORTED || isStopping(run)) return abortedEnding(run);
    return stop ? { outcome: "stopped" } : undefined;
  });
}

/**
 * Asks a queue. Not begun once the run is stopping; once begun it is waited for, and what it returns always reaches the
 * transcript, so that nothing taken from a queue is lost (SPEC 7.2).
 */
export function poll(run: Run, hook: Poll): MaybePromise<Incoming[] | Ending> {
  if (!run.config[hook]) return [];
  return ask(
    run,
    hook,
    () => run.config[hook]?.(),
    (polled) => {
      const messages = polled ?? [];
      if (!Array.isArray(messages)) {
        throw new TurnLoopError("invalid_argument", `it must return an array of messages; got ${describe(messages)}.`);
      }
      if (messages.length === 0) return isStopping(run) ? abortedEnding(run) : [];
      const usable = messages.filter((message) => refusalOf([message]) === undefined);
      // what is no message ends the run, but only in a turn that keeps what came with it
      if (usable.length > 0 && usable.length < messages.length) run.refusal = new Error(`${hook} failed: ${refusalOf(messages)}`);
      return takeIn(run.refusal ? usable : messages);
    },
  );
}

function refusalOf(messages: AgentMessage[]): string | undefined {
  try {
    takeIn(messages);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

function turnContext(run: Run, answer: AssistantMessage, results: ToolResultMessage[]): TurnContext {
  const context: TurnContext = {
    message: copyStored(answer),
    toolResults: results.map((result) => copyStored(result)),
    context: contextView(run),
    newMessages: [],
  };
  return setCopy(context, "newMessages", run.added);
}

/** How an Agent's state gets into a turn: asked for what has changed when the turn begins (SPEC 8.2). */
export const CHANGED_STATE: unique symbol = Symbol("changed state");

export function takeChangedState(run: Run): void {
  const ask = (run.config as { [CHANGED_STATE]?: () => NextTurn })[CHANGED_STATE];
  if (ask) applyNextTurn(run, ask());
}

/** A field that is left out keeps its value (SPEC 6.4). */
function applyNextTurn(run: Run, next: NextTurn): void {
  const { messages, systemPrompt, tools } = next.context ?? {};
  if (messages !== undefined && !Array.isArray(messages)) throw misuse("context.messages", "an array", messages);
  if (tools !== undefined && typeof Object(tools)[Symbol.iterator] !== "function")
    throw misuse("context.tools", "an iterable of tools", tools);
  if (messages) {
    run.transcript = messages.slice();
    run.requestLog = new RequestLog();
  }
  run.systemPrompt = systemPrompt ?? run.systemPrompt;
  run.toolSource = reusable(tools) ?? run.toolSource;
  run.model = next.model ?? run.model;
  run.streamOptions = next.streamOptions ?? run.streamOptions;
}
