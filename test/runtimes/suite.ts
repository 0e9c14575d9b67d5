/** Runs the core suite by vitest's own runner, without vitest's processes: in whatever runtime this bundle is loaded by. */
import "./vitest-state.js";
import files from "virtual:core-suite";
import { expect } from "vitest";
import { setSafeTimers, startTests } from "vitest/internal/browser";

export interface Report {
  passed: number;
  failed: number;
  skipped: number;
  /** What failed, with where and why; rejections that nobody handled. */
  failures: string[];
}

type RunnerConfig = Parameters<typeof startTests>[1]["config"];
type Task = Awaited<ReturnType<typeof startTests>>[number]["tasks"][number];

const config = {
  root: "/",
  setupFiles: [],
  sequence: { shuffle: false, concurrent: false, seed: 1, hooks: "stack", setupFiles: "list" },
  chaiConfig: undefined,
  maxConcurrency: 5,
  testTimeout: 30_000,
  hookTimeout: 30_000,
  retry: 0,
  tags: [],
  strictTags: false,
} as unknown as RunnerConfig;

export async function runSuite(): Promise<Report> {
  const report: Report = { passed: 0, failed: 0, skipped: 0, failures: [] };
  const onUnhandled = (reason: unknown): void => {
    report.failed++;
    report.failures.push(`unhandled rejection: ${(reason as Error)?.stack ?? reason}`);
  };
  process.on("unhandledRejection", onUnhandled);
  setSafeTimers();
  const ran = await startTests(Object.keys(files), {
    config,
    importFile: (path) => (files[path] as () => Promise<unknown>)(),
    onBeforeTryTask: ({ name }) => expect.setState({ assertionCalls: 0, currentTestName: name }),
  });
  process.off("unhandledRejection", onUnhandled);
  for (const file of ran) count(file, file.filepath, report);
  return report;
}

function count(task: Task, path: string, report: Report): void {
  const errors = task.result?.errors ?? [];
  for (const { message, stack } of errors) report.failures.push(`${path}: ${message}\n${stack}`);
  if (task.type === "suite") {
    if (errors.length > 0) report.failed++;
    for (const child of task.tasks) count(child, `${path} > ${child.name}`, report);
  } else if (task.result?.state === "pass") report.passed++;
  else if (task.result?.state === "fail") report.failed++;
  else report.skipped++;
}
