/** Has workerd run the suite: one worker, whose modules are the suite and the files of the built package, asked once. */
import { spawn } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const build = join(import.meta.dirname, "build/workerd");

/** Modules find each other by the paths in their names; the first is the worker. */
const modules = [
  ["test/runtimes/build/workerd/worker.js", "worker.js"],
  ["dist/@sinclair/typebox", "typebox.js"],
  ...readdirSync(join(root, "dist"))
    .filter((name) => name.endsWith(".js"))
    .map((name) => [`dist/${name}`, `../../../../dist/${name}`]),
].map(([name, path]) => `(name = "${name}", esModule = embed "${path}")`);

// as a worker is that asks for nothing of Node's: at a later date it gets it unasked
writeFileSync(
  join(build, "config.capnp"),
  `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "suite", worker = (compatibilityDate = "2026-06-01", modules = [${modules.join(", ")}]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "suite")],
);
`,
);

const binary = join(import.meta.dirname, "node_modules/@cloudflare/workerd-linux-64/bin/workerd");
const child = spawn(binary, ["serve", "--control-fd=3", join(build, "config.capnp")], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
const listening = new Promise((resolve, reject) => {
  child.once("error", reject);
  child.once("exit", (code) => reject(new Error(`workerd ended with ${code}`)));
  child.stdio[3].once("data", (line) => resolve(JSON.parse(line)));
});

try {
  const { port } = await listening;
  const response = await fetch(`http://127.0.0.1:${port}/`);
  if (!response.ok) throw new Error(`the worker answered ${response.status}: ${await response.text()}`);
  const { failures, ...counts } = await response.json();
  for (const failure of failures) console.error(failure);
  console.log(JSON.stringify(counts));
  process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;
} finally {
  // it would wait for its requests
  child.kill("SIGKILL");
}
