/** The conformance suite for StreamFns (SPEC 13.3). */
import type { Model, StreamFn } from "../../stream.js";
import { deltasProblem, orderProblem, terminalProblem } from "./check-events.js";
import { endingProblem, messageProblem, type StreamFnScenario } from "./check-message.js";
import { changedProblem, copiesProblem, SerialisationCounter, shownProblem } from "./check-partials.js";
import { type Call, type Limits, type RecordedCall, recordCall } from "./record-call.js";
import { deepFreeze, frozenProblem, requestFor, writtenProblem } from "./requests.js";

/**
 * Gives the StreamFn that answers as the scenario says, or undefined where there is none. Asked once or several times for
 * each scenario, when its tests run; each StreamFn is called once.
 */
export type MakeStreamFn = (scenario: StreamFnScenario) => StreamFn | undefined | Promise<StreamFn | undefined>;

/** What the suite needs of a test runner: vitest, jest, bun and what is shaped like them. */
export interface StreamFnTestOptions {
  /** Registers a test. A skipped scenario's tests call `skip` of their context where there is one, else they just pass. */
  test: (name: string, run: (...context: any[]) => Promise<void>) => unknown;
  /** The one matcher used is `toBe`, on strings. */
  expect: (actual: string) => { toBe(expected: string): unknown };
  /**
   * The StreamFn yields the same partial all the time and writes to it, which the loop accepts: partials are then not
   * checked for changes, and may be ahead of their deltas. @default false
   */
  livePartials?: boolean;
  /** The model each call is made with. @default { id: "conformance-model", provider: "conformance", api: "conformance" } */
  model?: Model;
  /** Milliseconds for a call that ends by itself. @default 4000 */
  timeoutMs?: number;
  /** Milliseconds for the end of a call after its signal has fired. @default 1000 */
  abortMs?: number;
  /** Milliseconds of silence after which the call of the scenario "hang" is aborted. @default 50 */
  quietMs?: number;
}

const FINISHING: readonly StreamFnScenario[] = ["text", "thinking", "calls", "length", "error"];

const SKIPPED = Symbol("skipped");

type Check = (record: RecordedCall, scenario: StreamFnScenario) => string | undefined;

/**
 * Registers the tests that every StreamFn must pass (SPEC 13.3). A failure says which rule of the contract is broken and
 * what was seen. Scenarios: `text` (a text, best in several deltas), `thinking` (thinking, then a text), `calls` (two tool
 * calls or more in one answer), `length` (cut by the limit of tokens), `error` (the call fails, at any point), `hang` (a
 * part of an answer or nothing, then silence until the signal fires). Uses real timers.
 *
 * @example
 * import { expect, test } from "vitest";
 * testStreamFn("my model", (scenario) => (scenario === "thinking" ? undefined : myModel(serverFor(scenario))), { test, expect });
 */
export function testStreamFn(name: string, makeStreamFn: MakeStreamFn, options: StreamFnTestOptions): void {
  const suite = new Suite(name, makeStreamFn, options);
  for (const scenario of FINISHING) suite.finishing(scenario);
  for (const scenario of ["text", "calls"] as const) suite.leavesRequestAlone(scenario);
  suite.countsSerialisation();
  for (const scenario of ["text", "error", "hang"] as const) {
    suite.aborted(scenario, "before", "a signal that has fired already ends the call as aborted");
  }
  suite.aborted("hang", "waiting", "an abort before the first event ends the call as aborted");
  suite.aborted("hang", "quiet", "an abort in the middle ends the call as aborted, with what had come");
}

class Suite {
  readonly #name: string;
  readonly #make: MakeStreamFn;
  readonly #options: StreamFnTestOptions;
  readonly #limits: Limits;

  constructor(name: string, make: MakeStreamFn, options: StreamFnTestOptions) {
    this.#name = name;
    this.#make = make;
    this.#options = options;
    const { timeoutMs = 4000, abortMs = 1000, quietMs = 50 } = options;
    this.#limits = { timeoutMs, abortMs, quietMs };
  }

  /** The checks that share one call. */
  finishing(scenario: StreamFnScenario): void {
    const { livePartials = false } = this.#options;
    let shared: Promise<RecordedCall | undefined> | undefined;
    const check = (title: string, find: Check): void =>
      this.#test(scenario, title, async () => {
        shared ??= this.#call(scenario);
        const record = await shared;
        return record ? find(record, scenario) : SKIPPED;
      });
    check("start comes first, and blocks in the order of their contentIndex", orderProblem);
    check("there is one terminal event and nothing after it", (record) => terminalProblem(record, this.#limits.timeoutMs));
    check("the deltas add up to the final message", deltasProblem);
    check("the final message is complete", messageProblem);
    check(scenario === "error" ? "the failure is an error event, not thrown" : "it ends as it should", endingProblem);
    check("the partials show the answer so far", (record) => shownProblem(record, livePartials));
    if (!livePartials) check("the partials do not change after they were yielded", changedProblem);
    check("a delta copies no other block", copiesProblem);
  }

  leavesRequestAlone(scenario: StreamFnScenario): void {
    this.#test(scenario, "the request is not written to", async () => {
      const { context } = requestFor(scenario);
      const usual = await this.#call(scenario, { context });
      const written = writtenProblem(context, scenario);
      if (!usual || written) return usual ? written : SKIPPED;
      const { context: deep, options } = requestFor(scenario);
      const request = { context: deepFreeze(deep), options: Object.freeze(options), model: Object.freeze(this.#model) };
      const frozen = await this.#call(scenario, request);
      return frozen ? frozenProblem(usual, frozen) : SKIPPED;
    });
  }

  countsSerialisation(): void {
    this.#test("text", "the text so far is not serialised again and again", async () => {
      const counter = new SerialisationCounter();
      try {
        const record = await this.#call("text", {}, () => counter.install());
        return record ? counter.problem(record) : SKIPPED;
      } finally {
        counter.uninstall();
      }
    });
  }

  aborted(scenario: StreamFnScenario, abort: NonNullable<Call["abort"]>, title: string): void {
    this.#test(scenario, title, async () => {
      const record = await this.#call(scenario, { abort });
      if (!record) return SKIPPED;
      if (!record.aborted)
        return `makeStreamFn("hang") must give a StreamFn that is silent until its signal fires; this one ended by itself.`;
      const problem = terminalProblem(record, this.#limits.abortMs) ?? endingProblem(record, "hang");
      return problem ?? orderProblem(record) ?? messageProblem(record) ?? deltasProblem(record);
    });
  }

  get #model(): Model {
    return { ...(this.#options.model ?? { id: "conformance-model", provider: "conformance", api: "conformance" }) };
  }

  async #call(scenario: StreamFnScenario, extra: Partial<Call> = {}, before?: () => void): Promise<RecordedCall | undefined> {
    const streamFn = await this.#make(scenario);
    if (!streamFn) return undefined;
    before?.();
    return recordCall(streamFn, { ...requestFor(scenario), model: this.#model, ...this.#limits, ...extra });
  }

  #test(scenario: StreamFnScenario, title: string, find: () => Promise<string | undefined | typeof SKIPPED>): void {
    const { test, expect } = this.#options;
    // a rest parameter: jest and bun take a function with a parameter for one that calls back
    test(`${this.#name}: ${scenario}: ${title}`, async (...context) => {
      const problem = await find();
      if (problem !== SKIPPED) expect(problem ?? "").toBe("");
      else if (typeof context[0]?.skip === "function") context[0].skip(`there is no StreamFn for "${scenario}"`);
    });
  }
}
