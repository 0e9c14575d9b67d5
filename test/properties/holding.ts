import fc from "fast-check";
import { expect } from "vitest";

/** Repeats a failure: the seed that it printed. */
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;

/** Plays `runs` values, each of which says what is wrong; a failure shows the smallest one with its seed. */
export function holding(runs: number, played: () => void) {
  return async <T>(arbitrary: fc.Arbitrary<T>, check: (value: T) => Promise<string[]>): Promise<void> => {
    const property = fc.asyncProperty(arbitrary, async (value) => {
      played();
      return (await check(value)).length === 0;
    });
    const { failed, seed, counterexample } = await fc.check(property, { numRuns: runs, ...(SEED !== undefined && { seed: SEED }) });
    if (!failed) return;
    const [value] = counterexample as [T];
    const wrong = await check(value).catch((error: unknown) => [String((error as Error).stack)]);
    expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}\n${wrong.join("\n")}\n${JSON.stringify(value)}`);
  };
}
