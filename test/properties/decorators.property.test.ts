import fc from "fast-check";
import { type StreamFn, type ThinkingEvent, withFallback, withRetry, withStallTimeout, withThinkingCard } from "turnloop";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { model } from "../helpers.js";
import { checkAll } from "./checks.js";
import { play } from "./interpret.js";
import { describeRun } from "./report.js";
import { counter, runsOf, timeoutOf } from "./runs.js";
import { type Scenario, type Sketch, scenarios, sketch } from "./scenario.js";
import type { World } from "./world.js";

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

/** What becomes of the events of a card at the host's. */
const HEARD = ["at once", "later", "throws", "rejects", "hangs"] as const;
type Heard = (typeof HEARD)[number];

function hear(heard: Heard): void | Promise<void> {
  if (heard === "throws") throw new Error("onProgress");
  if (heard === "rejects") return Promise.reject(new Error("onProgress"));
  if (heard === "hangs") return new Promise(() => {});
  return heard === "later" ? Promise.resolve() : undefined;
}

/** The decorators around a StreamFn, the first one outermost. */
function decorated(names: readonly Decorator[], streamFn: StreamFn, cards: ThinkingEvent[], heard: Heard): StreamFn {
  return names.reduceRight<StreamFn>((inner, name) => {
    if (name === "retry") return withRetry(inner, { maxRetries: 2, minDelayMs: 10, maxDelayMs: 50, shouldRetry: () => true });
    if (name === "stall") return withStallTimeout(inner, { firstEventMs: 30, idleMs: 20 });
    if (name === "fallback") return withFallback([{ streamFn: inner }, { streamFn: inner }]);
    const onProgress = (event: ThinkingEvent): void | Promise<void> => {
      cards.push(event);
      return hear(heard);
    };
    return withThinkingCard(inner, { heartbeatMs: 15, onProgress, onError: () => {} });
  }, streamFn);
}

/** A message that is written to after its terminal event has no copy yet while a decorator holds that event back. */
function tidy(scenario: Scenario): Scenario {
  return { ...scenario, answers: scenario.answers.map((answer) => ({ ...answer, garbage: "never" })) };
}

/** SPEC 9.4, 9.5: every start has exactly one complete, with its beats in between; one that fails is sent once more. */
function checkCards(world: World, cards: readonly ThinkingEvent[], heard: Heard): void {
  const completes = heard === "throws" || heard === "rejects" ? 2 : 1;
  for (const id of new Set(cards.map(({ cardId }) => cardId))) {
    const states = cards.filter(({ cardId }) => cardId === id).map(({ state }) => state);
    const beats = states.slice(1, -completes);
    const ends = states.slice(-completes);
    if (states[0] !== "start" || ends.some((state) => state !== "complete") || beats.some((state) => state !== "heartbeat"))
      world.fail(`9.4: a card is told of by ${states}`);
  }
}

async function violations(
  scenario: Scenario,
  names: readonly Decorator[],
  heard: Heard = "at once",
): Promise<{ wrong: string[]; report: string }> {
  const cards: ThinkingEvent[] = [];
  const run = await play(scenario, (streamFn) => decorated(names, streamFn, cards, heard));
  checkAll(run);
  const { world } = run;
  checkCards(world, cards, heard);
  return { wrong: world.violations, report: world.violations.length > 0 ? describeRun(world) : "" };
}

// SPEC 9.2 to 9.5, 11.1 to 11.3, 14.3, and what holds of every run
it(`every run keeps the contract with decorators around its model, nested in any way (${RUNS} runs)`, {
  timeout: timeoutOf(RUNS),
}, async () => {
  const nestings = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 4 });
  const holds = fc.asyncProperty(scenarios.map(tidy), nestings, fc.constantFrom(...HEARD), async (scenario, names, heard) => {
    played();
    return (await violations(scenario, names, heard)).wrong.length === 0;
  });
  const { failed, seed, counterexample } = await fc.check(holds, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  if (!failed) return;
  const [scenario, names, heard] = counterexample as [Scenario, Decorator[], Heard];
  const { report } = await violations(scenario, names, heard);
  expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}\n${names.join(" around ")}; onProgress: ${heard}\n${report}`);
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
