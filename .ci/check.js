/** `npm run check`: in two lanes, for two cores, what does not use both by itself. Says what each step took, and stops at the first failure of a lane. */
import { spawn } from "node:child_process";

const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

/** Shows what a step wrote when it is done. */
function run(step) {
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn("npm", ["run", "--silent", step], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.once("error", (error) => {
      output += error.stack;
    });
    child.once("close", (code) => {
      console.log(`\n== ${step}: ${code === 0 ? "passed" : "FAILED"}, ${seconds(started)}\n${output.trimEnd()}`);
      resolve(code === 0);
    });
  });
}

async function lane(...steps) {
  for (const step of steps) if (!(await run(step))) return false;
  return true;
}

const started = performance.now();
const lanes = await Promise.all([
  lane("check:types"),
  lane("build", "check:package", "check:size", "check:docs", "check:lint", "check:unused"),
]);
const passed = lanes.every(Boolean) && (await lane("check:coverage", "check:dist"));
console.log(`\n${passed ? "all checks passed" : "FAILED"}, ${seconds(started)}`);
process.exitCode = passed ? 0 : 1;
