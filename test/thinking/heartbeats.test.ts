/** The beats of a ThinkingCard driven by hand. */
import type { ThinkingEvent } from "turnloop";
import { describe, expect, it, vi } from "vitest";
import { deferred } from "../helpers.js";
import { advance, cardOf, watchTimers } from "./helpers.js";

watchTimers();

describe("heartbeats", () => {
  it("come at exactly 30, 60, 90 s and so on, and never after complete", async () => {
    // SPEC 9.3
    const { card, lines } = cardOf();
    await advance(45_000);
    card.start();
    await advance(29_999);
    expect(lines()).toEqual(["1 start 0"]);
    await advance(60_001);
    expect(lines()).toEqual([
      "1 start 0",
      "1 heartbeat 30000 Thinking... (30s)",
      "1 heartbeat 60000 Thinking... (60s)",
      "1 heartbeat 90000 Thinking... (90s)",
    ]);
    await advance(29_999);
    card.complete();
    await advance(300_000);
    expect(lines().slice(4)).toEqual(["1 complete 119999 done"]);
  });

  it("tell the time of the clock, not a count of beats", async () => {
    // SPEC 9.3: a computer that slept
    const { card, lines } = cardOf();
    card.start();
    await advance(30_000);
    vi.setSystemTime(Date.now() + 3_600_000);
    await advance(30_000);
    card.complete();
    expect(lines()).toEqual([
      "1 start 0",
      "1 heartbeat 30000 Thinking... (30s)",
      "1 heartbeat 3660000 Thinking... (3660s)",
      "1 complete 3660000 done",
    ]);
  });

  it.each<[string, () => number]>([
    ["runs backwards", () => -Date.now()],
    ["throws", () => expect.fail("no clock")],
    ["gives no number", () => Number.NaN],
    ["gives nothing", () => undefined as never],
  ])("a clock that %s gives a time of at least 0", async (_name, now) => {
    // SPEC 9.3
    const { card, events } = cardOf({ now });
    card.start();
    await advance(30_000);
    card.complete();
    expect(events.map(({ state }) => state)).toEqual(["start", "heartbeat", "complete"]);
    for (const { elapsedMs } of events) expect(elapsedMs).toBeGreaterThanOrEqual(0);
  });

  it.each([
    [undefined, 60],
    [0, 0],
    [1, 1],
    [3, 3],
    [2.5, 3],
    [-1, 0],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, 100],
  ])("maxHeartbeats %s: of 100 that are due %s are sent, and then one may tell a hang from a wait", async (maxHeartbeats, sent) => {
    // SPEC 9.3
    const { card, events } = cardOf({ maxHeartbeats });
    card.start();
    await advance(100 * 30_000);
    expect(events.length - 1).toBe(sent);
    expect(card.heartbeat()).toBe(sent === 100);
    card.complete();
    expect(events.filter(({ state }) => state === "complete").length).toBe(1);
  });

  it("has no timer left once the last one is sent", async () => {
    // SPEC 9.3, 9.4
    const { card } = cardOf({ maxHeartbeats: 2 });
    card.start();
    await advance(60_000);
    expect(vi.getTimerCount()).toBe(0);
    card.complete();
  });

  it("one is skipped while the previous one is unsettled, whether it will succeed or fail", async () => {
    // SPEC 9.3
    const beats = [deferred(), deferred(), deferred()];
    const onProgress = ({ state }: ThinkingEvent) => (state === "heartbeat" ? beats[heard++]?.promise : undefined);
    let heard = 0;
    const { card, lines } = cardOf({ onProgress, onError: () => {} });
    card.start();
    await advance(60_000);
    expect(card.heartbeat()).toBe(false);
    beats[0]?.resolve();
    await advance(60_000);
    beats[1]?.reject(new Error("lost"));
    await advance(30_000);
    beats[2]?.resolve();
    card.complete();
    expect(lines()).toEqual([
      "1 start 0",
      "1 heartbeat 30000 Thinking... (30s)",
      "1 heartbeat 90000 Thinking... (90s)",
      "1 heartbeat 150000 Thinking... (150s)",
      "1 complete 150000 done",
    ]);
  });

  it("one that never settles silences those behind it, not the end; the next card is free of it", async () => {
    // SPEC 9.3, 9.5
    const { card, lines } = cardOf({ onProgress: ({ state }) => (state === "heartbeat" ? new Promise(() => {}) : undefined) });
    card.start();
    await advance(300_000);
    card.complete();
    card.start();
    await advance(30_000);
    card.complete();
    expect(lines()).toEqual([
      "1 start 0",
      "1 heartbeat 30000 Thinking... (30s)",
      "1 complete 300000 done",
      "2 start 0",
      "2 heartbeat 30000 Thinking... (30s)",
      "2 complete 30000 done",
    ]);
  });

  it("a start that never settles holds nothing back", async () => {
    // SPEC 9.3, 9.5
    const { card, lines } = cardOf({ onProgress: ({ state }) => (state === "start" ? new Promise(() => {}) : undefined) });
    card.start();
    await advance(30_000);
    card.complete();
    expect(lines()).toEqual(["1 start 0", "1 heartbeat 30000 Thinking... (30s)", "1 complete 30000 done"]);
  });

  it.each([0, -1, -0, Number.NaN, Number.NEGATIVE_INFINITY])(
    "heartbeatMs %s: none, and no timer; one by hand is still sent",
    async (heartbeatMs) => {
      // SPEC 9.4
      const { card, lines } = cardOf({ heartbeatMs });
      card.start();
      expect(vi.getTimerCount()).toBe(0);
      await advance(100_000);
      expect(card.heartbeat()).toBe(true);
      card.complete();
      expect(lines()).toEqual(["1 start 0", "1 heartbeat 100000 Thinking... (100s)", "1 complete 100000 done"]);
    },
  );

  it.each([2 ** 31 - 1, 2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY, Number.MAX_VALUE])(
    "heartbeatMs %s: a timer holds no more than 2^31-1 ms and does not fire at once",
    async (heartbeatMs) => {
      // SPEC 9.4
      const timers = vi.spyOn(globalThis, "setInterval");
      const { card, lines } = cardOf({ heartbeatMs });
      card.start();
      await advance(86_400_000);
      expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1]);
      card.complete();
      expect(lines()).toEqual(["1 start 0", "1 complete 86400000 done"]);
    },
  );
});
