import { defineConfig } from "tsup";

/** turnloop is taken from the built package, by the paths of tsconfig.json. */
export default defineConfig({
  entry: ["chat.ts", "worker.ts", "test/scripted-worker.ts"],
  format: "esm",
  target: "node20",
  platform: "node",
  splitting: true,
  clean: true,
  external: [/^@restatedev\//],
});
