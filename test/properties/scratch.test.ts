import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { it, vi } from "vitest";
import { checkAll } from "./checks.js";
import { play } from "./interpret.js";
import { describeRun } from "./report.js";
import { scenarios } from "./scenario.js";

const N = Number(process.env.N ?? 1000),
  SEED = Number(process.env.SEED ?? 1),
  CAT = process.env.CAT;
const key = (v: string) => v.replace(/\d+/g, "#").slice(0, Number(process.env.KEYLEN ?? 34));
const one = async (s: any) => {
  const p = await play(s);
  try {
    checkAll(p);
  } catch (e) {
    p.world.fail("CHECK CRASH " + (e as Error).stack);
  }
  return p.world;
};
it("explore", { timeout: 600000 }, async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
  const skip = (process.env.SKIP ?? "").split("|").filter(Boolean);
  if (CAT) {
    const r = await fc.check(
      fc.asyncProperty(
        scenarios,
        async (s) => !(await one(s)).violations.some((v) => v.startsWith(CAT) && !skip.some((k) => v.includes(k))),
      ),
      { numRuns: N, seed: SEED },
    );
    const out = r.failed
      ? `seed ${r.seed} shrinks ${r.numShrinks} runs ${r.numRuns}\n` + describeRun(await one(r.counterexample![0]))
      : "none in " + r.numRuns;
    vi.useRealTimers();
    writeFileSync("/tmp/explore.txt", out);
    return;
  }
  const cats = new Map<string, number>();
  const ex = new Map<string, string>();
  const t0 = performance.now();
  let turns = 0,
    ev = 0;
  const outcomes = new Map<string, number>();
  for (const s of fc.sample(scenarios, { numRuns: N, seed: SEED })) {
    const w = await one(s);
    ev += w.sinkCalls.length;
    turns += w.modelCalls.length;
    const last = w.sinkCalls.at(-1)?.event as any;
    const o = last?.type === "agent_end" ? JSON.parse(w.sinkCalls.at(-1)!.json).outcome : "cut";
    outcomes.set(o, (outcomes.get(o) ?? 0) + 1);
    for (const k of new Set(w.violations.map(key))) {
      cats.set(k, (cats.get(k) ?? 0) + 1);
      if (!ex.has(k)) ex.set(k, w.violations.find((v) => key(v) === k)!);
    }
  }
  const ms = performance.now() - t0;
  vi.useRealTimers();
  writeFileSync(
    "/tmp/explore.txt",
    [
      `${ms} ms, ${ev / N} events, ${turns / N} model calls`,
      JSON.stringify([...outcomes]),
      ...[...cats].sort((a, b) => b[1] - a[1]).map(([k, n]) => `${n}  ${k}\n      ${ex.get(k)!.slice(0, 700)}`),
    ].join("\n"),
  );
});
