/** What a card does to the life of a process. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "tsup";
import { expect, it, onTestFinished } from "vitest";
import { entries } from "../../entries.js";

it("cards that are never completed do not keep a process alive", async () => {
  // SPEC 9.4
  const folder = mkdtempSync(join(tmpdir(), "turnloop-process-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const target = { src: entries.index, esm: "dist/index.js", cjs: "dist/index.cjs" }[process.env.TURNLOOP_TARGET ?? "src"] as string;
  const text = `
    import { ThinkingCard } from ${JSON.stringify(resolve(import.meta.dirname, "../..", target))};
    const onProgress = ({ state }) => { console.log(state); return new Promise(() => {}); };
    for (const showAfterMs of [0, 3_600_000]) new ThinkingCard({ onProgress, showAfterMs, heartbeatMs: 3_600_000 }).start();`;
  writeFileSync(join(folder, "open.ts"), text);
  const entry = { open: join(folder, "open.ts") };
  await build({
    entry,
    outDir: folder,
    format: "esm",
    platform: "node",
    noExternal: [/./],
    outExtension: () => ({ js: ".mjs" }),
    config: false,
    silent: true,
  });
  expect(execFileSync(process.execPath, [join(folder, "open.mjs")], { encoding: "utf8", timeout: 30_000 })).toBe("start\n");
}, 60_000);
