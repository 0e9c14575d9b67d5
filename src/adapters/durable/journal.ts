/** What an engine offers, and the steps of one run on it (SPEC 16.1 to 16.3). */
import { describe, errorText, InterruptedRun } from "../../errors.js";
import { pause } from "../../loop/abort.js";
import type { LlmContext, Model } from "../../stream.js";
import type { ToolCallPosition } from "../../tool.js";

export interface ModelStepInput {
  /** Without headers and key, if it has any. */
  model: Model;
  context: LlmContext;
  /** Without key, signal and headers. */
  options: Record<string, unknown>;
}

export interface ToolStepInput {
  toolCallId: string;
  toolName: string;
  /** As the tool gets them: validated, defaults filled in. */
  args: unknown;
  /** With the step's name as `idempotencyKey`. */
  call: ToolCallPosition;
  /** Milliseconds a tool has to settle after an abort. */
  graceMs: number;
}

/** What a step is about, for engines that cannot take closures: `performStep` does it. Plain JSON as far as the host's models, options and arguments are. */
export type StepInfo = { kind: "model"; input: ModelStepInput } | { kind: "tool"; input: ToolStepInput };

/**
 * Runs `fn` and records what it resolves with, plain JSON; or resolves with what was recorded under that name, without
 * running it. `signal`, if the engine has one, ends this attempt of the step and nothing else: `fn` rejects, nothing is recorded, the engine runs it
 * again, at once or on a replay. When the step itself rejects, the run ends with outcome `error`.
 *
 * The steps of a batch are started together, and each settles on its own. An engine that settles them in the order of its
 * records replays an aborted run most faithfully.
 */
export type Step = <T>(name: string, fn: (attempt?: { signal?: AbortSignal }) => Promise<T>, info: StepInfo) => Promise<T>;

/** How long an engine may take to settle a step after the run was aborted, in milliseconds. */
const RECORDING_MS = 10_000;

export class Journal {
  readonly #step: Step;
  readonly #prefix: string;
  readonly #names = new Set<string>();
  readonly #onToolBegun = new Set<() => void>();
  #time: number;
  #turn = 0;
  /** How many tools of the turn have begun. */
  toolsBegun = 0;

  constructor(step: Step, prefix: string, startedAt: number) {
    this.#step = step;
    this.#prefix = prefix;
    this.#time = startedAt;
  }

  /** The clock of the run: it stands still but for what the records say. */
  readonly now = (): number => this.#time;

  /** A record has been taken in. */
  advance(at: number): void {
    if (at > this.#time) this.#time = at;
  }

  toolBegins(turn: number): void {
    if (turn !== this.#turn) this.toolsBegun = 0;
    this.#turn = turn;
    this.toolsBegun++;
    for (const check of this.#onToolBegun) check();
  }

  /**
   * Before a recorded abort takes effect: so many tools had begun by then, and what the later ones gave is recorded, too.
   * Where they do not begin, since the host has another limit by now, it does not wait for ever.
   */
  async untilToolsBegun(count: number, signal: AbortSignal): Promise<void> {
    if (this.toolsBegun >= count) return;
    const enough = new AbortController();
    const stop = (): void => enough.abort();
    const check = (): void => {
      if (this.toolsBegun >= count) stop();
    };
    this.#onToolBegun.add(check);
    signal.addEventListener("abort", stop);
    if (!signal.aborted) await pause(RECORDING_MS, enough.signal);
    this.#onToolBegun.delete(check);
    signal.removeEventListener("abort", stop);
  }

  stepName(name: string): string {
    return `${this.#prefix}/${name}`;
  }

  /** The record of a step. When there is none the run cannot go on: rejects with InterruptedRun (SPEC 16.2). */
  async record<T extends { at: number }>(
    name: string,
    perform: (own: AbortSignal | undefined) => Promise<T>,
    info: StepInfo,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const settled = new AbortController();
    try {
      if (this.#names.has(name))
        throw new Error("there was one of that name already. Call durable() anew for each run, with another prefix");
      this.#names.add(name);
      const record: T = await Promise.race([
        this.#step(name, (attempt) => perform(attempt?.signal), info),
        tooLate(signal, settled.signal),
      ]);
      if (!Number.isFinite(record?.at)) throw new Error(`step must resolve with what fn gave; got ${describe(record)}`);
      return record;
    } catch (error) {
      throw new InterruptedRun(`Step "${name}" was not recorded: ${errorText(error)}`, { cause: error });
    } finally {
      settled.abort();
    }
  }
}

/** Rejects when the run is aborted and the engine does not settle the step; never settles otherwise. */
function tooLate(signal: AbortSignal | undefined, settled: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = async (): Promise<void> => {
      if (await pause(RECORDING_MS, settled)) reject(new Error(`the engine did not settle it within ${RECORDING_MS} ms after the abort`));
    };
    if (signal?.aborted) onAbort();
    else signal?.addEventListener("abort", onAbort);
    settled.addEventListener("abort", () => signal?.removeEventListener("abort", onAbort));
  });
}
