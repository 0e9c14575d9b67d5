/** A sink that is slow or broken costs the run nothing. */
import { type StreamFn, ThinkingCard, type ThinkingEvent, type ThinkingOptions } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { deferred, makeTool } from "../helpers.js";
import { advance, cardOf, watchedRun, watchTimers } from "./helpers.js";

watchTimers();

type Sink = NonNullable<ThinkingOptions["onProgress"]>;

const thenable = (then: unknown): Promise<void> => ({ then }) as never;
const broken: [string, Sink][] = [
  ["throws", () => expect.fail("no screen")],
  ["throws undefined", () => raise(undefined)],
  ["rejects", () => Promise.reject(new Error("no screen"))],
  ["rejects later", () => new Promise((_, reject) => setTimeout(reject, 5, new Error("no screen")))],
  ["gives a thenable that throws", () => thenable(() => raise(new Error("no screen")))],
  [
    "gives a thenable that rejects",
    () => thenable((_resolve: unknown, reject: (error: unknown) => void) => reject(new Error("no screen"))),
  ],
  [
    "gives an object whose then cannot be read",
    () => Object.defineProperty({}, "then", { get: () => raise(new Error("no screen")) }) as never,
  ],
];

function raise(error: unknown): never {
  throw error;
}

describe("a sink that fails", () => {
  it.each(broken)("%s: the run is as without it, each failure is heard, complete is tried once more", async (_name, onProgress) => {
    // SPEC 9.5
    const failures: string[] = [];
    const streamFn = scriptedModel([[{ toolCall: "x" }], { content: ["Hi"], delayMs: 31_000 }]);
    const { sink, running } = watchedRun(
      streamFn,
      { tools: [makeTool("x", () => "ran")] },
      { onProgress, onError: (_error, { state, cardId }) => void failures.push(`${state} ${cardId}`), createId: ids() },
    );
    await advance(40_000);
    expect((await running).outcome).toBe("completed");
    expect(sink.lines()).toEqual([
      "1 start 0",
      "1 complete 0 delta",
      ...(isLate(_name) ? ["2 start 0", "1 complete 0 delta"] : ["1 complete 0 delta", "2 start 0"]),
      "2 heartbeat 30000 Thinking... (30s)",
      "2 complete 31000 delta",
      "2 complete 31000 delta",
    ]);
    expect(failures.sort()).toEqual([
      "complete id1",
      "complete id1",
      "complete id2",
      "complete id2",
      "heartbeat id2",
      "start id1",
      "start id2",
    ]);
  });

  it.each(broken.slice(0, 3))("%s only the first time at complete: one more, then no more", async (_name, fail) => {
    // SPEC 9.5
    const errors: unknown[] = [];
    const sent: ThinkingEvent[] = [];
    const onProgress: Sink = (event) => {
      sent.push(event);
      return sent.length === 2 ? fail(event) : undefined;
    };
    const { card, lines } = cardOf({ onProgress, onError: (error) => void errors.push(error) });
    card.start();
    card.complete("delta");
    await card.flush();
    expect([lines(), errors.length]).toEqual([["1 start 0", "1 complete 0 delta", "1 complete 0 delta"], 1]);
    expect(sent[2]).toEqual(sent[1]);
  });

  it("at a heartbeat does not silence the next one", async () => {
    // SPEC 9.3, 9.5
    for (const [, fail] of broken) {
      const { card, events } = cardOf({ onProgress: (event) => (event.state === "heartbeat" ? fail(event) : undefined) });
      card.start();
      await advance(90_000);
      card.complete();
      expect(events.map(({ state }) => state)).toEqual(["start", "heartbeat", "heartbeat", "heartbeat", "complete"]);
    }
  });

  it.each<[string, ThinkingOptions["onError"]]>([
    ["none", undefined],
    ["one that throws", () => expect.fail("no log")],
    ["one that rejects", (() => Promise.reject(new Error("no log"))) as never],
  ])("with %s to hear of it", async (_name, onError) => {
    // SPEC 9.5, 14.3
    for (const [, onProgress] of broken) {
      const { card, events } = cardOf({ onProgress, onError });
      card.start();
      card.complete();
      await advance(10);
      await card.flush();
      expect(events.length).toBe(3);
    }
  });

  it("the error and the event are those of the failure", async () => {
    // SPEC 9.5
    const error = new Error("no screen");
    const heard: unknown[] = [];
    const { card, events } = cardOf({ onProgress: () => raise(error), onError: (...args) => void heard.push(args) });
    card.start();
    card.complete();
    expect(heard).toEqual([
      [error, events[0]],
      [error, events[1]],
      [error, events[1]],
    ]);
  });
});

const isLate = (name: string): boolean => name.includes("later");

function ids(): () => string {
  let count = 0;
  return () => `id${++count}`;
}

describe("a sink that is slow", () => {
  it("or never settles delays neither the call nor the first delta, and hears all in order", async () => {
    // SPEC 9.5
    const calledAt: number[] = [];
    const begin = Date.now();
    const scripted = scriptedModel([{ content: ["Hi"], delayMs: 1000 }]);
    const streamFn: StreamFn = (...call) => {
      calledAt.push(Date.now() - begin);
      return scripted(...call);
    };
    const { heard, running } = watchedRun(streamFn, {}, { onProgress: () => new Promise(() => {}) });
    await advance(1000);
    await running;
    expect([calledAt, Date.now() - begin]).toEqual([[0], 1000]);
    expect(heard.filter((line) => /^1 |assistant/.test(line))).toEqual([
      "1 start 0",
      "message_start assistant",
      "1 complete 1000 delta",
      "message_end assistant",
    ]);
  });

  it("is called for the next event before it has settled; the calls are in order", async () => {
    // SPEC 9.5
    const [slow, log] = [deferred(), [] as string[]];
    const onProgress = async ({ state }: ThinkingEvent): Promise<void> => {
      log.push(`${state} begins`);
      if (state === "start") await slow.promise;
      log.push(`${state} ends`);
    };
    const { card } = cardOf({ onProgress });
    card.start();
    await advance(30_000);
    card.complete();
    slow.resolve();
    await card.flush();
    expect(log).toEqual(["start begins", "heartbeat begins", "heartbeat ends", "complete begins", "complete ends", "start ends"]);
  });
});

describe("flush", () => {
  it("settles at once when nothing was sent, or the sink is not asynchronous", async () => {
    // SPEC 9.5
    const { card } = cardOf();
    await card.flush();
    card.start();
    await card.flush();
    card.complete();
    await card.flush();
  });

  it("settles when all sent events have, the second try of complete included, and never rejects", async () => {
    // SPEC 9.5
    const sends: ReturnType<typeof deferred<void>>[] = [];
    const onProgress: Sink = () => {
      sends.push(deferred());
      return sends[sends.length - 1]?.promise;
    };
    const card = new ThinkingCard({ onProgress });
    card.start();
    card.complete();
    let settled = false;
    const flushing = card.flush().then(() => {
      settled = true;
    });
    sends[1]?.reject(new Error("lost"));
    await advance(0);
    expect([sends.length, settled]).toEqual([3, false]);
    sends[2]?.reject(new Error("lost again"));
    await advance(0);
    expect(settled).toBe(false);
    sends[0]?.resolve();
    await flushing;
    expect(sends.length).toBe(3);
  });

  it("inside the sink does not wait for itself", async () => {
    // SPEC 9.5
    const sent: string[] = [];
    const card: ThinkingCard = new ThinkingCard({
      onProgress: async ({ state }) => {
        if (state === "start") await card.flush();
        sent.push(state);
      },
    });
    card.start();
    card.complete();
    await card.flush();
    expect(sent).toEqual(["complete", "start"]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
