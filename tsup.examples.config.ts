import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["examples/chat.ts"],
  outDir: "dist-examples",
  format: "esm",
  target: "node20",
  platform: "node",
  clean: true,
});
