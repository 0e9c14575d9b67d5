import { defineConfig } from "vite";
import { alias } from "../../vitest.config.js";

export default defineConfig({
  base: "./",
  resolve: { alias },
  build: { outDir: "../../dist-web", emptyOutDir: true, target: "es2022" },
});
