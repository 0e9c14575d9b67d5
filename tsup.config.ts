import { defineConfig } from "tsup";
import { entries } from "./entries.js";

export default defineConfig({
  // Agent and the loop in files of their own: a bundler cannot leave out a class that extends another one, but a whole file it can
  entry: { ...entries, agent: "src/agent/agent.ts", loop: "src/loop/loop.ts" },
  format: ["esm", "cjs"],
  target: "es2022",
  platform: "neutral",
  clean: true,
  splitting: true,
  // bundled: importing TypeBox's value module costs 97 ms, its Check alone 3 (docs/CONTRACT.md 14.2)
  noExternal: ["@cfworker/json-schema", "eventemitter3", /^@sinclair\/typebox\/value/],
  removeNodeProtocol: false,
  external: [/^node:/],
  dts: { compilerOptions: { ignoreDeprecations: "6.0", types: ["node"] } },
});
