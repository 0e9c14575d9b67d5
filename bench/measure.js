/** What is measured, and how: interleaved rounds over the peers' processes. */

/** name: [title, sizes, what one unit is] */
export const SCENARIOS = {
  turns: ["turns of one call", [10, 100, 1000, 3000], "turn"],
  deltas: ["deltas, all buffered", [1000, 10_000, 100_000], "delta"],
  pacedDeltas: ["deltas, one a tick", [1000, 10_000, 100_000], "delta"],
  fanOut: ["calls of one answer", [10, 100, 1000], "call"],
  bigArguments: ["1 MB of arguments", [1], "call"],
  concurrent: ["conversations at once", [1000, 10_000], "conversation"],
};

export const LATENCIES = { firstDelta: "first delta to listener", nextRequest: "settled tool to next request" };

const ROUNDS = 5;
/** Until V8 has compiled what is measured: at 400 a short conversation through an Agent measured twice what it costs. */
const WARM_UP_MS = 1200;
const SAMPLE_MS = 50;
/** A run that takes longer is not measured, one that takes more than a second is measured once. */
const LIMIT_MS = 20_000;
const SLOW_MS = 1000;
/** On the clock: the others are processor time, which a busy machine does not stretch. */
const PATIENCE_MS = 90_000;

export const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** One row: for each peer `{ us, ratio }` per unit, or `{ reason }`. The first peer is what the ratios are to. */
export async function measureRow(peers, scenario, n, rowsBefore) {
  const cells = new Map();
  const running = [];
  for (const peer of peers) {
    const expected = expectedMs(rowsBefore, peer, n);
    if (typeof expected === "string") cells.set(peer.file, { reason: expected });
    else if (expected > LIMIT_MS) cells.set(peer.file, { reason: `left out: about ${Math.round(expected / 1000)} s for one run` });
    else await prepare(peer, scenario, n, cells, running);
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const entry of running) {
      if (entry.slow && round > 0) continue;
      try {
        const first = entry.slow ? entry.ms : await entry.peer.process.ask("sample", { runs: entry.runs });
        entry.samples.push(first);
      } catch (error) {
        entry.failure = error.message;
      }
    }
  }
  const floor = running[0];
  for (const { peer, samples, failure } of running) {
    if (failure) cells.set(peer.file, { reason: failure });
    else cells.set(peer.file, { ms: median(samples), us: (median(samples) * 1000) / n, ratio: ratio(samples, floor.samples) });
  }
  return { scenario, n, cells };
}

/** The median of the rounds' ratios; a slow peer has one sample, and is compared with the median. */
function ratio(samples, floor) {
  return samples.length === floor.length ? median(samples.map((time, round) => time / floor[round])) : median(samples) / median(floor);
}

async function prepare(peer, scenario, n, cells, running) {
  try {
    const ms = await peer.process.ask("prepare", { scenario, n, warmUpMs: WARM_UP_MS, slowMs: SLOW_MS }, PATIENCE_MS);
    const slow = ms >= SLOW_MS;
    running.push({ peer, ms, slow, runs: Math.max(1, Math.round(SAMPLE_MS / ms)), samples: [] });
  } catch (error) {
    cells.set(peer.file, { reason: error.message });
  }
}

/** What the smaller sizes lead to expect, or why it is not measured. */
function expectedMs(rowsBefore, peer, n) {
  const before = rowsBefore.map((row) => ({ n: row.n, ...row.cells.get(peer.file) }));
  const last = before.at(-1);
  if (!last) return 0;
  if (last.reason) return `left out: ${last.n.toLocaleString("en")} was too much already`;
  const known = before.filter(({ ms }) => ms > 1);
  const exponent = known.length > 1 ? Math.max(1, growthOf(known.slice(-2))) : 1;
  return last.ms * (n / last.n) ** exponent;
}

/** The slope of log(time) over log(n): 1 is linear. */
export function growthOf(points) {
  const xs = points.map(({ n }) => Math.log(n));
  const ys = points.map(({ ms }) => Math.log(ms));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [mx, my] = [mean(xs), mean(ys)];
  const covariance = xs.reduce((sum, x, i) => sum + (x - mx) * (ys[i] - my), 0);
  return covariance / xs.reduce((sum, x) => sum + (x - mx) ** 2, 0);
}

/** Latency rows, as `measureRow` gives them. */
export async function measureLatencies(peers) {
  const samples = new Map(peers.map(({ file }) => [file, []]));
  const failures = new Map();
  for (let round = -1; round < ROUNDS; round++) {
    for (const { file, process } of peers) {
      if (failures.has(file)) continue;
      try {
        const latencies = await process.ask("latencies", { runs: 200 });
        if (round >= 0) samples.get(file).push(latencies);
      } catch (error) {
        failures.set(file, error.message);
      }
    }
  }
  return Object.keys(LATENCIES).map((name) => {
    const timesOf = (file) => samples.get(file).map((latencies) => latencies[name]);
    const floor = timesOf(peers[0].file);
    const cellOf = (file) =>
      failures.has(file) ? { reason: failures.get(file) } : { us: median(timesOf(file)), ratio: ratio(timesOf(file), floor) };
    return { scenario: name, n: 1, cells: new Map(peers.map(({ file }) => [file, cellOf(file)])) };
  });
}
