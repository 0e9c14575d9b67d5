import { defineConfig } from "vitest/config";
import { alias } from "../../vitest.config.js";

export default defineConfig({ root: import.meta.dirname, resolve: { alias }, test: { include: ["*.test.ts"] } });
