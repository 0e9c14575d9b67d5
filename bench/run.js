/** Compares the loop with the floor: interleaved runs in one process, medians and ratios. `npm run bench`. */
import { performance } from "node:perf_hooks";
import { runAgentLoop, userMessage } from "../dist/index.js";
import { Type } from "../dist/schema.js";
import { minimalLoop } from "./minimal-loop.js";
import { deltas, fanOut, model, tool, turns } from "./scenarios.js";

const checkedTool = { ...tool, parameters: Type.Object({ x: Type.Number() }) };
const listener = () => {};

const floor = (streamFn) => minimalLoop([userMessage("go")], { messages: [], tools: [tool], model }, listener, streamFn);
const turnloop = (streamFn) =>
  runAgentLoop([userMessage("go")], { systemPrompt: "", messages: [], tools: [checkedTool] }, { model }, listener, undefined, streamFn);

/** Milliseconds of `repeat` runs in a row. */
async function time(loop, scenario, repeat) {
  globalThis.gc?.();
  const start = performance.now();
  for (let i = 0; i < repeat; i++) await loop(scenario());
  return performance.now() - start;
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** Per-unit microseconds of both, interleaved, so that a drift of the machine's speed hits both. */
async function compare(name, scenario, units, repeat, rounds = 9) {
  const times = { floor: [], turnloop: [] };
  for (let round = -2; round < rounds; round++) {
    const a = await time(floor, scenario, repeat);
    const b = await time(turnloop, scenario, repeat);
    if (round < 0) continue;
    times.floor.push(a);
    times.turnloop.push(b);
  }
  const perUnit = (values) => (median(values) * 1000) / (units * repeat);
  const ratio = median(times.turnloop.map((value, i) => value / times.floor[i]));
  const row = {
    scenario: name,
    "floor us": perUnit(times.floor).toFixed(3),
    "turnloop us": perUnit(times.turnloop).toFixed(3),
    ratio: ratio.toFixed(2),
  };
  return row;
}

const rows = [
  await compare("turns, N = 100", () => turns(100), 100, 40),
  await compare("turns, N = 1,000", () => turns(1000), 1000, 5),
  await compare("turns, N = 3,000", () => turns(3000), 3000, 2),
  await compare("deltas, N = 1,000", () => deltas(1000), 1000, 20),
  await compare("deltas, N = 100,000", () => deltas(100_000), 100_000, 1),
  await compare("deltas of 2,000 characters, N = 10,000", () => deltas(10_000, 2000), 10_000, 2),
  await compare("parallel calls, N = 10", () => fanOut(10), 10, 200),
  await compare("parallel calls, N = 1,000", () => fanOut(1000), 1000, 5),
];
console.log(`Node ${process.version}, ${process.platform} ${process.arch}; per unit, median of 9 interleaved rounds`);
console.table(rows);
