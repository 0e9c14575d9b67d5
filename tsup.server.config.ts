import { defineConfig } from "tsup";

/** The server and the script of its page, side by side. */
export default defineConfig({
  entry: { main: "examples/server/main.ts", page: "examples/server/page/page.ts" },
  outDir: "dist-examples/server",
  publicDir: "examples/server/page/static",
  format: "esm",
  target: "es2022",
  platform: "node",
  // a browser finds no packages, so the page takes all along; `openai` is the server's, and only when a model is named
  noExternal: [/^(?!openai)/],
  splitting: false,
  clean: true,
});
