import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { entries } from "./entries.js";

/** What the suite runs against: the sources, or one format of the built package. */
const target = process.env.TURNLOOP_TARGET ?? "src";
const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const built = (name: string): string => `dist/${name}.${target === "cjs" ? "cjs" : "js"}`;
export const alias = Object.entries(entries).map(([name, source]) => ({
  find: new RegExp(name === "index" ? "^turnloop$" : `^turnloop/${name}$`),
  replacement: file(target === "src" ? source : built(name)),
}));

export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/pi-ai/**", "test/web/**", "**/node_modules/**"],
    execArgv: ["--expose-gc"],
    // many tests wait for processes and servers: two files at a time, also where there are two cores
    maxWorkers: 2,
    env: { TURNLOOP_TARGET: target },
    server: { deps: { external: [/\/dist\/[\w-]+\.c?js$/] } },
    coverage: {
      include: ["src/**"],
      reporter: ["text-summary", "html"],
      thresholds: { statements: 95, branches: 90, functions: 95, lines: 95 },
    },
  },
});
