/** A test file leaves its process as it was, whatever its tests did: many share one, and no run may leave a timer or a handle (SPEC 14.3). */
import { afterAll, expect, vi } from "vitest";

const GLOBALS = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "queueMicrotask", "Date", "fetch"];
const OTHERS = ["AbortController", "AbortSignal", "Function", "eval", "process", "console"];

const globals = (): unknown[] => [...GLOBALS, ...OTHERS].map((name) => Reflect.get(globalThis, name));
const listeners = (): number[] => ["unhandledRejection", "uncaughtException", "warning"].map((name) => process.listenerCount(name));

/** What would keep the process alive: timers, sockets, servers, processes; one timer is the runner's, for this hook. */
function left(): string[] {
  const all = process.getActiveResourcesInfo().filter((name) => !/^(PipeWrap|TTYWrap|FSReq)/.test(name));
  const own = all.indexOf("Timeout");
  return all.filter((_name, i) => i !== own);
}

const before = { globals: globals(), listeners: listeners(), environment: { ...process.env } };

afterAll(async () => {
  expect(vi.isFakeTimers(), "fake timers are left").toBe(false);
  const replaced = globals().flatMap((value, i) => (value === before.globals[i] ? [] : [[...GLOBALS, ...OTHERS][i]]));
  expect(replaced, "globals that are not what they were").toEqual([]);
  expect({ ...process.env }, "the environment").toEqual(before.environment);
  expect(listeners(), "listeners on process").toEqual(before.listeners);
  for (let i = 0; i < 300 && left().length > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10)); // what is closing
  expect(left(), "timers and handles").toEqual([]);
});
