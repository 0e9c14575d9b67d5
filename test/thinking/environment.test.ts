/** What the environment says about heartbeats, and where there is none. */
import type { ThinkingOptions } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { advance, cardOf, watchedRun, watchTimers } from "./helpers.js";

watchTimers();

/** The lines of a wait of 61 s that is started in this environment, and the timers it has. */
async function wait(options: ThinkingOptions = {}) {
  const { card, lines } = cardOf(options);
  card.start();
  const timers = vi.getTimerCount();
  await advance(61_000);
  card.complete();
  return { timers, beats: lines().length - 2, lines: lines() };
}

describe("LLM_HEARTBEAT_DISABLED and DREW_LLM_HEARTBEAT_DISABLED", () => {
  it.each<[string | undefined, string | undefined, boolean]>([
    [undefined, undefined, false],
    ["1", undefined, true],
    ["true", undefined, true],
    [undefined, "1", true],
    [undefined, "true", true],
    ["0", "1", true],
    ["1", "0", true],
    ["0", undefined, false],
    ["", "", false],
    ["false", "false", false],
    ["TRUE", "yes", false],
    [" 1", "11", false],
  ])("%j and %j", async (one, other, disabled) => {
    // SPEC 9.6
    vi.stubEnv("LLM_HEARTBEAT_DISABLED", one);
    vi.stubEnv("DREW_LLM_HEARTBEAT_DISABLED", other);
    expect(await wait()).toMatchObject(disabled ? { timers: 0, beats: 0 } : { timers: 1, beats: 2 });
  });

  it("no timer at all: a card that would wait before it shows is shown at once", async () => {
    // SPEC 9.6
    vi.stubEnv("LLM_HEARTBEAT_DISABLED", "1");
    expect(await wait({ showAfterMs: 300 })).toEqual({ timers: 0, beats: 0, lines: ["1 start 0", "1 complete 61000 done"] });
  });

  it("in a run no timer is ever made; start and complete still come", async () => {
    // SPEC 9.6
    vi.stubEnv("LLM_HEARTBEAT_DISABLED", "true");
    const timers = [vi.spyOn(globalThis, "setTimeout"), vi.spyOn(globalThis, "setInterval")];
    const { sink, running } = watchedRun(scriptedModel(["Hi"]), {}, { showAfterMs: 300 });
    await running;
    expect(timers.map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 delta"]);
  });

  it.each<[ThinkingOptions, number, string[]]>([
    [{ heartbeatMs: 60_000 }, 1, ["1 start 0", "1 heartbeat 60000 Thinking... (60s)", "1 complete 61000 done"]],
    [{ heartbeatMs: 60_000, showAfterMs: 300 }, 2, ["1 start 300", "1 heartbeat 60000 Thinking... (60s)", "1 complete 61000 done"]],
    [{ heartbeatMs: 0 }, 0, ["1 start 0", "1 complete 61000 done"]],
    [{ heartbeatMs: undefined }, 0, ["1 start 0", "1 complete 61000 done"]],
  ])("an explicit heartbeatMs wins: %j", async (options, timers, lines) => {
    // SPEC 9.6
    vi.stubEnv("LLM_HEARTBEAT_DISABLED", "1");
    expect(await wait(options)).toMatchObject({ timers, lines });
  });

  it("is read at each start", async () => {
    // SPEC 9.6
    const { card } = cardOf();
    const timers: number[] = [];
    for (const value of ["1", undefined, "true"]) {
      vi.stubEnv("LLM_HEARTBEAT_DISABLED", value);
      card.start();
      timers.push(vi.getTimerCount());
      vi.stubEnv("LLM_HEARTBEAT_DISABLED", "1");
      expect(vi.getTimerCount()).toBe(timers.at(-1));
      card.complete();
    }
    expect(timers).toEqual([0, 1, 0]);
  });

  const throwing = (): never => expect.fail("not permitted");
  it.each<[string, unknown]>([
    ["there is no process", undefined],
    ["process is null", null],
    ["process has no env", {}],
    ["env is null", { env: null }],
    ["env cannot be read", Object.defineProperty({}, "env", { get: throwing })],
    ["a variable cannot be read", { env: new Proxy({}, { get: throwing }) }],
  ])("is safe to read where %s: nothing is disabled", async (_name, host) => {
    // SPEC 9.6, 14.1
    vi.stubGlobal("process", host);
    const heard = await wait();
    vi.unstubAllGlobals();
    expect(heard).toMatchObject({ timers: 1, beats: 2 });
  });

  it("is safe where process itself cannot be read", async () => {
    // SPEC 9.6
    const descriptor = Object.getOwnPropertyDescriptor(globalThis, "process") as PropertyDescriptor;
    Object.defineProperty(globalThis, "process", { configurable: true, get: throwing });
    const { card } = cardOf();
    try {
      card.start();
      expect(vi.getTimerCount()).toBe(1);
      card.complete();
    } finally {
      Object.defineProperty(globalThis, "process", descriptor);
    }
  });
});

describe("timers", () => {
  it("that are plain numbers, as in browsers and Deno, will do", async () => {
    // SPEC 9.4, 14.1
    const { setTimeout: after, setInterval: every } = globalThis;
    const handles = new Map<number, ReturnType<typeof setTimeout>>();
    const numbered =
      (start: typeof after | typeof every) =>
      (...args: [() => void, number]): number => {
        handles.set(handles.size + 1, start(...args));
        return handles.size;
      };
    const { clearTimeout: clear } = globalThis;
    vi.stubGlobal("setTimeout", numbered(after));
    vi.stubGlobal("setInterval", numbered(every));
    for (const name of ["clearTimeout", "clearInterval"]) vi.stubGlobal(name, (handle: number) => clear(handles.get(handle)));
    const unreferenced: number[] = [];
    vi.stubGlobal("Deno", { unrefTimer: (handle: number) => unreferenced.push(handle) });
    expect(await wait({ showAfterMs: 300 })).toMatchObject({ timers: 2, beats: 2 });
    expect([vi.getTimerCount(), unreferenced]).toEqual([0, [1, 2]]);
  });
});
