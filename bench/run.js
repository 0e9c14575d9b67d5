/** Compares the loop with the floor: interleaved runs in one process, medians and ratios. `npm run bench`. */
import { performance } from "node:perf_hooks";
import { Agent, runAgentLoop, userMessage } from "../dist/index.js";
import { Type } from "../dist/schema.js";
import { compareArguments } from "./arguments.js";
import { minimalLoop } from "./minimal-loop.js";
import { deltas, fanOut, model, tool, turns } from "./scenarios.js";

const checkedTool = { ...tool, parameters: Type.Object({ x: Type.Number() }) };
const listener = () => {};

const floor = (streamFn) => minimalLoop([userMessage("go")], { messages: [], tools: [tool], model }, listener, streamFn);
const turnloop = (streamFn) =>
  runAgentLoop([userMessage("go")], { systemPrompt: "", messages: [], tools: [checkedTool] }, { model }, listener, undefined, streamFn);

const agent = (streamFn) => {
  const held = new Agent({ model, streamFn, tools: [checkedTool] });
  held.subscribe(listener);
  return held.prompt("go");
};

/** Milliseconds of `repeat` runs in a row. */
async function time(loop, scenario, repeat) {
  globalThis.gc?.();
  const start = performance.now();
  for (let i = 0; i < repeat; i++) await loop(scenario());
  return performance.now() - start;
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** Per-unit microseconds of both, interleaved, so that a drift of the machine's speed hits both. */
async function compare(name, [baseName, base], [otherName, other], scenario, units, repeat, rounds = 9) {
  const times = { base: [], other: [] };
  for (let round = -2; round < rounds; round++) {
    const a = await time(base, scenario, repeat);
    const b = await time(other, scenario, repeat);
    if (round < 0) continue;
    times.base.push(a);
    times.other.push(b);
  }
  const perUnit = (values) => ((median(values) * 1000) / (units * repeat)).toFixed(3);
  const ratio = median(times.other.map((value, i) => value / times.base[i])).toFixed(2);
  return { scenario: name, [`${baseName} us`]: perUnit(times.base), [`${otherName} us`]: perUnit(times.other), ratio };
}

const scenarios = [
  ["turns, N = 100", () => turns(100), 100, 40],
  ["turns, N = 1,000", () => turns(1000), 1000, 5],
  ["turns, N = 3,000", () => turns(3000), 3000, 2],
  ["deltas, N = 1,000", () => deltas(1000), 1000, 20],
  ["deltas, N = 100,000", () => deltas(100_000), 100_000, 1],
  ["deltas of 2,000 characters, N = 10,000", () => deltas(10_000, 2000), 10_000, 2],
  ["parallel calls, N = 10", () => fanOut(10), 10, 200],
  ["parallel calls, N = 1,000", () => fanOut(1000), 1000, 5],
];

console.log(`Node ${process.version}, ${process.platform} ${process.arch}; per unit, median of 9 interleaved rounds`);
for (const pair of [
  [
    ["floor", floor],
    ["turnloop", turnloop],
  ],
  [
    ["turnloop", turnloop],
    ["Agent", agent],
  ],
]) {
  const rows = [];
  for (const [name, scenario, units, repeat] of scenarios) rows.push(await compare(name, ...pair, scenario, units, repeat));
  console.table(rows);
}

console.log(`Arguments of a tool call in deltas of 32 bytes: the vendor's client alone, and an adapter; CPU time`);
await compareArguments();
