/**
 * Runs that survive a crash, on any engine that journals steps (SPEC 16). Needs no package.
 *
 * @module turnloop/durable
 */
import { describe, TurnLoopError } from "../../errors.js";
import type { StreamFn } from "../../stream.js";
import type { AgentTool } from "../../tool.js";
import { Journal, type Step, type StepInfo } from "./journal.js";
import { durableStreamFn, performModelStep } from "./model-step.js";
import { durableTool, performToolStep } from "./tool-step.js";

export type { ModelStepInput, Step, StepInfo, ToolStepInput } from "./journal.js";

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
 * again, so tools get its name as `call.idempotencyKey` (SPEC 16.4). Call it anew for each run, also for a resumed one.
 *
 * On a replay hooks and polls run again: let them be deterministic, or call `step` themselves. Time limits of tools act inside
 * the step (here `toolTimeoutMs`; the run's own has no effect on these tools), and so does the run's `abortGraceMs`.
 * Decorators that wait or measure time, such as `withRetry`, go around the model given here, not around what comes back.
 *
 * An abort by the run's caller is recorded with what it cut short, and a replay ends there too. An abort between two steps is
 * in no record: let the engine tell the run again, in the order of its records. Told earlier in a replay it ends the run there:
 * what is recorded behind it is not in that transcript. A sink that fails ends the run as ever, and nothing of that is recorded.
 * Only the tools that come back from here are durable, also where `prepareNextTurn` puts in others: give all of them.
 *
 * Throws `invalid_argument` for a missing step, streamFn or prefix, `invalid_tool` for what is no tool.
 *
 * @example
 * const records = new Map<string, string>(); // an engine keeps them on disk
 * const step: Step = async (name, fn) => {
 *   if (!records.has(name)) records.set(name, JSON.stringify(await fn()));
 *   return JSON.parse(records.get(name)!);
 * };
 * const run = durable({ step, streamFn, tools, prefix: runId, startedAt });
 * await runAgentLoop(prompts, { systemPrompt, messages, tools: run.tools }, { model, now: run.now }, emit, signal, run.streamFn);
 */
export function durable(options: DurableOptions): DurableRun {
  const { step, streamFn, tools = [], prefix, startedAt = 0, toolTimeoutMs = 0 } = Object(options) as DurableOptions;
  const expect = expecting("durable");
  expect(typeof step === "function", "step", "a function (name, fn, info)", step);
  expect(typeof streamFn === "function", "streamFn", "a function", streamFn);
  expect(typeof prefix === "string" && prefix !== "", "prefix", "a non-empty string, unique for each run", prefix);
  expect(Number.isFinite(startedAt), "startedAt", "a time in Unix milliseconds", startedAt);
  expect(typeof toolTimeoutMs === "number", "toolTimeoutMs", "a number of milliseconds", toolTimeoutMs);
  expectTools(expect, tools);
  const journal = new Journal(step, prefix, startedAt);
  return {
    streamFn: durableStreamFn(journal, streamFn),
    tools: [...tools].map((tool) => durableTool(journal, tool, toolTimeoutMs)),
    now: journal.now,
  };
}

export interface PerformStepOptions {
  /** The model; decorators such as `withRetry` go around it. Keys and headers are its own affair: `info` has none. */
  streamFn: StreamFn;
  /** Those of the run. */
  tools?: Iterable<AgentTool>;
  /** Fires when the run's caller aborts it: that is recorded. */
  signal?: AbortSignal;
  /** Fires when this attempt is to end without a record: rejects. */
  attempt?: AbortSignal;
  /** Milliseconds for each tool that has no `timeoutMs` of its own. @default none */
  toolTimeoutMs?: number;
}

/**
 * Does what a step is about and gives its record, in another process than the run's: for engines whose steps cannot be
 * closures. `info` and the record are plain JSON; `step` must resolve with the record. Deltas and updates are not shown.
 * Rejects when nothing may be recorded; with `invalid_tool` for a tool that is not among `tools`, with `invalid_argument` for
 * what is no `info`, and for a missing streamFn where a model is to be called.
 *
 * @example
 * // in the run: step = (name, _fn, info) => queue.call(name, info)
 * worker.handle((info: StepInfo, signal: AbortSignal) => performStep(info, { streamFn, tools, signal }));
 */
export async function performStep(info: StepInfo, options: PerformStepOptions): Promise<unknown> {
  const { streamFn, tools = [], signal, attempt, toolTimeoutMs } = Object(options) as PerformStepOptions;
  const { kind, input } = Object(info) as StepInfo;
  const expect = expecting("performStep");
  expect((kind === "model" || kind === "tool") && Object(input) === input, "info", "what step was given", info);
  if (kind === "model") {
    expect(typeof streamFn === "function", "streamFn", "a function", streamFn);
    return performModelStep(streamFn, input, signal, attempt);
  }
  expectTools(expect, tools);
  const tool = [...tools].find(({ name }) => name === input.toolName);
  if (tool) return performToolStep(tool, input, signal, attempt, toolTimeoutMs);
  throw new TurnLoopError("invalid_tool", `performStep: there is no tool ${describe(input.toolName)} among the given ones.`);
}

type Expect = (holds: boolean, name: string, expected: string, got: unknown) => void;

function expecting(caller: string): Expect {
  return (holds, name, expected, got) => {
    if (!holds) throw new TurnLoopError("invalid_argument", `${caller}: ${name} must be ${expected}; got ${describe(got)}.`);
  };
}

function expectTools(expect: Expect, tools: unknown): void {
  expect(typeof Object(tools)[Symbol.iterator] === "function", "tools", "an iterable of tools", tools);
}
