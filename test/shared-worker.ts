/** Many test files share a process: what one of them changes in it must be as before at its end, whatever its tests did. */
import { afterAll, expect, vi } from "vitest";

const { setTimeout, setInterval, setImmediate, queueMicrotask, Date, fetch, AbortController, Function, process } = globalThis;
const before = { setTimeout, setInterval, setImmediate, queueMicrotask, Date, fetch, AbortController, Function, process };
const listeners = (): number[] => ["unhandledRejection", "uncaughtException", "warning"].map((name) => process.listenerCount(name));
const environment = { ...process.env };
const listening = listeners();

afterAll(() => {
  expect(vi.isFakeTimers(), "fake timers are left").toBe(false);
  for (const [name, value] of Object.entries(before)) expect(Reflect.get(globalThis, name) === value, `${name} is another one`).toBe(true);
  expect({ ...process.env }, "the environment").toEqual(environment);
  expect(listeners(), "listeners on process").toEqual(listening);
});
