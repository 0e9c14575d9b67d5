/** One peer in a process of its own: runs what peers.js asks for and answers with times. `node --expose-gc worker.js <file>`. */
import { Latencies, scenarios } from "./work.js";

const { default: peer } = await import(`./peers/${process.argv[2]}.js`);
let work;
let converse;

/** Milliseconds of processor time so far, all threads of the process: what else runs on the machine does not count. */
function processorMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Runs the scenario, its results checked, until `ms` of processor time are over or it ran `most` times; the mean of a run. */
async function repeat(ms, most) {
  const start = processorMs();
  let runs = 0;
  do {
    if (work.name === "concurrent") await Promise.all(Array.from({ length: work.units }, () => converse()));
    else await converse();
    work.check();
    runs++;
  } while (runs < most && (ms === undefined || processorMs() - start < ms));
  return (processorMs() - start) / runs;
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

const commands = {
  /** Warms the scenario up; gives the milliseconds of a run: the only one, when that was `slowMs` or more. */
  async prepare({ scenario, n, warmUpMs, slowMs }) {
    work = scenarios[scenario](n);
    converse = peer.prepare(work);
    const first = await repeat(undefined, 1);
    if (first >= slowMs) return first;
    await repeat(warmUpMs, Number.POSITIVE_INFINITY);
    return repeat(undefined, 1);
  },

  /** The milliseconds of a run, from `runs` runs. */
  sample({ runs }) {
    return repeat(undefined, runs);
  },

  /** The medians of `runs` conversations, in microseconds. */
  async latencies({ runs }) {
    const latencies = new Latencies();
    const talk = peer.prepare(latencies);
    for (let i = 0; i < runs; i++) {
      await talk();
      latencies.check();
    }
    return { firstDelta: median(latencies.firstDelta), nextRequest: median(latencies.nextRequest) };
  },
};

process.on("message", async ({ command, ...options }) => {
  try {
    process.send({ value: await commands[command](options) });
  } catch (error) {
    process.send({ error: error instanceof Error ? error.message : String(error) });
  }
});
process.send({ value: "ready" });
