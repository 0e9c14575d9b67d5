import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** What the suite runs against: the sources, or one format of the built package. */
const target = process.env.TURNLOOP_TARGET ?? "src";
const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const dist = (name: string): string => file(`dist/${name}.${target === "cjs" ? "cjs" : "js"}`);
const alias =
  target === "src"
    ? {
        "turnloop/schema": file("src/schema.ts"),
        "turnloop/testing": file("src/testing/index.ts"),
        "turnloop/openai": file("src/adapters/openai/index.ts"),
        turnloop: file("src/index.ts"),
      }
    : {
        "turnloop/schema": dist("schema"),
        "turnloop/testing": dist("testing"),
        "turnloop/openai": dist("openai"),
        turnloop: dist("index"),
      };

export default defineConfig({
  resolve: { alias },
  test: {
    include: ["test/**/*.test.ts"],
    execArgv: ["--expose-gc"],
    env: { TURNLOOP_TARGET: target },
    server: { deps: { external: [/\/dist\/[\w-]+\.c?js$/] } },
    coverage: {
      include: ["src/**"],
      reporter: ["text-summary", "html"],
      thresholds: { statements: 95, branches: 90, functions: 95, lines: 95 },
    },
  },
});
