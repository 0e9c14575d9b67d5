import { getEventListeners } from "node:events";
import {
  AssistantMessageBuilder,
  type AssistantStream,
  type ModelErrorInfo,
  type StreamFn,
  withFallback,
  withStallTimeout,
} from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { busy, type Event, ending, fails, given, limited, read, stalls, timed } from "./decorator-helpers.js";
import { model, outline, run, textOf } from "./helpers.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

describe("withStallTimeout", () => {
  const limits = { firstEventMs: 100, idleMs: 30 };
  const timeout = { kind: "timeout", retryable: true };

  it.each([
    // SPEC 11.2
    ["no first event", 0, 100, ""],
    ["silence in the middle", 3, 30, "Hello"],
    ["silence after the start", 1, 30, ""],
  ])("%s is a retryable error of kind timeout, what came is kept, the signal aborted", async (_name, after, ms, text) => {
    const { streamFn, signals } = timed([stalls(after)]);
    const controller = new AbortController();
    let events: Event[] | undefined;
    void read(withStallTimeout(streamFn, limits), controller.signal).then((got) => {
      events = got;
    });
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect([events, signals[0]?.aborted]).toEqual([undefined, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ending(events as Event[])).toMatchObject({ reason: "error", text, info: timeout });
    expect([signals[0]?.aborted, controller.signal.aborted]).toEqual([true, false]);
    expect([vi.getTimerCount(), getEventListeners(controller.signal, "abort").length]).toEqual([0, 0]);
  });

  it.each<[string, (answer: () => AssistantStream) => AssistantStream | Promise<AssistantStream>]>([
    ["a StreamFn that never resolves", () => new Promise<never>(() => {})],
    ["a StreamFn that resolves late to a silent stream", (answer) => new Promise((resolve) => setTimeout(() => resolve(answer()), 90))],
  ])("%s has firstEventMs from the call on", async (_name, open) => {
    let at = -1;
    const begin = Date.now();
    const streamFn: StreamFn = (...args) => open(() => scriptedModel([stalls()])(...args) as AssistantStream);
    const reading = read(withStallTimeout(streamFn, limits)).then((events) => {
      at = Date.now() - begin;
      return events;
    });
    expect(ending(await given(reading)).info).toEqual(timeout);
    expect(at).toBe(100);
  });

  it("in a run the partial answer is kept and no call of it is executed", async () => {
    const { streamFn } = timed([stalls(3)]);
    const { outcome, messages, end } = await given(run(withStallTimeout(streamFn, limits)));
    expect([outcome, messages.map(textOf), end.error?.info]).toEqual(["error", ["go", "Hello"], timeout]);
  });

  it("the time the reader takes does not count", async () => {
    const slow = async () => {
      const types: string[] = [];
      for await (const event of await withStallTimeout(scriptedModel(["Hello, slow reader"]), limits)(model, { messages: [] })) {
        types.push(event.type);
        await new Promise((resolve) => setTimeout(resolve, 60_000));
      }
      return types;
    };
    expect((await given(slow())).at(-1)).toBe("done");
  });

  it("a stream slower than one limit but never silent for so long is left alone", async () => {
    const chatty = scriptedModel(["a".repeat(160)], { delayMs: 25 });
    expect(ending(await given(read(withStallTimeout(chatty, limits)))).text.length).toBe(160);
  });

  it.each([0, -1, Number.NaN, undefined])("a limit of %s is none", async (limit) => {
    const options = { firstEventMs: limit, idleMs: limit } as { firstEventMs: number; idleMs: number };
    for (const after of [0, 3]) {
      const controller = new AbortController();
      const running = run(withStallTimeout(scriptedModel([stalls(after)]), options), { signal: controller.signal });
      await vi.advanceTimersByTimeAsync(86_400_000);
      expect(vi.getTimerCount()).toBe(0);
      controller.abort();
      expect((await running).outcome).toBe("aborted");
    }
  });

  const kinds = ["throw", "reject", "throwSync", "end", "restart", "noStart"] as const;
  it.each(kinds)("passes on a stream with the fault %s, leaving no timer and no listener", async (kind) => {
    const answer: ScriptedAnswer = { content: ["Hello"], fault: { kind, afterEvents: 2 } };
    const plain = await run([answer]);
    const controller = new AbortController();
    const { streamFn, signals } = timed([answer]);
    const { events } = await run(withStallTimeout(streamFn, limits), { signal: controller.signal });
    expect(events).toEqual(plain.events);
    expect([vi.getTimerCount(), getEventListeners(signals[0] as AbortSignal, "abort").length]).toEqual([0, 0]);
    expect(signals[0]?.aborted).toBe(false);
  });

  it("the caller's abort reaches the stream with its reason; leaving early closes it", async () => {
    const controller = new AbortController();
    let closed = 0;
    let inner: AbortSignal | undefined;
    const endless: StreamFn = async function* (asked, _context, options) {
      inner = options?.signal;
      const b = new AssistantMessageBuilder(asked);
      try {
        for (;;) yield* b.text("x");
      } finally {
        closed++;
      }
    };
    for await (const event of await withStallTimeout(endless, limits)(model, { messages: [] }, { signal: controller.signal })) {
      if (event.type !== "text_delta") continue;
      controller.abort("why");
      break;
    }
    await vi.advanceTimersByTimeAsync(0);
    expect([inner?.reason, closed, vi.getTimerCount(), getEventListeners(controller.signal, "abort").length]).toEqual(["why", 1, 0, 0]);
  });

  it.each([0, 3])(
    "an abort of a silent stream that ignores its signal (after %s events) ends as aborted, with no timer left",
    async (after) => {
      // SPEC 11.2, 14.3
      const controller = new AbortController();
      const running = run(withStallTimeout(scriptedModel([stalls(after)]), { firstEventMs: 60_000, idleMs: 60_000 }), {
        signal: controller.signal,
      });
      await vi.advanceTimersByTimeAsync(1000);
      controller.abort();
      expect((await running).outcome).toBe("aborted");
      expect([vi.getTimerCount(), getEventListeners(controller.signal, "abort").length]).toEqual([0, 0]);
    },
  );

  it("an abort is not reported as a timeout", async () => {
    const controller = new AbortController();
    const reading = read(withStallTimeout(scriptedModel([stalls()]), limits), controller.signal);
    await vi.advanceTimersByTimeAsync(50);
    controller.abort();
    expect(ending(await given(reading)).reason).toBe("aborted");
  });
});

describe("withFallback", () => {
  const other = { id: "other", provider: "elsewhere" };

  it("goes to the next candidate and its model when one fails before any delta, whatever the failure", async () => {
    // SPEC 11.3
    const bad: ScriptedAnswer[] = [
      busy,
      fails({ kind: "auth", retryable: false }),
      fails(),
      ...(["throw", "reject", "throwSync", "end"] as const).map((kind): ScriptedAnswer => ({ content: ["x"], fault: { kind } })),
    ];
    for (const answer of bad) {
      const [first, second, third] = [timed([answer]), timed(["ok"]), timed(["never"])];
      const streamFn = withFallback([
        { streamFn: first.streamFn },
        { streamFn: second.streamFn, model: other },
        { streamFn: third.streamFn },
      ]);
      const { outcome, messages, events } = await given(run(streamFn));
      expect([outcome, messages.map(textOf)], JSON.stringify(answer)).toEqual(["completed", ["go", "ok"]]);
      expect(messages[1]).toMatchObject({ model: "other", provider: "elsewhere" });
      expect([first.models, second.models, third.models]).toEqual([["test-model"], ["other"], []]);
      expect(outline(events).filter((line) => line === "message_start assistant").length).toBe(1);
    }
  });

  it("stays with a candidate that has given a delta", async () => {
    const next = timed(["never"]);
    const { messages, outcome } = await run(
      withFallback([{ streamFn: scriptedModel([fails(limited, ["x"])]) }, { streamFn: next.streamFn }]),
    );
    expect([outcome, messages.map(textOf), next.at]).toEqual(["error", ["go", "x"], []]);
  });

  it("gives the last error when all fail", async () => {
    const last: ModelErrorInfo = { kind: "auth", retryable: false, status: 401 };
    const events = await read(
      withFallback([{ streamFn: scriptedModel([busy]) }, { streamFn: scriptedModel([fails(last)]), model: other }]),
    );
    expect(ending(events)).toMatchObject({ reason: "error", info: last, model: "other" });
  });

  it("an abort stops it", async () => {
    const controller = new AbortController();
    const next = timed(["never"]);
    const streamFn = withFallback([{ streamFn: scriptedModel([{ content: ["x"], delayMs: 1000 }]) }, { streamFn: next.streamFn }]);
    const running = run(streamFn, { signal: controller.signal });
    await vi.advanceTimersByTimeAsync(500);
    controller.abort();
    expect([(await given(running)).outcome, next.at]).toEqual(["aborted", []]);
  });

  it.each([[[]], [undefined], [[{}]], [[undefined]], ["x"]])("refuses candidates like %j", (candidates) => {
    expect(() => withFallback(candidates as never)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});
