import { defineConfig } from "vitest/config";
import { alias } from "./vitest.config.js";

/** The web chat in a real browser: needs Debian's chromium, or another one in CHROMIUM_PATH. */
export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/web/**/*.test.ts"],
    globalSetup: "test/web/build-and-serve.ts",
    // the tests wait for the page far more than they work
    maxWorkers: 2,
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
