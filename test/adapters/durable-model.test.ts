import { type AgentTool, type AssistantMessageEvent, type StreamFn, type StreamOptions, userMessage, withRetry } from "turnloop";
import type { Step } from "turnloop/durable";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { deferred, makeTool, model, textOf } from "../helpers.js";
import { call, MemoryJournal, play, script, ticks } from "./durable-helpers.js";

const deltasOf = (events: { type: string; assistantMessageEvent?: object }[]): string[] =>
  events.flatMap(({ assistantMessageEvent: inner }) => (inner && "delta" in inner ? [String(inner.delta)] : []));

// SPEC 16.1
describe("what an engine is told of a step", () => {
  const options: StreamOptions = { headers: { authorization: "Bearer secret-header" }, temperature: 0, apiKey: "secret-key-000" };
  const config = { model: { ...model, headers: { "x-key": "secret-header" } }, apiKey: "secret-key-000", streamOptions: options };

  it("is plain JSON without key, headers and signal, and so is what is recorded", async () => {
    const seen: StreamOptions[] = [];
    const leaky: StreamFn = async function* (given, context, streamOptions) {
      seen.push(streamOptions ?? {});
      const answers = [[call("add", { a: 1 })], { errorMessage: `bad key ${streamOptions?.apiKey}` }];
      const turn = context.messages.length > 1 ? 1 : 0;
      yield* await scriptedModel(answers.slice(turn))(given, context);
    };
    const tool: AgentTool = makeTool("add", () => "1", {
      parameters: { type: "object", properties: { b: { type: "number", default: 2 } } },
    });
    const journal = new MemoryJournal();
    const { messages } = await play(journal.step, { streamFn: leaky, tools: [tool], config });
    expect(seen.map(({ apiKey, headers }) => [apiKey, headers])).toEqual(Array(2).fill(["secret-key-000", options.headers]));
    expect(JSON.stringify([journal.infos, journal.entries, messages])).not.toContain("secret");
    expect(messages.at(-1)).toMatchObject({ errorMessage: "bad key [API key]" });
    expect(journal.infos[0]).toEqual({
      kind: "model",
      input: {
        model,
        context: {
          messages: [userMessage("go", { timestamp: 1 })],
          tools: [{ name: "add", description: "add", parameters: tool.parameters }],
        },
        options: { temperature: 0 },
      },
    });
    expect(journal.infos[1]).toEqual({
      kind: "tool",
      input: {
        toolCallId: "scripted_1_0",
        toolName: "add",
        args: { a: 1, b: 2 },
        call: { turn: 1, index: 0, idempotencyKey: "run/tool:1:0:add" },
        graceMs: 250,
      },
    });
    expect(JSON.parse(JSON.stringify(journal.infos))).toEqual(journal.infos);
  });
});

// SPEC 16.2, 4.7
describe("a model step", () => {
  it("streams live when it runs, and gives the recorded answer when it is replayed", async () => {
    const streamFn = script(["one two three four five"], { chunkSize: 5 });
    const first = new MemoryJournal();
    const live = await play(first.step, { streamFn });
    expect(deltasOf(live.events)).toEqual(["one t", "wo th", "ree f", "our f", "ive"]);
    const replay = await play(new MemoryJournal(first.entries).step, { streamFn });
    expect(deltasOf(replay.events)).toEqual([]);
    expect(replay.messages).toEqual(live.messages);
  });

  it("pulls nothing more while the sink is busy", async () => {
    let pulled = 0;
    const counting: StreamFn = async function* (given, context) {
      for await (const event of await scriptedModel(["abcdef"], { chunkSize: 1 })(given, context)) {
        pulled++;
        yield event;
      }
    };
    const seen: number[] = [];
    const emit = async ({ type }: { type: string }): Promise<void> => {
      if (type !== "message_update") return;
      await ticks(3);
      seen.push(pulled);
    };
    await play(new MemoryJournal().step, { streamFn: counting, emit });
    expect(seen.slice(0, 6)).toEqual([2, 3, 4, 5, 6, 7]);
  });

  it("retries inside the step, whose record shows the last attempt alone", async () => {
    const flaky = scriptedModel([{ errorMessage: "busy", errorInfo: { kind: "overloaded", retryable: true } }, "Yes."]);
    const journal = new MemoryJournal();
    const { messages } = await play(journal.step, { streamFn: withRetry(flaky, { minDelayMs: 0, maxDelayMs: 0 }) });
    expect(textOf(messages[1])).toBe("Yes.");
    expect(journal.asked).toEqual(["run/model:1"]);
    expect(journal.entries[0]?.json).not.toContain("busy");
  });

  it("starts over on the same message when the engine calls it again", async () => {
    const streamFn = script(["one two"], { chunkSize: 4 });
    const twice: Step = async (_name, fn) => {
      await fn({});
      return fn({});
    };
    const { messages, events } = await play(twice, { streamFn });
    expect(deltasOf(events)).toEqual(["one ", "two", "one ", "two"]);
    expect(messages.map(textOf)).toEqual(["go", "one two"]);
    expect(events.filter(({ type }) => type === "message_start")).toHaveLength(2);
  });

  it("hears nothing more of an attempt that was ended", async () => {
    const attempt = new AbortController();
    const goOn = deferred();
    let calls = 0;
    const streamFn: StreamFn = async function* (given, context) {
      const isFirst = ++calls === 1;
      for await (const event of await scriptedModel([isFirst ? "stale" : "fresh"], { chunkSize: 1 })(given, context)) {
        yield event;
        if (isFirst && event.type === "text_delta") await goOn.promise;
      }
    };
    const step: Step = async (_name, fn) => {
      const first = fn({ signal: attempt.signal });
      await ticks(3);
      attempt.abort(new Error("moved"));
      await expect(first).rejects.toThrow("moved");
      goOn.resolve();
      return fn({});
    };
    const { messages, events } = await play(step, { streamFn });
    expect(deltasOf(events).join("")).toBe("sfresh");
    expect(textOf(messages[1])).toBe("fresh");
  });

  const partial = { ...scriptedMessage("half"), stopReason: "stop" };
  it.each<[string, unknown[], object]>([
    [
      "an Error where the message should be",
      [
        { type: "start", partial },
        { type: "error", reason: "error", error: Object.assign(new Error("boom"), { errorInfo: { kind: "network", retryable: true } }) },
      ],
      {
        stopReason: "error",
        errorMessage: "boom",
        errorInfo: { kind: "network", retryable: true },
        content: [{ type: "text", text: "half" }],
      },
    ],
    ["a failure whose message says otherwise", [{ type: "error", reason: "error", error: partial }], { stopReason: "error" }],
    [
      "a failure with an Error as text",
      [{ type: "error", reason: "error", error: { ...partial, stopReason: "error", errorMessage: new Error("deep") } }],
      { errorMessage: "deep" },
    ],
    [
      "an end without a message",
      [{ type: "done", reason: "stop" }],
      { stopReason: "error", errorMessage: 'The model\'s "done" event has no message; got undefined.' },
    ],
    [
      "an end whose message has no reason",
      [{ type: "done", reason: "length", message: { ...partial, stopReason: undefined } }],
      { stopReason: "length" },
    ],
    [
      "no end",
      [{ type: "start", partial }],
      {
        errorMessage: "The model's stream ended early: it gave no done and no error event.",
        content: expect.arrayContaining([{ type: "text", text: "half" }]),
      },
    ],
    [
      "what JSON cannot hold",
      [{ type: "done", reason: "stop", message: { ...partial, huge: 1n } }],
      { stopReason: "error", errorMessage: expect.stringContaining("The model's answer cannot be recorded as JSON: ") },
    ],
  ])("records failures as the loop would take them: %s", async (_, events, expected) => {
    const streamFn: StreamFn = async function* () {
      yield* events as AssistantMessageEvent<string>[];
    };
    const journal = new MemoryJournal();
    const { messages } = await play(journal.step, { streamFn });
    expect(messages[1]).toMatchObject(expected);
    expect((await play(new MemoryJournal(journal.entries).step, { streamFn })).messages).toEqual(messages);
  });

  it("makes no call for a run that is aborted by the time it runs", async () => {
    const caller = new AbortController();
    let called = 0;
    const late: Step = async (_name, fn) => {
      caller.abort("late");
      return fn({});
    };
    const streamFn: StreamFn = (...given) => {
      called++;
      return scriptedModel(["x"])(...given);
    };
    const { messages, outcome } = await play(late, { streamFn, signal: caller.signal });
    expect([called, outcome, messages[1]]).toMatchObject([0, "aborted", { errorMessage: "Aborted: late", content: [] }]);
  });
});

function scriptedMessage(text: string): object {
  return { role: "assistant", content: [{ type: "text", text }], api: "a", provider: "p", model: "m", timestamp: 9 };
}
