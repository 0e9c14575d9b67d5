import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { entries } from "./entries.js";

type Target = "src" | "esm" | "cjs";

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const built = (name: string, target: Target): string => `dist/${name}.${target === "cjs" ? "cjs" : "js"}`;
const aliasOf = (target: Target) =>
  Object.entries(entries).map(([name, source]) => ({
    find: new RegExp(name === "index" ? "^turnloop$" : `^turnloop/${name}$`),
    replacement: file(target === "src" ? source : built(name, target)),
  }));

/** What the suite runs against: the sources, or formats of the built package: `esm`, `cjs`, or `esm,cjs` for both in one go. */
const targets = (process.env.TURNLOOP_TARGET ?? "src").split(",") as Target[];
/** For what tests bundle themselves. */
export const alias = aliasOf(targets[0] ?? "src");

/** They measure the process they are in, start others, or listen on ports: each has a process of its own. */
const alone = [
  "test/leaks/**",
  "test/field-reports/growth.test.ts",
  "test/security/linear-time.test.ts",
  "test/examples/{terminal,server,chat,acp-*,server-host*}.test.ts",
];
const excluded = ["test/pi-ai/**", "test/web/**", "**/node_modules/**"];

const common = (target: Target) => ({
  resolve: { alias: aliasOf(target) },
});
const projectsOf = (target: Target): TestProjectInlineConfiguration[] =>
  [
    {
      name: target,
      include: ["test/**/*.test.ts"],
      exclude: [...excluded, ...alone],
      isolate: false,
      setupFiles: ["test/shared-worker.ts"],
    },
    { name: `${target} alone`, include: alone.map((path) => path.replace(/\*\*$/, "**/*.test.ts")), exclude: excluded },
  ].map((test) => ({
    ...common(target),
    test: {
      ...test,
      testTimeout: 30_000, // finds what hangs; how fast a busy machine is, no test asks
      execArgv: ["--expose-gc"],
      env: { TURNLOOP_TARGET: target },
      server: { deps: { external: [/\/dist\/[\w-]+\.c?js$/] } },
    },
  }));

export default defineConfig({
  test: {
    projects: targets.flatMap(projectsOf),
    // many tests wait for processes and servers: two files at a time, also where there are two cores
    maxWorkers: 2,
    coverage: {
      include: ["src/**"],
      reporter: ["text-summary", "html"],
      thresholds: { statements: 95, branches: 90, functions: 95, lines: 95 },
    },
  },
});
