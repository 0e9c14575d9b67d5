import { defineConfig } from "tsup";

export default defineConfig({
  entry: ["examples/chat.ts", "examples/acp-agent.ts"],
  outDir: "dist-examples",
  format: "esm",
  target: "node20",
  platform: "node",
  clean: true,
});
