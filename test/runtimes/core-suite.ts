/** The tests of the core, which run in every runtime, and those that cannot (SPEC 14.1). Names are from `test/`. */
export const coreFolders = [".", "conformance", "field-reports", "properties", "runtimes", "thinking"];
/** Of the adapters, what talks to nobody: durable runs, on a journal in memory. */
export const coreAdapters = "durable-";

/** Need Node by nature: files of the repository, processes, standard streams, Node's test runner, an adapter for Node. */
export const needsNode = [
  "house.test.ts",
  "readme.test.ts",
  "conformance/node-test.test.ts",
  "properties/acp.property.test.ts",
  "properties/resume-process.test.ts",
  "thinking/process.test.ts",
  "thinking/raw-text-process.test.ts",
];

/**
 * Fewer than from the sources: what is asked here is whether the runtime, or the build, carries the loop, not whether the loop is right.
 * Not too few: these tests fail when what they are after never came up.
 */
export const propertyRuns = {
  TURNLOOP_PROPERTY_RUNS: "200",
  TURNLOOP_QUEUE_RUNS: "100",
  TURNLOOP_DECORATOR_RUNS: "50",
  TURNLOOP_RESUME_RUNS: "100",
  TURNLOOP_VIEW_RUNS: "100",
};
