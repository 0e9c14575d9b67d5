/** ThinkingCard driven by hand. */
import { ThinkingCard, type ThinkingEvent } from "turnloop";
import { describe, expect, it, vi } from "vitest";
import { advance, cardOf, watchTimers } from "./helpers.js";

watchTimers();

describe("the events of a card", () => {
  it("are plain data, with the defaults of the contract", async () => {
    // SPEC 9.1
    const { card, events } = cardOf();
    const cardId = card.start();
    await advance(30_000);
    card.complete("delta");
    const shared = { cardId, name: "llm_response" };
    expect(JSON.parse(JSON.stringify(events))).toEqual([
      { state: "start", ...shared, title: "Thinking...", elapsedMs: 0 },
      { state: "heartbeat", ...shared, title: "Thinking... (30s)", elapsedMs: 30_000 },
      { state: "complete", ...shared, title: "Thinking...", elapsedMs: 30_000, outcome: "delta" },
    ]);
    expect(events.map((event) => "outcome" in event)).toEqual([false, false, true]);
  });

  it("carry the host's name, title, clock and id", async () => {
    // SPEC 9.1
    let time = 5000;
    const { card, events } = cardOf({ name: "compaction", title: "Tidying up", now: () => time, createId: () => "id-1" });
    expect(card.start()).toBe("id-1");
    time += 1499;
    card.heartbeat();
    time += 1;
    card.heartbeat();
    card.complete("error");
    const shared = { cardId: "id-1", name: "compaction" };
    expect(events).toEqual([
      { state: "start", ...shared, title: "Tidying up", elapsedMs: 0 },
      { state: "heartbeat", ...shared, title: "Tidying up (1s)", elapsedMs: 1499 },
      { state: "heartbeat", ...shared, title: "Tidying up (2s)", elapsedMs: 1500 },
      { state: "complete", ...shared, title: "Tidying up", elapsedMs: 1500, outcome: "error" },
    ]);
  });

  it.each([[undefined], ["delta"], ["done"], ["error"], ["aborted"]] as const)("complete(%s)", (outcome) => {
    // SPEC 9.1
    const { card, events } = cardOf();
    card.start();
    card.complete(outcome);
    expect(events.at(-1)).toMatchObject({ state: "complete", outcome: outcome ?? "done" });
  });

  it("are optional to hear", async () => {
    // SPEC 9.1
    const card = new ThinkingCard({});
    card.start();
    await advance(30_000);
    expect(card.heartbeat()).toBe(true);
    card.complete();
    await card.flush();
  });
});

describe("every start has exactly one complete", () => {
  type Step = "start" | "complete" | "heartbeat" | "dispose";
  it.each<[Step[], string[]]>([
    [["complete"], []],
    [["heartbeat"], []],
    [["dispose"], []],
    [
      ["start", "start", "complete"],
      ["1 start 0", "1 complete 0 done"],
    ],
    [
      ["start", "complete", "complete"],
      ["1 start 0", "1 complete 0 done"],
    ],
    [
      ["start", "complete", "heartbeat"],
      ["1 start 0", "1 complete 0 done"],
    ],
    [
      ["start", "dispose", "dispose", "complete"],
      ["1 start 0", "1 complete 0 aborted"],
    ],
    [
      ["start", "complete", "dispose"],
      ["1 start 0", "1 complete 0 done"],
    ],
    [
      ["start", "complete", "start", "start", "complete", "dispose", "start", "dispose"],
      ["1 start 0", "1 complete 0 done", "2 start 0", "2 complete 0 done", "3 start 0", "3 complete 0 aborted"],
    ],
  ])("%j", async (steps, expected) => {
    // SPEC 9.4
    const { card, lines } = cardOf();
    const results = steps.map((step) => card[step]());
    expect(lines()).toEqual(expected);
    steps.forEach((step, index) => void (step === "heartbeat" && expect(results[index]).toBe(false)));
    expect(vi.getTimerCount()).toBe(0);
    await advance(100_000);
    expect(lines()).toEqual(expected);
  });

  it("start twice gives the open id; after complete a new one", () => {
    // SPEC 9.4
    const { card, events } = cardOf();
    const first = card.start();
    expect(card.start()).toBe(first);
    card.complete();
    expect(card.start()).not.toBe(first);
    card.complete();
    expect(events.map(({ cardId }) => cardId === first)).toEqual([true, true, false, false]);
  });

  it("1,000 cards have ids of their own and leave no timer", async () => {
    // SPEC 9.2, 9.4
    const { card, events } = cardOf({ showAfterMs: 5 });
    for (let index = 0; index < 1000; index++) {
      card.start();
      if (index % 2 === 0) await advance(5);
      card.complete();
    }
    expect(vi.getTimerCount()).toBe(0);
    expect(new Set(events.map(({ cardId }) => cardId)).size).toBe(500);
    expect(events.length).toBe(1000);
  });

  it.each<[string, () => unknown]>([
    ["throws", () => expect.fail("no id")],
    ["gives nothing", () => undefined],
    ["gives an empty text", () => ""],
    ["gives a number", () => 7],
    ["gives an object", () => ({})],
    ["gives a promise", () => Promise.resolve("late")],
  ])("a createId that %s is replaced by a random id", (_name, createId) => {
    // SPEC 9.2
    const { card, events } = cardOf({ createId: createId as () => string });
    const ids = [0, 1].map(() => {
      const id = card.start();
      card.complete();
      return id;
    });
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^thinking_\w+$/);
    expect(events.map(({ cardId }) => cardId)).toEqual([ids[0], ids[0], ids[1], ids[1]]);
  });
});

describe("a listener that acts on the card it hears of", () => {
  type Act = (card: ThinkingCard, event: ThinkingEvent) => void;
  it.each<[string, Act, string[]]>([
    [
      "completes at the start",
      (card, { state }) => void (state === "start" && card.complete("delta")),
      ["1 start 0", "1 complete 0 delta"],
    ],
    [
      "completes at a heartbeat",
      (card, { state }) => void (state === "heartbeat" && card.complete("delta")),
      ["1 start 0", "1 heartbeat 30000 Thinking... (30s)", "1 complete 30000 delta"],
    ],
    ["completes at complete", (card, { state }) => void (state === "complete" && card.complete()), ["1 start 0", "1 complete 90000 done"]],
    ["starts at start", (card, { state }) => void (state === "start" && card.start()), ["1 start 0", "1 complete 90000 done"]],
    [
      "beats at start",
      (card, { state }) => void (state === "start" && card.heartbeat()),
      ["1 start 0", "1 heartbeat 0 Thinking... (0s)", "1 complete 90000 done"],
    ],
    [
      "completes the first card at its start, and starts another",
      (card, { state, cardId }) => {
        if (state !== "start" || cardId !== "id1") return;
        card.complete("aborted");
        card.start();
      },
      ["1 start 0", "1 complete 0 aborted", "2 start 0", "2 complete 90000 done"],
    ],
    [
      "starts another at complete",
      (card, { state, cardId }) => {
        if (state === "complete" && cardId === "id1") card.start();
      },
      ["1 start 0", "1 complete 90000 done", "2 start 0"],
    ],
  ])("%s", async (_name, act, expected) => {
    // SPEC 9.3, 9.4
    let ids = 0;
    const created: ThinkingCard[] = [];
    const { card, lines } = cardOf({
      createId: () => `id${++ids}`,
      heartbeatMs: _name.includes("at a heartbeat") ? 30_000 : 0,
      onProgress: (event) => act(created[0] as ThinkingCard, event),
    });
    created.push(card);
    card.start();
    await advance(90_000);
    card.complete();
    expect(lines()).toEqual(expected);
    card.dispose();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("hears of what it caused when it has returned, and so does everybody it passes events on to", () => {
    // SPEC 9.5
    const heard: string[] = [];
    const listeners: ((event: ThinkingEvent) => void)[] = [
      ({ state }) => {
        if (state === "start") card.heartbeat();
        if (state === "heartbeat") card.complete();
      },
      ({ state }) => void heard.push(state),
    ];
    const card = new ThinkingCard({ onProgress: (event) => listeners.forEach((listener) => void listener(event)) });
    card.start();
    expect(heard).toEqual(["start", "heartbeat", "complete"]);
  });
});

describe("showAfterMs", () => {
  it.each<[number, string[]]>([
    [0, []],
    [299, []],
    [300, ["1 start 300", "1 complete 300 done"]],
    [29_999, ["1 start 300", "1 complete 29999 done"]],
    [60_000, ["1 start 300", "1 heartbeat 30000 Thinking... (30s)", "1 heartbeat 60000 Thinking... (60s)", "1 complete 60000 done"]],
  ])("300: a wait of %s ms", async (ms, expected) => {
    // SPEC 9.4
    const { card, lines } = cardOf({ showAfterMs: 300 });
    card.start();
    await advance(ms);
    card.complete();
    await advance(100_000);
    expect(lines()).toEqual(expected);
  });

  it("later than a heartbeat: that one is not sent, the later ones keep their time", async () => {
    // SPEC 9.3, 9.4
    const { card, lines } = cardOf({ showAfterMs: 45_000, maxHeartbeats: 1 });
    card.start();
    expect(card.heartbeat()).toBe(false);
    await advance(90_000);
    card.complete();
    expect(lines()).toEqual(["1 start 45000", "1 heartbeat 60000 Thinking... (60s)", "1 complete 90000 done"]);
  });

  it.each([0, -5, Number.NaN])("%s: shown at once", (showAfterMs) => {
    // SPEC 9.4
    const { card, lines } = cardOf({ showAfterMs, heartbeatMs: 0 });
    card.start();
    expect([lines(), vi.getTimerCount()]).toEqual([["1 start 0"], 0]);
    card.complete();
  });

  it.each([2 ** 40, Number.POSITIVE_INFINITY])("%s: a timer holds no more than 2^31-1 ms", async (showAfterMs) => {
    // SPEC 9.4
    const timers = vi.spyOn(globalThis, "setTimeout");
    const { card, lines } = cardOf({ showAfterMs });
    card.start();
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1]);
    await advance(86_400_000);
    card.dispose();
    expect(lines()).toEqual([]);
  });
});
