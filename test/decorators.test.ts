import { getEventListeners } from "node:events";
import {
  AssistantMessageBuilder,
  type AssistantMessageEvent,
  type ModelErrorInfo,
  type RetryOptions,
  type StreamFn,
  withFallback,
  withRetry,
  withStallTimeout,
} from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { busy, ending, fails, given, limited, read, scriptedEnd, stalls, timed } from "./decorator-helpers.js";
import { model, outline, run, textOf } from "./helpers.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("withRetry", () => {
  it.each([0, 0.999])("waits twice as long each time, within its bounds, when the dice say %s", async (dice) => {
    // SPEC 11.1
    vi.spyOn(Math, "random").mockReturnValue(dice);
    const { streamFn, at } = timed([busy, busy, busy, busy, busy, "ok"]);
    const told: Parameters<NonNullable<RetryOptions["onRetry"]>>[0][] = [];
    const retrying = withRetry(streamFn, { maxRetries: 5, minDelayMs: 100, maxDelayMs: 1000, onRetry: (retry) => told.push(retry) });
    expect(ending(await given(read(retrying)))).toMatchObject({ reason: "stop", text: "ok" });
    const waits = told.map(({ delayMs }) => delayMs);
    at.slice(1).forEach((time, index) => {
      expect(Math.abs(time - (at[index] as number) - (waits[index] as number))).toBeLessThanOrEqual(1);
    });
    expect(told.map(({ attempt, info }) => [attempt, info])).toEqual([1, 2, 3, 4, 5].map((attempt) => [attempt, limited]));
    for (const wait of waits) expect(wait >= 100 && wait <= 1000).toBe(true);
    for (const [i, wait] of waits.slice(1).entries()) expect(wait).toBeCloseTo(Math.min(1000, 2 * (waits[i] as number)), 6);
    if (dice === 0) expect(waits).toEqual([100, 200, 400, 800, 1000]);
    else expect(waits[0]).toBeGreaterThan(100);
  });

  it.each([
    // SPEC 11.1: the server's wish counts, up to maxDelayMs and never under minDelayMs
    [2500, 2500],
    [60_000, 5000],
    [Number.POSITIVE_INFINITY, 5000],
    [1, 500],
    [-5, 500],
    [Number.NaN, 500],
    [undefined, 500],
  ])("a retryAfterMs of %s is a wait of %s", async (retryAfterMs, wait) => {
    vi.spyOn(Math, "random").mockReturnValue(0);
    const { streamFn, at } = timed([fails({ ...limited, retryAfterMs }), "ok"]);
    await given(read(withRetry(streamFn, { maxDelayMs: 5000 })));
    expect(at).toEqual([0, wait]);
  });

  it("retries three times at most unless told otherwise", async () => {
    for (const [options, calls] of [
      [{}, 4],
      [{ maxRetries: 0 }, 1],
      [{ maxRetries: 1 }, 2],
    ] as const) {
      const { streamFn, at } = timed([]);
      const always: StreamFn = (...args) => {
        void streamFn(...args);
        return scriptedModel([busy])(...args);
      };
      expect(ending(await given(read(withRetry(always, options))))).toMatchObject({ reason: "error", info: limited });
      expect(at.length).toBe(calls);
    }
    for (const bad of [{ maxRetries: -1 }, { minDelayMs: Number.NaN }, { maxDelayMs: "1" as never }])
      expect(() => withRetry(scriptedModel([]), bad)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  it("asks shouldRetry in place of the failure itself, counting attempts from 1", async () => {
    const asked: unknown[] = [];
    const { streamFn, at } = timed([fails({ kind: "auth", retryable: false }), fails(), busy, "never"]);
    const shouldRetry = (info: ModelErrorInfo, attempt: number) => asked.push([info.kind, attempt]) < 3;
    expect(ending(await given(read(withRetry(streamFn, { shouldRetry }))))).toMatchObject({ reason: "error", info: limited });
    expect([asked, at.length]).toEqual([
      [
        ["auth", 1],
        ["unknown", 2],
        ["rate_limit", 3],
      ],
      3,
    ]);
  });

  const fault = (kind: "throw" | "reject" | "throwSync" | "end", afterEvents = 0) =>
    scriptedModel([{ content: ["x"], fault: { kind, afterEvents } }]);
  const odd: Record<string, () => StreamFn> = {
    "throws at once": () => fault("throwSync"),
    rejects: () => fault("reject"),
    "throws while read": () => fault("throw"),
    "throws after its start": () => fault("throw", 1),
    "gives no iterable": () => () => 42 as never,
    "gives nothing": () => () => undefined as never,
    "says no more than that it failed": () => scriptedModel([fails()]),
    "ends at once": () => fault("end"),
    "ends after its start": () => fault("end", 1),
    "has a failed result()": () => () => {
      const [, event] = new AssistantMessageBuilder(model).fail(new Error("late"));
      const { error } = event as Extract<AssistantMessageEvent, { type: "error" }>;
      return { [Symbol.asyncIterator]: async function* () {}, result: async () => error };
    },
  };
  it.each(Object.entries(odd))("a call that %s is of kind unknown: retried only if shouldRetry says so", async (_name, first) => {
    // SPEC 11.1, 3.4
    for (const yes of [true, false]) {
      let calls = 0;
      const kinds: string[] = [];
      const failing = first();
      const streamFn: StreamFn = (...args) => (calls++ === 0 ? failing(...args) : scriptedModel(["ok"])(...args));
      const again = yes ? { shouldRetry: (info: ModelErrorInfo) => kinds.push(info.kind) > 0 } : {};
      const { outcome, messages } = await given(run(withRetry(streamFn, again)));
      expect([outcome, calls, kinds]).toEqual(yes ? ["completed", 2, ["unknown"]] : ["error", 1, []]);
      expect(messages.length).toBe(2);
    }
  });

  it("a result() that never settles does not hold up the call for ever", async () => {
    // SPEC 3.1, 3.3
    const streamFn: StreamFn = () => ({ [Symbol.asyncIterator]: async function* () {}, result: () => new Promise<never>(() => {}) });
    let outcome: string | undefined;
    void run(withRetry(streamFn)).then((record) => {
      outcome = record.outcome;
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(outcome).toBe("error");
  });

  it("never retries after the first non-empty delta of any kind", async () => {
    for (const content of [["x"], [{ thinking: "x" }], [{ toolCall: "t", args: { a: 1 } }]]) {
      const { streamFn, at } = timed([{ content, errorMessage: "busy", errorInfo: limited }, "never"]);
      expect(ending(await given(read(withRetry(streamFn, { shouldRetry: () => true })))).info).toEqual(limited);
      expect(at.length).toBe(1);
    }
  });

  it("empty deltas do not count, and nothing of a failed attempt is seen", async () => {
    // SPEC 11.1
    let calls = 0;
    const streamFn: StreamFn = async function* () {
      const b = new AssistantMessageBuilder(model);
      const [start] = b.toolCallStart("c", "phantom");
      const { partial } = start as Extract<AssistantMessageEvent, { type: "start" }>;
      if (calls++ === 1) return yield* [...new AssistantMessageBuilder(model).text("ok"), ...scriptedEnd("ok")];
      yield { type: "start", partial };
      yield { type: "text_start", contentIndex: 0, partial };
      yield { type: "text_delta", contentIndex: 0, delta: "", partial };
      yield { type: "toolcall_delta", contentIndex: 0, delta: "", partial };
      yield* b.fail(new Error("busy"), limited);
    };
    const plain = await run(["ok"]);
    const { events, messages, outcome } = await given(run(withRetry(streamFn)));
    expect([outcome, calls]).toEqual(["completed", 2]);
    expect(outline(events)).toEqual(outline(plain.events));
    expect(messages.map(textOf)).toEqual(["go", "ok"]);
    expect(JSON.stringify(events)).not.toMatch(/busy|phantom|rate_limit/);
  });

  it("the caller's abort ends a wait at once and leaves nothing behind", async () => {
    // SPEC 11.1, 14.3
    const controller = new AbortController();
    const { streamFn, at } = timed([fails({ ...limited, retryAfterMs: 20_000 }), "never"]);
    const reading = read(withRetry(streamFn), controller.signal);
    await vi.advanceTimersByTimeAsync(5000);
    expect(vi.getTimerCount()).toBe(1);
    controller.abort("enough");
    expect(ending(await reading)).toMatchObject({ reason: "aborted", info: { kind: "aborted", retryable: false } });
    expect([at.length, vi.getTimerCount(), getEventListeners(controller.signal, "abort").length]).toEqual([1, 0, 0]);
  });

  it("a run aborted in a wait ends at once, as aborted", async () => {
    const controller = new AbortController();
    const { streamFn, at } = timed([fails({ ...limited, retryAfterMs: 20_000 }), "never"]);
    const running = run(withRetry(streamFn), { signal: controller.signal });
    await vi.advanceTimersByTimeAsync(5000);
    controller.abort("enough");
    const { outcome, messages, end } = await running;
    expect([outcome, messages.length, at.length, vi.getTimerCount()]).toEqual(["aborted", 2, 1, 0]);
    expect(end.error?.message).toContain("enough");
  });

  it("never retries what the caller aborted, whatever shouldRetry says", async () => {
    const controller = new AbortController();
    let calls = 0;
    const streamFn: StreamFn = async function* (asked) {
      calls++;
      controller.abort();
      yield* new AssistantMessageBuilder(asked).fail(new Error("socket closed"), limited);
    };
    await given(read(withRetry(streamFn, { shouldRetry: () => true }), controller.signal));
    expect([calls, vi.getTimerCount()]).toEqual([1, 0]);
  });
});

describe("decorators in each other", () => {
  const retry = (inner: StreamFn) => withRetry(inner, { minDelayMs: 10 });
  const stall = (inner: StreamFn) => withStallTimeout(inner, { firstEventMs: 1000, idleMs: 1000 });
  const slowDown = fails({ ...limited, retryAfterMs: 200 });
  const fallback = (inner: StreamFn) => withFallback([{ streamFn: inner }, { streamFn: scriptedModel([slowDown, slowDown, slowDown]) }]);
  const all = { retry, stall, fallback };
  const names = Object.keys(all) as (keyof typeof all)[];
  const orders = names.flatMap((a) =>
    names.flatMap((b) =>
      names
        .filter(() => a !== b)
        .filter((c) => c !== a && c !== b)
        .map((c) => [a, b, c] as const),
    ),
  );

  it.each(orders)("%s around %s around %s", async (a, b, c) => {
    // SPEC 11
    const nest = (inner: StreamFn): StreamFn => all[a](all[b](all[c](inner)));
    // changes nothing of a good answer
    const answers: ScriptedAnswer[] = [[{ thinking: "hm" }, { text: "Hi" }, { toolCall: "none" }], "done"];
    expect((await run(nest(scriptedModel(answers)))).events).toEqual((await run(answers)).events);
    // gets over two failures
    const { streamFn, at } = timed([busy, busy, "ok"]);
    const record = await given(run(nest(streamFn)));
    expect([record.outcome, record.messages.map(textOf), at.length]).toEqual(["completed", ["go", "ok"], 3]);
    // and over a silence, where the retry is outside of what notices it; a retry inside goes with the call that is given up
    const { streamFn: quiet, at: calls } = timed([stalls(1), "ok"]);
    const afterSilence = await given(run(nest(quiet)));
    const heals = [a, b, c].indexOf("retry") < [a, b, c].indexOf("stall");
    expect([afterSilence.outcome, calls.length]).toEqual(heals ? ["completed", 2] : ["error", 1]);
    // an abort, in a wait or in a silence, is the end of it
    for (const first of [slowDown, stalls(0), stalls(3)]) {
      const controller = new AbortController();
      const disturbed = timed([first, "never"]);
      const running = run(nest(disturbed.streamFn), { signal: controller.signal });
      await vi.advanceTimersByTimeAsync(100);
      controller.abort();
      expect((await running).outcome).toBe("aborted");
      expect([disturbed.at.length, vi.getTimerCount()]).toEqual([1, 0]);
    }
  });

  it.each([
    ["withRetry", (inner: StreamFn) => withRetry(inner)],
    ["withFallback", (inner: StreamFn) => withFallback([{ streamFn: inner }, { streamFn: inner }])],
  ])("%s closes the stream of an attempt it gives up", async (_name, decorate) => {
    // SPEC 14.3: what an attempt holds, a socket or a listener, goes with it
    let open = 0;
    let calls = 0;
    const streamFn: StreamFn = async function* (asked) {
      open++;
      try {
        if (calls++ === 0) yield* new AssistantMessageBuilder(asked).fail(new Error("busy"), limited);
        else yield* [...new AssistantMessageBuilder(asked).text("ok"), ...scriptedEnd("ok").slice(1)];
      } finally {
        open--;
      }
    };
    const { outcome } = await given(run(decorate(streamFn)));
    expect([outcome, calls, open]).toEqual(["completed", 2, 0]);
    const controller = new AbortController();
    const stalling = withStallTimeout(scriptedModel([stalls(), "ok", stalls(), "ok"]), { firstEventMs: 10, idleMs: 10 });
    await given(read(decorate(stalling), controller.signal));
    expect(getEventListeners(controller.signal, "abort").length).toBe(0);
  });

  it.each<[string, (inner: StreamFn) => StreamFn]>([
    ["withRetry", (inner) => withRetry(inner)],
    ["withStallTimeout", (inner) => withStallTimeout(inner, { idleMs: 1000 })],
    ["withFallback", (inner) => withFallback([{ streamFn: inner }])],
  ])("%s leaves result() to a stream that ends without a terminal event", async (_name, decorate) => {
    // SPEC 3.1
    const b = new AssistantMessageBuilder(model);
    const events = [...b.text("Hi")];
    const done = b.done().at(-1) as Extract<AssistantMessageEvent, { type: "done" }>;
    const streamFn: StreamFn = () => ({
      [Symbol.asyncIterator]: async function* () {
        yield* events;
      },
      result: async () => done.message,
    });
    const { outcome, messages } = await given(run(decorate(streamFn)));
    expect([outcome, messages.map(textOf)]).toEqual(["completed", ["go", "Hi"]]);
  });
});
