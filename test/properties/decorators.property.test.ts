import fc from "fast-check";
import { type StreamFn, type ThinkingEvent, withFallback, withRetry, withStallTimeout, withThinkingCard } from "turnloop";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { model } from "../helpers.js";
import { checkAll } from "./checks.js";
import { play } from "./interpret.js";
import { describeRun } from "./report.js";
import { counter, runsOf } from "./runs.js";
import { type Scenario, type Sketch, scenarios, sketch } from "./scenario.js";

const RUNS = runsOf("decorators", "TURNLOOP_DECORATOR_RUNS");
/** Repeats a failure: the seed that it printed. */
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;
const played = counter("decorators");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const NAMES = ["retry", "stall", "fallback", "card"] as const;
type Decorator = (typeof NAMES)[number];

/** The decorators around a StreamFn, the first one outermost. */
function decorated(names: readonly Decorator[], streamFn: StreamFn, cards: ThinkingEvent[]): StreamFn {
  return names.reduceRight<StreamFn>((inner, name) => {
    if (name === "retry") return withRetry(inner, { maxRetries: 2, minDelayMs: 10, maxDelayMs: 50, shouldRetry: () => true });
    if (name === "stall") return withStallTimeout(inner, { firstEventMs: 30, idleMs: 20 });
    if (name === "fallback") return withFallback([{ streamFn: inner }, { streamFn: inner }]);
    return withThinkingCard(inner, { heartbeatMs: 15, onProgress: (event) => void cards.push(event) });
  }, streamFn);
}

/** A message that is written to after its terminal event has no copy yet while a decorator holds that event back. */
function tidy(scenario: Scenario): Scenario {
  return { ...scenario, answers: scenario.answers.map((answer) => ({ ...answer, garbage: "never" })) };
}

async function violations(scenario: Scenario, names: readonly Decorator[]): Promise<{ wrong: string[]; report: string }> {
  const cards: ThinkingEvent[] = [];
  const run = await play(scenario, (streamFn) => decorated(names, streamFn, cards));
  checkAll(run);
  const { world } = run;
  // SPEC 9.4: every start has exactly one complete, with its beats in between
  const open = new Set<string>();
  for (const { state, cardId } of cards) {
    if (state === "start" ? open.has(cardId) : !open.has(cardId))
      world.fail(`9.4: ${state} of a card that is ${state === "start" ? "" : "not "}open`);
    if (state === "start") open.add(cardId);
    if (state === "complete") open.delete(cardId);
  }
  if (open.size > 0) world.fail(`9.4: ${open.size} cards are left open`);
  return { wrong: world.violations, report: world.violations.length > 0 ? describeRun(world) : "" };
}

// SPEC 9.2 to 9.5, 11.1 to 11.3, 14.3, and what holds of every run
it(`every run keeps the contract with decorators around its model, nested in any way (${RUNS} runs)`, {
  timeout: 60_000 + RUNS * 30,
}, async () => {
  const nestings = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 4 });
  const holds = fc.asyncProperty(scenarios.map(tidy), nestings, async (scenario, names) => {
    played();
    return (await violations(scenario, names)).wrong.length === 0;
  });
  const { failed, seed, counterexample } = await fc.check(holds, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  if (!failed) return;
  const [scenario, names] = counterexample as [Scenario, Decorator[]];
  const { report } = await violations(scenario, names);
  expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}\n${names.join(" around ")}\n${report}`);
});

/** Runs that once broke the contract, found by the property and cut down. */
const poll = (messages: number) => ({ messages, role: "user" as const, wait: "sync" as const, throws: false });
const unfinished = (result: "late" | "never"): Sketch => ({
  answers: [{ fault: { kind: "end", after: 0, odd: 0 }, result }],
  tools: [{}],
});
const found: [string, Decorator[], Sketch][] = [
  // SPEC 14.3
  ["a call that was given up does not wait for a late result()", ["stall", "retry"], unfinished("late")],
  ["nor for one that never comes, behind a card", ["stall", "retry", "card"], unfinished("never")],
  // SPEC 7.3
  [
    "no model call starts when the abort came while the decorators got going",
    ["retry", "retry"],
    {
      tools: [{}],
      steering: [poll(0), poll(1)],
      followUp: [poll(1)],
      abort: { at: "inside", n: 25, where: "getSteeringMessages", microtasks: 3 },
    },
  ],
];

it.each(found)("%s", async (_name, names, scenario) => {
  expect((await violations(sketch(scenario), names)).wrong).toEqual([]);
});

// SPEC 11.2, 14.3
it("a stream that comes when its time is over is closed, not read", async () => {
  const asked: string[] = [];
  const note = (what: string) => async () => {
    asked.push(what);
    return { done: true as const, value: undefined };
  };
  const late: StreamFn = () =>
    new Promise((resolve) => setTimeout(resolve, 40, { [Symbol.asyncIterator]: () => ({ next: note("next"), return: note("return") }) }));
  const events: string[] = [];
  const reading = (async () => {
    for await (const { type } of await withStallTimeout(late, { firstEventMs: 30, idleMs: 20 })(model, { messages: [] })) {
      events.push(type);
      await new Promise((resolve) => setTimeout(resolve, 20)); // whoever reads may be busy with it
    }
  })();
  await vi.advanceTimersByTimeAsync(100);
  await reading;
  expect([events, asked]).toEqual([["start", "error"], ["return"]]);
});
