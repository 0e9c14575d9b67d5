/** The tests of the core, which run in every runtime, and those that cannot (SPEC 14.1). Names are from `test/`. */
export const coreFolders = [".", "conformance", "field-reports", "properties", "runtimes", "thinking"];

/** Need Node by nature: files of the repository, processes, standard streams, Node's test runner, an adapter for Node. */
export const needsNode = [
  "house.test.ts",
  "readme.test.ts",
  "conformance/node-test.test.ts",
  "properties/acp.property.test.ts",
  "properties/resume.property.test.ts", // in new processes
  "thinking/process.test.ts",
  "thinking/raw-text-process.test.ts",
];

/** Fewer than on Node: what is asked here is whether the runtime carries the loop, not whether the loop is right. */
export const propertyRuns = { TURNLOOP_PROPERTY_RUNS: "200", TURNLOOP_QUEUE_RUNS: "50" };
