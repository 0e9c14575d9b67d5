/** RESULTS.md from what was measured. */
import { cpus, totalmem } from "node:os";
import { growthOf, LATENCIES, SCENARIOS } from "./measure.js";

/** Rows that must be within twice the floor. */
const BOUND = 2;
const BOUNDED = ["turns", "deltas", "pacedDeltas", "fanOut", "concurrent", ...Object.keys(LATENCIES)];
const MAX_GROWTH = 1.1;
const MAX_IMPORT_MS = 25;
const OURS = ["turnloop", "turnloop-agent"];

export function report({ peers, rows, packages, seconds }) {
  const [{ model, speed }] = cpus();
  const parts = [
    "# turnloop and its peers",
    `Written by \`npm run bench:peers\` on ${new Date().toISOString().slice(0, 10)} in ${seconds} s: ${model.trim()}${speed ? ` at ${speed} MHz` : ""}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.version}. What is measured and how each peer is driven: [README.md](README.md).`,
    `Versions: ${versions(peers)}.`,
  ];
  if (rows.length > 0) parts.push(...speedTables(peers, rows));
  if (packages.length > 0) parts.push("## Sizes", packageTable(packages));
  parts.push("## Targets", targets(peers, rows, packages));
  return `${parts.join("\n\n")}\n`;
}

const versions = (peers) =>
  [...new Map(peers.filter(({ module }) => module).map(({ module, version }) => [module, version]))]
    .map((pair) => pair.join(" "))
    .join(", ");

function speedTables(peers, rows) {
  const names = peers.map(({ name }) => name);
  const notes = [];
  const cell = (row, { file }) => {
    const { us, ratio, reason } = row.cells.get(file);
    if (reason) notes.push(`${titleOf(row)}, ${peers.find((peer) => peer.file === file).name}: ${reason}.`);
    return reason ? "–" : file === "floor" ? `${number(us)} us` : `${number(us)} us, **${number(ratio)}**`;
  };
  const body = rows.map((row) => [titleOf(row), ...peers.map((peer) => cell(row, peer))]);
  return [
    "## Speed",
    "Microseconds of processor time for one turn, delta, call or conversation, for the last two rows of the clock, and in bold how many times the floor's: medians of interleaved rounds.",
    table(["", ...names], body),
    ...(notes.length > 0 ? [notes.map((note) => `- ${note}`).join("\n")] : []),
    "## Growth",
    "The exponent of the whole time over N, from a fit of the logarithms: 1 is linear, 2 quadratic. Over the sizes that were measured, so a start-up that weighs on small sizes makes it smaller.",
    table(["", ...names], growthRows(peers, rows)),
  ];
}

function titleOf({ scenario, n }) {
  const title = LATENCIES[scenario] ?? SCENARIOS[scenario][0];
  return n === 1 ? title : `${n.toLocaleString("en")} ${title}`;
}

function growthRows(peers, rows) {
  return Object.entries(SCENARIOS)
    .filter(([scenario]) => rows.filter((row) => row.scenario === scenario).length > 1)
    .map(([scenario, [title]]) => [title, ...peers.map((peer) => growth(rows, scenario, peer)?.toFixed(2) ?? "–")]);
}

function growth(rows, scenario, { file }) {
  const points = rows
    .filter((row) => row.scenario === scenario && !row.cells.get(file).reason)
    .map((row) => ({ n: row.n, ms: row.cells.get(file).ms }));
  return points.length > 1 ? growthOf(points) : undefined;
}

function packageTable(packages) {
  const body = packages.map(({ module, version, importMs, bytes, packages: count, minified, brotli }) => [
    `${module} ${version}`,
    `${number(importMs)} ms`,
    `${number(bytes / 1e6)} MB in ${count}`,
    `${number(minified / 1000)} kB`,
    `${number(brotli / 1000)} kB`,
  ]);
  return table(["package", "import", "on disk, packages", "bundle, minified", "with brotli"], body);
}

/** Each target, what turnloop reaches, and where it misses. */
function targets(peers, rows, packages) {
  const ours = peers.filter(({ file }) => OURS.includes(file));
  const lines = [];
  const line = (target, misses) => lines.push(`- ${target}: ${misses.length === 0 ? "**met**." : `**missed** by ${misses.join("; ")}.`}`);
  for (const peer of ours) {
    const measured = rows.map((row) => ({ row, ...row.cells.get(peer.file) })).filter(({ reason }) => !reason);
    line(
      `${peer.name} within ${BOUND} times the floor`,
      measured
        .filter(({ row, ratio }) => BOUNDED.includes(row.scenario) && ratio > BOUND)
        .map(({ row, ratio }) => `${titleOf(row)} (${number(ratio)})`),
    );
    line(
      `${peer.name} grows with an exponent of at most ${MAX_GROWTH}`,
      Object.entries(SCENARIOS)
        .map(([scenario, [title]]) => [title, growth(rows, scenario, peer)])
        .filter(([, exponent]) => exponent > MAX_GROWTH)
        .map(([title, exponent]) => `${title} (${exponent.toFixed(2)})`),
    );
    line(
      `${peer.name} ahead of every peer in every row`,
      measured.flatMap(({ row, us }) => faster(peers, row, us)),
    );
  }
  const importMs = packages.find(({ module }) => module === "turnloop")?.importMs;
  if (importMs !== undefined) line(`import under ${MAX_IMPORT_MS} ms`, importMs > MAX_IMPORT_MS ? [`${number(importMs)} ms`] : []);
  return lines.join("\n");
}

const faster = (peers, row, us) =>
  peers
    .filter(({ file }) => file !== "floor" && !OURS.includes(file) && row.cells.get(file).us < us)
    .map(({ file, name }) => `${titleOf(row)} (${name} ${number(row.cells.get(file).us)} us, here ${number(us)})`);

/** Three digits are enough. */
const number = (value) => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(value < 1 ? 2 : 3));

function table(head, body) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...body.map(line)].join("\n");
}
