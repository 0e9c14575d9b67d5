/** Many test files share a process: what one of them changes in it must be as before at its end, whatever its tests did. */
import { afterAll, expect, vi } from "vitest";

const GLOBALS = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "queueMicrotask", "Date", "fetch"];
const OTHERS = ["AbortController", "AbortSignal", "Function", "eval", "process", "console"];

const globals = (): unknown[] => [...GLOBALS, ...OTHERS].map((name) => Reflect.get(globalThis, name));
const listeners = (): number[] => ["unhandledRejection", "uncaughtException", "warning"].map((name) => process.listenerCount(name));
const before = { globals: globals(), listeners: listeners(), environment: { ...process.env } };

afterAll(() => {
  expect(vi.isFakeTimers(), "fake timers are left").toBe(false);
  const replaced = globals().flatMap((value, i) => (value === before.globals[i] ? [] : [[...GLOBALS, ...OTHERS][i]]));
  expect(replaced, "globals that are not what they were").toEqual([]);
  expect({ ...process.env }, "the environment").toEqual(before.environment);
  expect(listeners(), "listeners on process").toEqual(before.listeners);
});
