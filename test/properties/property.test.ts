import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { checkAll } from "./checks.js";
import { play } from "./interpret.js";
import { describeRun } from "./report.js";
import { type Act, call, type Scenario, type Sketch, scenarios, sketch, text } from "./scenario.js";
import type { World } from "./world.js";

const RUNS = Number(process.env.TURNLOOP_PROPERTY_RUNS) || 2000;
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
  timeout: 60_000 + RUNS * 30,
}, async () => {
  const holds = fc.asyncProperty(scenarios, async (scenario) => (await playAndCheck(scenario)).violations.length === 0);
  const result = await fc.check(holds, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  if (!result.failed) return;
  const { seed, numShrinks, counterexample } = result;
  const world = await playAndCheck((counterexample as [Scenario])[0]);
  expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}, ${numShrinks} shrinks\n${describeRun(world)}`);
});

// SPEC 7.2, 7.3
it.each<Act["wait"]>(["sync", "micro"])(
  "an abort at any point of a run, and some microtasks later, ends it and starts nothing (hooks answer %s)",
  { timeout: 60_000 },
  async (wait) => {
    const act = [{ act: "none", wait, odd: 0 }];
    const poll = { messages: 1, role: "user" as const, wait, throws: false };
    const run: Sketch = {
      answers: [{ blocks: [call({ args: 9 }), call({ args: 9 })] }, { blocks: [text], fault: { kind: "stall", after: 2, odd: 0 } }],
      tools: [{ prepare: "same", wait: wait === "sync" ? "sync" : "never" }],
      hooks: {
        transformContext: act,
        convertToLlm: act,
        getApiKey: act,
        beforeToolCall: act,
        afterToolCall: act,
        prepareNextTurn: act,
        shouldStopAfterTurn: act,
      },
      steering: [poll],
      followUp: [poll],
    };
    const { points } = await playAndCheck(sketch({ ...run, abort: { at: "point", n: -1 } }));
    expect(points).toBeGreaterThan(20);
    for (let n = 0; n < points; n++) {
      for (let microtasks = 0; microtasks < 6; microtasks++) {
        const { violations } = await playAndCheck(sketch({ ...run, abort: { at: "point", n, microtasks } }));
        expect(violations, `point ${n}, ${microtasks} microtasks later`).toEqual([]);
      }
    }
  },
);
