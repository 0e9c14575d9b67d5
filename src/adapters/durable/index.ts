/**
 * Runs that survive a crash, on any engine that journals steps (SPEC 16). Needs no package.
 *
 * @module turnloop/durable
 */
import { describe, TurnLoopError } from "../../errors.js";
import type { StreamFn } from "../../stream.js";
import type { AgentTool } from "../../tool.js";
import { JournalClock } from "./clock.js";
import { durableStreamFn } from "./model-step.js";
import type { Step } from "./step.js";
import { durableTool } from "./tool-step.js";

export type { ModelStepInput, Step, StepInfo, ToolStepInput } from "./step.js";

export interface DurableOptions {
  /** The engine's way to run something once and to record what it gave. */
  step: Step;
  /** The model; decorators such as `withRetry` go around this one, inside the step. */
  streamFn: StreamFn;
  tools?: Iterable<AgentTool>;
  /** Begins the name of every step: unique for each run within one journal. */
  prefix: string;
  /** The time before the first record, in Unix milliseconds: the same on every replay. @default 0 */
  startedAt?: number;
  /** Milliseconds for each tool that has no `timeoutMs` of its own; both act inside the step. @default none */
  toolTimeoutMs?: number;
}

export interface DurableRun {
  /** What the run is given in place of its own. */
  streamFn: StreamFn;
  tools: AgentTool[];
  /** Goes into the run's configuration: no other clock may be used. */
  now: () => number;
}

/**
 * Makes each model call and each tool execution of one run a step of a journal: `<prefix>/model:<n>` and
 * `<prefix>/tool:<turn>:<index>:<name>`. A step whose result is recorded never runs again; one that was interrupted runs
 * again, so tools get its name as `call.idempotencyKey` (SPEC 16.4).
 *
 * On a replay hooks and polls run again: let them be deterministic, or call `step` themselves. Give no `toolTimeoutMs` in the
 * run's configuration but here. Throws `invalid_argument` for a missing step or prefix.
 *
 * @example
 * const run = durable({ step: (name, fn) => ctx.run(name, () => fn({})), streamFn, tools, prefix: runId, startedAt });
 * await runAgentLoop(prompts, { systemPrompt, messages, tools: run.tools }, { model, now: run.now }, emit, signal, run.streamFn);
 */
export function durable(options: DurableOptions): DurableRun {
  const { step, streamFn, tools = [], prefix, startedAt = 0, toolTimeoutMs } = options;
  expect(typeof step === "function", "step", "a function (name, fn, info)", step);
  expect(typeof streamFn === "function", "streamFn", "a function", streamFn);
  expect(typeof prefix === "string" && prefix !== "", "prefix", "a non-empty string, unique for each run", prefix);
  expect(Number.isFinite(startedAt), "startedAt", "a time in Unix milliseconds", startedAt);
  const clock = new JournalClock(startedAt);
  return {
    streamFn: durableStreamFn(step, streamFn, prefix, clock),
    tools: [...tools].map((tool) => durableTool(step, tool, prefix, clock, toolTimeoutMs)),
    now: clock.now,
  };
}

function expect(holds: boolean, name: string, expected: string, got: unknown): void {
  if (!holds) throw new TurnLoopError("invalid_argument", `durable: ${name} must be ${expected}; got ${describe(got)}.`);
}
