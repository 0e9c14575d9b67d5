import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { checkAll } from "./checks.js";
import { play } from "./interpret.js";
import { describeRun } from "./report.js";
import { type Scenario, scenarios } from "./scenario.js";
import type { World } from "./world.js";

const RUNS = Number(process.env.TURNLOOP_PROPERTY_RUNS) || 2000;
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function wrongWith(scenario: Scenario): Promise<World> {
  const played = await play(scenario);
  checkAll(played);
  return played.world;
}

// SPEC 2.6, 3.3, 3.4, 4.5 to 4.10, 5.2 to 5.13, 6.2, 7.1 to 7.5, 14.3
it(`every run keeps the contract, whatever model, tools, hooks, sink and abort do (${RUNS} runs)`, {
  timeout: 60_000 + RUNS * 30,
}, async () => {
  const holds = fc.asyncProperty(scenarios, async (scenario) => (await wrongWith(scenario)).violations.length === 0);
  const { failed, counterexample, seed, counterexamplePath, numShrinks } = await fc.check(holds, {
    numRuns: RUNS,
    ...(SEED !== undefined && { seed: SEED }),
  });
  if (!failed || !counterexample) return expect(failed).toBe(false);
  const world = await wrongWith(counterexample[0]);
  expect.fail(`seed ${seed}, path ${counterexamplePath}, ${numShrinks} shrinks\n${describeRun(world)}`);
});
