/** What an engine offers, and what is the same for model and tool steps (SPEC 16.1, 16.2). */
import { errorText, InterruptedRun } from "../../errors.js";
import type { LlmContext, Model } from "../../stream.js";

export interface ModelStepInput {
  model: Model;
  context: LlmContext;
  /** Without key, signal and headers. */
  options: Record<string, unknown>;
}

export interface ToolStepInput {
  toolCallId: string;
  toolName: string;
  args: unknown;
  /** The step's name. */
  idempotencyKey: string;
}

/** What a step is about, for engines that cannot take closures. Plain JSON as far as the host's models and arguments are. */
export type StepInfo = { kind: "model"; input: ModelStepInput } | { kind: "tool"; input: ToolStepInput };

/**
 * Runs `fn` and records what it resolves with, plain JSON; or resolves with what was recorded under that name, without
 * running it. `signal` ends this attempt of the step and nothing else: the engine will run it again. A rejection ends the run.
 */
export type Step = <T>(name: string, fn: (attempt: { signal?: AbortSignal }) => Promise<T>, info: StepInfo) => Promise<T>;

/** Runs a step; when the engine gives none of its results, the run cannot go on (SPEC 16.2). */
export async function runStep<T>(
  step: Step,
  name: string,
  fn: (attempt: { signal?: AbortSignal }) => Promise<T>,
  info: StepInfo,
): Promise<T> {
  try {
    return await step(name, fn, info);
  } catch (error) {
    throw new InterruptedRun(`Step "${name}" was not recorded: ${errorText(error)}`, { cause: error });
  }
}

/** A signal that fires with either: the run's, whose abort is recorded, or the attempt's, which is not. */
export function eitherSignal(run: AbortSignal | undefined, attempt: AbortSignal | undefined): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const sources = [run, attempt].filter((source) => source !== undefined);
  const onAbort = (): void => {
    const source = sources.find(({ aborted }) => aborted);
    controller.abort(source?.reason);
  };
  for (const source of sources) source.addEventListener("abort", onAbort);
  if (sources.some(({ aborted }) => aborted)) onAbort();
  return {
    signal: controller.signal,
    release: () => {
      for (const source of sources) source.removeEventListener("abort", onAbort);
    },
  };
}

/** Rejects when this attempt of the step is to end: what it would give must not be recorded. */
export function unlessEnded<T>(attempt: AbortSignal | undefined, value: Promise<T>): Promise<T> {
  if (!attempt) return value;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(attempt.reason ?? new Error("the attempt of the step was ended"));
    const settle = (end: () => void): void => {
      attempt.removeEventListener("abort", onAbort);
      if (attempt.aborted) onAbort();
      else end();
    };
    attempt.addEventListener("abort", onAbort);
    value.then(
      (settled) => settle(() => resolve(settled)),
      (error: unknown) => settle(() => reject(error)),
    );
    if (attempt.aborted) onAbort();
  });
}

/** A copy through JSON: what the journal will give back. */
export function throughJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value));
}
