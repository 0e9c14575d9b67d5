/**
 * Compares turnloop with the floor and with its peers: one process for each, asked in turn. Writes RESULTS.md.
 * `npm run bench:peers`; arguments choose scenarios, `--peers=a,b` peers, and then nothing is written.
 */
import { writeFileSync } from "node:fs";
import { LATENCIES, measureLatencies, measureRow, SCENARIOS } from "./measure.js";
import { PeerProcess } from "./peer-process.js";
import { report } from "./report.js";
import { bundleSize, importTimes, installedSize, versionOf } from "./sizes.js";

const FILES = ["floor", "turnloop", "turnloop-agent", "pi", "pi-agent", "ai", "openai-agents", "langchain", "tanstack"];

const chosen = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const chosenPeers = process.argv.find((argument) => argument.startsWith("--peers="))?.slice(8);
const files = chosenPeers ? ["floor", ...chosenPeers.split(",")] : FILES;
const isChosen = (name) => chosen.length === 0 || chosen.includes(name);
const started = Date.now();

const peers = [];
for (const file of files) {
  const { default: peer } = await import(`./peers/${file}.js`);
  peers.push({ ...peer, file, process: new PeerProcess(file), version: peer.module && versionOf(peer.module) });
}
const progress = (text) => process.stderr.write(`${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${text}\n`);

const rows = [];
try {
  for (const [scenario, [title, sizes]] of Object.entries(SCENARIOS)) {
    if (!isChosen(scenario)) continue;
    for (const n of sizes) {
      progress(`${title}, ${n}`);
      rows.push(
        await measureRow(
          peers,
          scenario,
          n,
          rows.filter((row) => row.scenario === scenario),
        ),
      );
    }
  }
  if (isChosen("latencies")) {
    progress(Object.values(LATENCIES).join(", "));
    rows.push(...(await measureLatencies(peers)));
  }
} finally {
  for (const peer of peers) peer.process.end();
}

const packages = [];
if (isChosen("sizes")) {
  const libraries = peers.filter(({ module }, i) => module && peers.findIndex((other) => other.module === module) === i);
  progress("import times");
  const times = importTimes(libraries);
  progress("sizes");
  for (const library of libraries) {
    const { module, version } = library;
    packages.push({ module, version, importMs: times.get(module), ...installedSize(module), ...(await bundleSize(library)) });
  }
}

const text = report({ peers, rows, packages, seconds: Math.round((Date.now() - started) / 1000) });
if (chosen.length === 0 && !chosenPeers) writeFileSync(new URL("RESULTS.md", import.meta.url), text);
console.log(text);
