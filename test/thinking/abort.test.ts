/** The end of a wait by an abort, whatever the model does. */
import { getEventListeners } from "node:events";
import { type AssistantMessageEvent, type AssistantStream, type StreamFn, withThinkingCard } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { answer, rawStream } from "../field-reports/conditions.js";
import { model } from "../helpers.js";
import { advance, sinkOf, watchedRun, watchTimers } from "./helpers.js";

watchTimers();

const start = { type: "start", partial: answer({}) };
const emptyDelta = { type: "text_delta", contentIndex: 0, delta: "", partial: answer({}) };
const done = { type: "done", reason: "stop", message: answer({}) };

describe("an abort", () => {
  const hangs: [string, StreamFn][] = [
    ["a StreamFn that never resolves", () => new Promise(() => {})],
    ["a stream that never begins", () => rawStream([], () => new Promise(() => {}))],
    ["a stream that is silent after its start", () => rawStream([start], () => new Promise(() => {}))],
    ["a stream of empty deltas", () => rawStream([emptyDelta], () => new Promise(() => {}))],
    ["a result() that never settles", () => rawStream([], undefined, () => new Promise(() => {}))],
    ["a scripted model that stalls", scriptedModel([{ content: ["Hi"], fault: { kind: "stall", afterEvents: 1 } }])],
  ];
  it.each(hangs)("of %s completes at once, before agent_end", async (_name, streamFn) => {
    // SPEC 9.2, 9.4, 14.3
    const controller = new AbortController();
    const { heard, running } = watchedRun(streamFn, { signal: controller.signal });
    await advance(500);
    const before = heard.length;
    controller.abort("enough");
    expect(heard[before]).toBe("1 complete 500 aborted");
    expect((await running).outcome).toBe("aborted");
    expect(heard.slice(before).filter((line) => /^1 |^agent_end/.test(line))).toEqual(["1 complete 500 aborted", "agent_end aborted"]);
    expect([vi.getTimerCount(), getEventListeners(controller.signal, "abort").length]).toEqual([0, 0]);
    await advance(100_000);
    expect(heard.at(-1)).toBe("agent_end aborted");
  });

  it("after the first delta says nothing more", async () => {
    // SPEC 9.2, 9.4
    const controller = new AbortController();
    const { sink, running } = watchedRun(scriptedModel([{ content: ["Hi"], fault: { kind: "stall", afterEvents: 3 } }]), {
      signal: controller.signal,
    });
    await advance(60_000);
    controller.abort();
    await running;
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 delta"]);
  });

  it("before the run: no call, no card", async () => {
    // SPEC 9.2, 7.5
    const { sink, running } = watchedRun(scriptedModel(["never"]), { signal: AbortSignal.abort() });
    await running;
    expect(sink.lines()).toEqual([]);
  });

  it("before the call, read without the loop: no call, no card, an aborted end", async () => {
    // SPEC 9.2, 7.3
    const scripted = scriptedModel(["never"]);
    const sink = sinkOf();
    const events: AssistantMessageEvent<string>[] = [];
    const stream = withThinkingCard(scripted, sink.options)(model, { messages: [] }, { signal: AbortSignal.abort("early") });
    for await (const event of await stream) events.push(event);
    expect(events.map(({ type }) => type)).toEqual(["start", "error"]);
    expect(events[1]).toMatchObject({ reason: "aborted", error: { errorMessage: "aborted: early" } });
    expect([sink.lines(), scripted.requests]).toEqual([[], []]);
  });

  it("by who hears the start: the model is not called any more", async () => {
    // SPEC 9.2, 7.3
    const controller = new AbortController();
    const scripted = scriptedModel(["never"]);
    const { heard, sink, running } = watchedRun(
      scripted,
      { signal: controller.signal },
      {
        onProgress: ({ state }) => void (state === "start" && controller.abort()),
      },
    );
    expect((await running).outcome).toBe("aborted");
    expect([sink.lines(), scripted.requests]).toEqual([["1 start 0", "1 complete 0 aborted"], []]);
    expect(heard.at(-1)).toBe("agent_end aborted");
  });

  it("by who hears a heartbeat: the beat first, then the end", async () => {
    // SPEC 9.3, 9.5
    const controller = new AbortController();
    const { sink, running } = watchedRun(
      scriptedModel([{ fault: { kind: "stall" } }]),
      { signal: controller.signal },
      {
        onProgress: ({ state }) => void (state === "heartbeat" && controller.abort()),
      },
    );
    await advance(30_000);
    await running;
    expect(sink.lines()).toEqual(["1 start 0", "1 heartbeat 30000 Thinking... (30s)", "1 complete 30000 aborted"]);
  });

  it("while a StreamFn has yet to resolve: the stream that comes late is closed unread", async () => {
    // SPEC 9.2, 7.2
    const controller = new AbortController();
    const late = rawStream([done]);
    const { running } = watchedRun(() => new Promise<AssistantStream>((resolve) => setTimeout(resolve, 2000, late)), {
      signal: controller.signal,
    });
    await advance(1000);
    controller.abort();
    await running;
    await advance(1000);
    expect(late.seen).toEqual({ pulled: 0, returned: 1 });
  });
});
