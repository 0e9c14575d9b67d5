import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { alias } from "../../vitest.config.js";
import { type Disturbance, type Plan, type PlannedCall, playSegment } from "./approvals.js";
import { live, type Play, undisturbed } from "./resume-life.js";

// SPEC 15.2, 15.3: what resume.property.test.ts plays, with a new process for each step
describe("in processes of their own", () => {
  let folder = "";
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "turnloop-"));
    await build({
      configFile: false,
      logLevel: "silent",
      resolve: { alias },
      ssr: { noExternal: true },
      build: { ssr: join(import.meta.dirname, "approvals-process.ts"), outDir: folder, target: "node20", minify: false },
    });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const inProcess: Play = (plan, transcript, disturbance) => {
    const input = JSON.stringify({ plan, transcript, disturbance });
    const { stdout, stderr, status } = spawnSync(process.execPath, [join(folder, "approvals-process.js")], { input, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    return { ...JSON.parse(stdout), events: [] };
  };
  const call = (suspends: boolean, more: Partial<PlannedCall> = {}): PlannedCall => ({
    suspends,
    decision: "approve",
    throws: false,
    sequential: false,
    takes: 2,
    ...more,
  });
  const plan = (via: Plan["via"], ...turns: PlannedCall[][]): Plan => ({ turns, via, toolExecution: "parallel", maxParallelToolCalls: 9 });

  it.each<[string, Plan, (Disturbance | null)[]]>([
    ["approved in the next process", plan("core", [call(false), call(true), call(false)]), []],
    ["asked in two turns, through an Agent", plan("agent", [call(true)], [call(true), call(false)]), []],
    [
      "gone while tools run, and again while the approved ones do",
      plan("core", [call(false), call(true)], [call(true)]),
      [
        { at: 12, by: "crash" },
        { at: 2, by: "crash" },
      ],
    ],
  ])("%s", async (_name, planned, disturbed) => {
    const { transcript, wrong } = await live(planned, disturbed, inProcess);
    expect(wrong).toEqual([]);
    expect(transcript).toEqual((await playSegment(undisturbed(planned), [], undefined)).transcript);
  });
});
