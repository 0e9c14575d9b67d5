import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { checkAll } from "./checks.js";
import { play } from "./interpret.js";
import { describeRun } from "./report.js";
import { counter, runsOf, timeoutOf } from "./runs.js";
import { call, type Scenario, type Sketch, scenarios, sketch, text, type Wait } from "./scenario.js";
import type { World } from "./world.js";

const RUNS = runsOf("core", "TURNLOOP_PROPERTY_RUNS");
const played = counter("core");
const swept = counter("core, one disturbance at each point");
/** Repeats a failure: the seed that it printed. */
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function playAndCheck(scenario: Scenario): Promise<World> {
  const played = await play(scenario);
  checkAll(played);
  return played.world;
}

// SPEC 2.6, 3.3, 3.4, 4.5 to 4.10, 5.2 to 5.13, 6.1, 6.2, 7.1 to 7.5, 14.3
it(`every run keeps the contract, whatever model, tools, hooks, sink and abort do (${RUNS} runs)`, {
  timeout: timeoutOf(RUNS),
}, async () => {
  const holds = fc.asyncProperty(scenarios, async (scenario) => {
    played();
    return (await playAndCheck(scenario)).violations.length === 0;
  });
  const result = await fc.check(holds, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  if (!result.failed) return;
  const { seed, numShrinks, counterexample } = result;
  const world = await playAndCheck((counterexample as [Scenario])[0]);
  expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}, ${numShrinks} shrinks\n${describeRun(world)}`);
});

/** One long run, through everything; what answers at once in one, answers later in the other, where a tool hangs too. */
function longRun(wait: Wait): Sketch {
  const act = [{ act: "none", wait, odd: 0 }];
  const poll = { messages: 1, role: "user" as const, wait, throws: false };
  const hooks = [
    "transformContext",
    "convertToLlm",
    "getApiKey",
    "beforeToolCall",
    "afterToolCall",
    "prepareNextTurn",
    "shouldStopAfterTurn",
  ];
  const first = { blocks: [call({ args: 9 }), call({ args: 9, tool: 1 })] };
  return {
    answers: [
      wait === "sync" ? first : { ...first, fault: { kind: "noStart", after: 0, odd: 0 } },
      { blocks: [text], fault: { kind: "stall", after: 2, odd: 0 } },
    ],
    tools: [
      { prepare: "same", updates: 1 },
      { prepare: "same", updates: 1, wait: wait === "sync" ? 7 : "never" },
    ],
    hooks: Object.fromEntries(hooks.map((name) => [name, act])),
    steering: [poll],
    followUp: [poll],
  };
}

/** A run that ends with its first call suspended, while the other one took its time (SPEC 15.2). */
function suspendedRun(): Sketch {
  const run = longRun("sync");
  return { ...run, hooks: { ...run.hooks, beforeToolCall: [{ act: "suspend", wait: "micro", odd: 0 }] } };
}

const sweeps: [string, (n: number, m: number) => Sketch, number][] = [
  // SPEC 7.2, 7.3
  ["an abort at any point, and some microtasks later", (n, microtasks) => ({ abort: { at: "point", n, microtasks } }), 6],
  // SPEC 4.10
  [
    "a sink that fails at any event",
    (failAt, m) => ({ sink: { failAt, fail: (["throw", "reject", "late", "hang"] as const)[m] as "throw" } }),
    4,
  ],
  // SPEC 4.9
  ["a consumer that leaves after any event", (takes, m) => ({ entry: "stream", consumer: { takes, wait: m === 0 ? "sync" : 7 } }), 2],
];

it.each(sweeps)("%s leaves a whole run behind", { timeout: 60_000 }, async (_name, disturb, ways) => {
  const wrong: string[] = [];
  for (const [name, run] of Object.entries({ sync: longRun("sync"), micro: longRun("micro"), suspended: suspendedRun() })) {
    const { points } = await playAndCheck(sketch({ ...run, abort: { at: "point", n: -1 } }));
    expect(points).toBeGreaterThan(20);
    for (let n = 0; n < points; n++) {
      for (let m = 0; m < ways; m++) {
        swept();
        const { violations } = await playAndCheck(sketch({ ...run, ...disturb(n, m) }));
        wrong.push(...violations.map((text) => `${name} ${n} ${m}: ${text}`));
      }
    }
  }
  expect(wrong).toEqual([]);
});
