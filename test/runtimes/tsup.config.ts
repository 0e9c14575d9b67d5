/** The core suite in one file, for runtimes that vitest has no processes for. What it tests stays outside: the built package. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type Options } from "tsup";
import { coreAdapters, coreFolders, needsNode } from "./core-suite.js";

type Plugin = NonNullable<Options["esbuildPlugins"]>[number];

const tests = join(import.meta.dirname, "..");
const build = join(import.meta.dirname, "build");
const built = "../../../../dist";

const namesIn = (folder: string): string[] => readdirSync(join(tests, folder)).map((name) => join(folder, name));
const files = [
  ...coreFolders.flatMap(namesIn),
  ...namesIn("adapters").filter((name) => name.startsWith(`adapters/${coreAdapters}`)),
].filter((name) => name.endsWith(".test.ts") && !needsNode.includes(name));

/** The suite's files, and where their imports lead. */
const suite = (standIns: boolean): Plugin => ({
  name: "core-suite",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^virtual:core-suite$/ }, ({ path }) => ({ path, namespace: "virtual" }));
    onLoad({ filter: /./, namespace: "virtual" }, () => ({
      resolveDir: tests,
      contents: `export default { ${files.map((file) => `${JSON.stringify(`test/${file}`)}: () => import("./${file}")`)} }`,
    }));
    onResolve({ filter: /^turnloop(\/|$)/ }, ({ path }) => ({
      path: `${built}/${path.replace(/^turnloop\/?/, "") || "index"}.js`,
      external: true,
    }));
    // workerd, which looks in no folder, looks for it beside the module that imports it
    onResolve({ filter: /^@sinclair\/typebox$/ }, ({ path }) => ({ path: standIns ? `${built}/${path}` : path, external: true }));
    if (standIns) onResolve({ filter: /^node:(events|util)$/ }, () => ({ path: join(import.meta.dirname, "node-stand-in.ts") }));
  },
});

const common: Options = {
  format: "esm",
  target: "es2022",
  platform: "browser",
  noExternal: [/^[^:]*$/],
  removeNodeProtocol: false,
  splitting: true,
  silent: true,
  config: false,
  esbuildOptions: (options) => void Object.assign(options, { charset: "utf8" }),
};

export default defineConfig([
  { ...common, entry: ["test/runtimes/main.ts"], outDir: join(build, "node"), esbuildPlugins: [suite(false)], external: [/^node:/] },
  {
    ...common,
    entry: { worker: "test/runtimes/worker.ts", typebox: "node_modules/@sinclair/typebox/build/esm/index.mjs" },
    outDir: join(build, "workerd"),
    // in one file, where a module is loaded when it is asked for: workerd loads those of other files outside of the request
    splitting: false,
    esbuildPlugins: [suite(true)],
  },
]);
