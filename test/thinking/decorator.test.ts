/** withThinkingCard around a model, in runs of the bare loop. */
import { type AssistantMessageEvent, type StreamFn, withFallback, withRetry, withThinkingCard } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { busy } from "../decorator-helpers.js";
import { answer, rawStream } from "../field-reports/conditions.js";
import { makeTool, model, run } from "../helpers.js";
import { advance, sinkOf, watchedRun, watchTimers } from "./helpers.js";

watchTimers();

const x = makeTool("x", () => "ran");
const partial = answer({});
const delta = (type: string, text: unknown): AssistantMessageEvent => ({ type, contentIndex: 0, delta: text, partial }) as never;
const done = { type: "done", reason: "stop", message: answer({ content: [{ type: "text", text: "Hi" }] }) };

describe("a card lasts from just before the model call to its first sign", () => {
  it("in a whole run: one for each call, none between", async () => {
    // SPEC 9.2: start just before the call, complete before the delta is delivered
    const streamFn = scriptedModel([[{ toolCall: "x" }], { content: ["Hello"], delayMs: 45_000 }]);
    const { heard, running } = watchedRun(streamFn, {
      tools: [x],
      onEvent: (event) =>
        void (event.type === "message_update" && event.assistantMessageEvent.type.endsWith("delta") && heard.push("delta")),
    });
    await advance(45_000);
    await running;
    expect(heard).toEqual([
      "agent_start",
      "turn_start",
      "message_start user",
      "message_end user",
      "1 start 0",
      "model call",
      "message_start assistant",
      "1 complete 0 delta",
      "delta",
      "message_end assistant",
      "tool_execution_start scripted_1_0",
      "tool_execution_end scripted_1_0",
      "message_start toolResult",
      "message_end toolResult",
      "turn_end",
      "turn_start",
      "2 start 0",
      "model call",
      "2 heartbeat 30000 Thinking... (30s)",
      "message_start assistant",
      "2 complete 45000 delta",
      "delta",
      "message_end assistant",
      "turn_end",
      "agent_end completed",
    ]);
  });

  const scripts: [string, ScriptedAnswer, string][] = [
    ["a text", "Hi", "delta"],
    ["thinking", [{ thinking: "Hm" }], "delta"],
    ["a tool call", [{ toolCall: "x", args: { a: 1 } }], "delta"],
    ["a tool call cut by the output limit", { content: [{ toolCall: "x", rawArgs: '{"a' }], stopReason: "length" }, "delta"],
    ["no content", { content: [] }, "done"],
    ["a failure", { errorMessage: "busy" }, "error"],
    ["a failure after a delta", { content: ["Hi"], errorMessage: "busy" }, "delta"],
    ["an abort of its own", { stopReason: "aborted" }, "aborted"],
    ["a throw", { content: ["Hi"], fault: { kind: "throw" } }, "error"],
    ["a throw after its start", { content: ["Hi"], fault: { kind: "throw", afterEvents: 1 } }, "error"],
    ["a throw after a delta", { content: ["Hi"], fault: { kind: "throw", afterEvents: 3 } }, "delta"],
    ["a StreamFn that throws", { fault: { kind: "throwSync" } }, "error"],
    ["a StreamFn that rejects", { fault: { kind: "reject" } }, "error"],
    ["an end without a word", { content: ["Hi"], fault: { kind: "end" } }, "error"],
    ["an end after its start", { content: ["Hi"], fault: { kind: "end", afterEvents: 2 } }, "error"],
    ["a restart before any delta", { content: ["Hi"], fault: { kind: "restart", afterEvents: 2 } }, "delta"],
    ["a restart after a delta", { content: ["Hello, you there, hello"], fault: { kind: "restart", afterEvents: 3 } }, "delta"],
    ["no start", { content: ["Hi"], fault: { kind: "noStart" } }, "delta"],
  ];
  it.each(scripts)("that is %s", async (_name, script, outcome) => {
    // SPEC 9.2, 9.4
    const slow: ScriptedAnswer = () => new Promise((resolve) => setTimeout(resolve, 1000, script));
    const { sink, running } = watchedRun(scriptedModel([slow, "then"]), { tools: [x] });
    await advance(1000);
    await running;
    expect(sink.lines().slice(0, 2)).toEqual(["1 start 0", `1 complete 1000 ${outcome}`]);
    expect(sink.events.length % 2).toBe(0);
  });

  const streams: [string, unknown[], string][] = [
    ["empty deltas of every kind", [..."text thinking toolcall".split(" ").map((kind) => delta(`${kind}_delta`, "")), done], "done"],
    ["deltas that are missing", [delta("text_delta", undefined), { type: "text_delta", contentIndex: 0, partial }, done], "done"],
    ["empty deltas, then one that is not", [delta("text_delta", ""), delta("thinking_delta", "x"), done], "delta"],
    [
      "starts and ends of blocks only",
      [{ type: "text_start", contentIndex: 0, partial }, { type: "text_end", contentIndex: 0, content: "Hi", partial }, done],
      "done",
    ],
    ["a done that says error", [{ ...done, message: answer({ stopReason: "error", errorMessage: "busy" }) }], "error"],
    ["a done that says aborted", [{ ...done, message: answer({ stopReason: "aborted" }) }], "aborted"],
    ["a done without a message", [{ type: "done", reason: "stop" }], "error"],
    ["an error event without a message", [{ type: "error", reason: "error" }], "error"],
    ["something that is no event", [null, 7, {}, done], "done"],
    ["two terminal events", [{ type: "error", reason: "error", error: answer({ errorMessage: "busy" }) }, done], "error"],
  ];
  it.each(streams)("that is %s", async (_name, events, outcome) => {
    // SPEC 9.2
    const { sink, running } = watchedRun(() => rawStream(events));
    await running;
    expect(sink.lines()).toEqual(["1 start 0", `1 complete 0 ${outcome}`]);
  });

  it.each<[string, () => Promise<any>, string]>([
    ["settles", () => Promise.resolve(done.message), "done"],
    ["settles with a failure", () => Promise.resolve(answer({ stopReason: "error", errorMessage: "busy" })), "error"],
    ["rejects", () => Promise.reject(new Error("lost")), "error"],
    ["never settles", () => new Promise(() => {}), "error"],
  ])("that is the end of the iteration and a result() that %s", async (_name, result, outcome) => {
    // SPEC 9.2, 3.1
    const { sink, running } = watchedRun(() => rawStream([{ type: "start", partial }], undefined, result));
    await advance(1000);
    await running;
    expect(sink.events.map((event) => [event.state, event.outcome])).toEqual([
      ["start", undefined],
      ["complete", outcome],
    ]);
  });

  it.each<[string, () => unknown]>([
    ["nothing", () => undefined],
    ["an object", () => ({})],
    ["an iterable that cannot be iterated", () => ({ [Symbol.asyncIterator]: () => expect.fail("no iterator") })],
  ])("that is %s in place of a stream", async (_name, give) => {
    // SPEC 9.2, 3.4
    const { sink, running } = watchedRun(give as StreamFn);
    expect((await running).outcome).toBe("error");
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 error"]);
  });
});

describe("a decorated model is to the loop as the bare one", () => {
  const faults = ["throw", "end", "restart", "noStart", "reject", "throwSync"] as const;
  it.each([undefined, ...faults.map((kind) => ({ kind, afterEvents: 2 }))])("with the fault %j", async (fault) => {
    // SPEC 9.2, 9.8
    const script: ScriptedAnswer[] = [{ content: [{ thinking: "Hm" }, "Hello, ", { toolCall: "x" }], fault }, "end"];
    const plain = await run(scriptedModel(script), { tools: [x], config: { now: () => 1 } });
    const { running } = watchedRun(scriptedModel(script), { tools: [x], config: { now: () => 1 } });
    const { events, messages } = await running;
    expect({ events, messages }).toEqual({ events: plain.events, messages: plain.messages });
  });

  it.each<[string, () => unknown]>([
    ["nothing", () => undefined],
    ["an object", () => ({})],
  ])("when it gives %s in place of a stream", async (_name, give) => {
    // SPEC 3.4
    const plain = await run(give as StreamFn);
    expect((await watchedRun(give as StreamFn).running).end.error).toEqual(plain.end.error);
  });

  it("when it hangs: its stream is closed with the abort, once", async () => {
    // SPEC 7.2, 9.2
    for (const decorate of [(streamFn: StreamFn) => streamFn, (streamFn: StreamFn) => withThinkingCard(streamFn, {})]) {
      const controller = new AbortController();
      const stream = rawStream([{ type: "start", partial }], () => new Promise(() => {}));
      const running = run(
        decorate(() => stream),
        { signal: controller.signal },
      );
      await advance(10);
      controller.abort();
      await running;
      expect(stream.seen).toEqual({ pulled: 2, returned: 1 });
    }
  });

  it("when its reader leaves in the middle of the wait, with no signal to tell", async () => {
    // SPEC 9.4
    const stream = rawStream([], () => new Promise(() => {}));
    const sink = sinkOf();
    const events = (await withThinkingCard(() => stream, sink.options)(model, { messages: [] })) as AsyncGenerator;
    void events.next();
    await advance(0);
    void events.return(undefined);
    expect([sink.lines(), stream.seen, vi.getTimerCount()]).toEqual([["1 start 0", "1 complete 0 aborted"], { pulled: 1, returned: 1 }, 0]);
  });

  it("when its reader leaves after the first event", async () => {
    // SPEC 9.4
    const sink = sinkOf();
    for await (const _event of await withThinkingCard(scriptedModel(["Hi"]), sink.options)(model, { messages: [] })) break;
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 aborted"]);
  });

  it("when nobody reads it: no card", async () => {
    // SPEC 9.4
    const sink = sinkOf();
    const events = (await withThinkingCard(scriptedModel(["Hi"]), sink.options)(model, { messages: [] })) as AsyncGenerator;
    await events.return(undefined);
    expect([sink.lines(), await events.next()]).toEqual([[], { done: true, value: undefined }]);
  });

  it("when the host's sink fails before the first delta", async () => {
    // SPEC 9.4, 4.10
    const { sink, running } = watchedRun(scriptedModel(["Hi"]), {
      onEvent: (event) => {
        if (event.type === "message_start" && event.message.role === "assistant") throw new Error("disk full");
      },
    });
    await expect(running).rejects.toMatchObject({ code: "sink_failed" });
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 aborted"]);
  });
});

describe("logical calls", () => {
  it("three calls in a run: three ids, one start and one complete each", async () => {
    // SPEC 9.2, 9.4
    const { sink, running } = watchedRun(scriptedModel([[{ toolCall: "x" }], [{ toolCall: "x" }], "Hi"]), { tools: [x] });
    await running;
    expect(sink.lines()).toEqual([1, 2, 3].flatMap((id) => [`${id} start 0`, `${id} complete 0 delta`]));
    expect(new Set(sink.events.map(({ cardId }) => cardId)).size).toBe(3);
  });

  it("two runs at once on one decorated StreamFn never share a card", async () => {
    // SPEC 9.2, 4.1
    const sink = sinkOf();
    const slow = (delayMs: number): ScriptedAnswer => ({ content: ["Hi"], delayMs });
    const streamFn = withThinkingCard(scriptedModel([slow(70_000), slow(40_000)]), sink.options);
    const first = run(streamFn);
    await advance(20_000);
    const second = run(streamFn);
    await advance(50_000);
    await Promise.all([first, second]);
    expect(sink.lines()).toEqual([
      "1 start 0",
      "2 start 0",
      "1 heartbeat 30000 Thinking... (30s)",
      "2 heartbeat 30000 Thinking... (30s)",
      "1 heartbeat 60000 Thinking... (60s)",
      "2 complete 40000 delta",
      "1 complete 70000 delta",
    ]);
  });

  it("retries inside stay on one card, waits included", async () => {
    // SPEC 9.2
    vi.spyOn(Math, "random").mockReturnValue(0);
    const retrying = withRetry(scriptedModel([busy, busy, "Hi"]), { minDelayMs: 20_000, maxDelayMs: 25_000 });
    const { sink, running } = watchedRun(retrying, {}, { createId: () => "card" });
    await advance(45_000);
    await running;
    expect(sink.lines()).toEqual(["1 start 0", "1 heartbeat 30000 Thinking... (30s)", "1 complete 45000 delta"]);
  });

  it("an abort in the wait before a retry completes at once", async () => {
    // SPEC 9.2, 11.1
    const controller = new AbortController();
    const { sink, running } = watchedRun(withRetry(scriptedModel([busy, "never"]), { minDelayMs: 20_000 }), { signal: controller.signal });
    await advance(10_000);
    controller.abort();
    await running;
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 10000 aborted"]);
  });

  it("retries that are used up, and candidates that all fail, are one failed card", async () => {
    // SPEC 9.2
    for (const streamFn of [
      withRetry(scriptedModel([busy, busy]), { maxRetries: 1 }),
      withFallback([{ streamFn: scriptedModel([busy]) }, { streamFn: scriptedModel([busy]) }]),
    ]) {
      const { sink, running } = watchedRun(streamFn);
      await advance(2000);
      await running;
      expect(sink.events.map(({ outcome }) => outcome)).toEqual([undefined, "error"]);
    }
  });

  it("inside withRetry every attempt is a call of its own", async () => {
    // SPEC 9.2
    const sink = sinkOf();
    const running = run(withRetry(withThinkingCard(scriptedModel([busy, "Hi"]), sink.options)));
    await advance(1000);
    await running;
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 error", "2 start 0", "2 complete 0 delta"]);
  });
});
