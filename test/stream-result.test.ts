import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answer, answerOf, delta, done, eventsThen, start, said as text } from "./hand-written.js";
import { aborted, run, textOf } from "./helpers.js";

describe("result() of a stream", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const later = (ms: number, message: unknown) => () => new Promise((resolve) => setTimeout(resolve, ms, message));

  // SPEC 3.1
  it("is not asked when there was a terminal event", async () => {
    const result = vi.fn();
    expect((await run(eventsThen([start, done([])], result))).outcome).toBe("completed");
    expect(result).not.toHaveBeenCalled();
  });

  // SPEC 3.1, 3.4
  it.each<[string, () => unknown, object, string]>([
    ["the answer", later(0, text("whole")), { stopReason: "stop" }, "whole"],
    ["the answer, at the last moment", later(999, text("whole")), { stopReason: "stop" }, "whole"],
    [
      "an answer with a stop reason of its own",
      later(0, answer([], { stopReason: "end" })),
      { stopReason: "stop", rawStopReason: "end" },
      "",
    ],
    ["a failure", later(0, answer([], { stopReason: "error", errorMessage: "why" })), { stopReason: "error", errorMessage: "why" }, ""],
    ["nothing", later(0, undefined), { stopReason: "error", errorMessage: expect.stringContaining("ended early") }, "part"],
    ["a rejection", () => Promise.reject(new Error("why")), { stopReason: "error", errorMessage: "why" }, "part"],
    [
      "a throw",
      () => {
        throw new Error("why");
      },
      { stopReason: "error", errorMessage: "why" },
      "part",
    ],
    [
      "the answer too late",
      later(1001, text("whole")),
      { stopReason: "error", errorMessage: expect.stringContaining("ended early") },
      "part",
    ],
    [
      "a rejection too late",
      () => later(1001, 0)().then(() => Promise.reject(new Error("late"))),
      { stopReason: "error", errorMessage: expect.stringContaining("ended early") },
      "part",
    ],
    ["nothing ever", () => new Promise(() => {}), { stopReason: "error", errorMessage: expect.stringContaining("ended early") }, "part"],
  ])("gives %s, and no more than a second is waited for it", async (_name, result, expected, said) => {
    const running = run(eventsThen([start, delta("part")], result));
    await vi.advanceTimersByTimeAsync(1000);
    const record = await running;
    expect(answerOf(record)).toMatchObject(expected);
    expect(textOf(answerOf(record))).toBe(said);
    await vi.advanceTimersByTimeAsync(10);
    expect(vi.getTimerCount()).toBe(0);
  });

  // SPEC 3.1, 7.2
  it("is not waited for after an abort", async () => {
    const controller = new AbortController();
    const running = run(
      eventsThen([start, delta("part")], () => new Promise(() => {})),
      { signal: controller.signal },
    );
    await vi.advanceTimersByTimeAsync(10);
    controller.abort(new Error("enough"));
    const record = await running;
    expect(record.outcome).toBe("aborted");
    expect(answerOf(record)).toMatchObject({
      stopReason: "aborted",
      content: [{ text: "part" }],
      errorMessage: expect.stringContaining("enough"),
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  // SPEC 3.4, 7.3
  it("a stream that throws because it was aborted ends the run as aborted, not as an error", async () => {
    const controller = new AbortController();
    const record = await run(
      async function* (_model, _context, options) {
        yield delta("part");
        controller.abort("stop");
        await aborted(options?.signal as AbortSignal);
        throw new Error("socket closed");
      },
      { signal: controller.signal },
    );
    expect([record.outcome, textOf(answerOf(record))]).toEqual(["aborted", "part"]);
  });
});
