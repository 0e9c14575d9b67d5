/** Where vitest keeps its options and the environment that it stubs; it has them itself only in workers of its own. To be loaded before it. */
import { propertyRuns } from "./core-suite.js";

for (const [name, runs] of Object.entries(propertyRuns)) process.env[name] ??= runs;

const config = { fakeTimers: { loopLimit: 10_000, shouldClearNativeTimers: true }, expect: {}, snapshotOptions: {} };
const holder = globalThis as { __vitest_worker__?: { config: unknown; metaEnv?: unknown } };
holder.__vitest_worker__ ??= { config };
holder.__vitest_worker__.metaEnv = process.env;
