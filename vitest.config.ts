import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { entries } from "./entries.js";
import { propertyRuns } from "./test/runtimes/core-suite.js";

type Target = "src" | "esm" | "cjs";

/** What the suite runs against: the sources, or formats of the built package: `esm`, `cjs`, or `esm,cjs` for both in one go. */
const targets = (process.env.TURNLOOP_TARGET ?? "src").split(",") as Target[];

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const built = (name: string, target: Target): string => `dist/${name}.${target === "cjs" ? "cjs" : "js"}`;
const aliasOf = (target: Target) =>
  Object.entries(entries).map(([name, source]) => ({
    find: new RegExp(name === "index" ? "^turnloop$" : `^turnloop/${name}$`),
    replacement: file(target === "src" ? source : built(name, target)),
  }));
/** For what tests bundle themselves. */
export const alias = aliasOf((process.env.TURNLOOP_TARGET as Target | undefined) ?? "src");

/** They measure the process they are in: each has one of its own. All others share theirs. */
const measuring = ["test/leaks/*.test.ts", "test/field-reports/growth.test.ts", "test/security/{linear-time,hostile}.test.ts"];
/** They start the examples as processes, bundled from the sources. */
const processes = ["test/examples/{terminal,server,chat,acp-stdio,acp-acpx,server-host-process}.test.ts"];
/** What is the same whatever the target is: processes of the sources, files of the repository. */
const targetless = [...processes, "test/house.test.ts"];
const never = ["test/pi-ai/**", "test/web/**", "**/node_modules/**"];

function projectsOf(target: Target): TestProjectInlineConfiguration[] {
  const isBuilt = target !== "src";
  const common = {
    execArgv: ["--expose-gc"],
    env: { TURNLOOP_TARGET: target, ...(isBuilt && propertyRuns) },
    server: { deps: { external: [/\/dist\/[\w-]+\.c?js$/] } },
    testTimeout: 30_000, // finds what hangs; how fast a busy machine is, no test asks
    setupFiles: ["test/leaves-nothing.ts"],
  };
  const shared = {
    ...common,
    name: target,
    include: ["test/**/*.test.ts"],
    exclude: [...never, ...measuring, ...(isBuilt ? targetless : processes)],
    isolate: false,
  };
  const alone = { ...common, name: `${target}, alone`, include: isBuilt ? measuring : [...measuring, ...processes], exclude: never };
  return [shared, alone].map((test) => ({ resolve: { alias: aliasOf(target) }, test }));
}

export default defineConfig({
  test: {
    projects: targets.flatMap(projectsOf),
    reporters: ["default", "./test/properties/counts.ts"],
    // many tests wait for processes and servers: two files at a time, also where there are two cores
    maxWorkers: 2,
    coverage: {
      include: ["src/**"],
      reporter: ["text-summary", "html"],
      thresholds: { statements: 95, branches: 90, functions: 95, lines: 95 },
    },
  },
});
