import { fileURLToPath } from "node:url";
import { playwright } from "@vitest/browser-playwright";
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { entries } from "./entries.js";
import { coreAdapters, coreFolders, needsNode, propertyRuns } from "./test/runtimes/core-suite.js";

/** The core suite against the built package: in the Node that runs vitest, or in Chromium with TURNLOOP_RUNTIME=chromium. */
const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const built = Object.keys(entries).map((name) => ({
  find: new RegExp(name === "index" ? "^turnloop$" : `^turnloop/${name}$`),
  replacement: file(`dist/${name}.js`),
}));
const include = [...coreFolders.map((folder) => `${folder}/*.test.ts`), `adapters/${coreAdapters}*.test.ts`].map((path) => `test/${path}`);

const node: ViteUserConfig = {
  resolve: { alias: built },
  test: {
    include,
    isolate: false,
    setupFiles: ["test/leaves-nothing.ts"],
    maxWorkers: 2,
    execArgv: ["--expose-gc"],
    env: { TURNLOOP_TARGET: "esm", ...propertyRuns },
    server: { deps: { external: [/\/dist\/[\w-]+\.c?js$/] } },
  },
};

const chromium: ViteUserConfig = {
  resolve: { alias: [...built, { find: /^node:(events|util)$/, replacement: file("test/runtimes/node-stand-in.ts") }] },
  optimizeDeps: { include: ["@sinclair/typebox", "fast-check", "zod"] },
  test: {
    include,
    exclude: needsNode.map((name) => `test/${name}`),
    setupFiles: ["test/runtimes/host.ts", "test/runtimes/vitest-state.ts"],
    testTimeout: 30_000,
    browser: {
      enabled: true,
      headless: true,
      screenshotFailures: false,
      instances: [{ browser: "chromium" }],
      provider: playwright({
        launchOptions: {
          executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium",
          args: ["--no-sandbox", "--js-flags=--expose-gc"],
        },
      }),
    },
  },
};

export default defineConfig(process.env.TURNLOOP_RUNTIME === "chromium" ? chromium : node);
