import { AssistantMessageBuilder, type AssistantMessageEvent, emptyUsage, type StreamFn, type ToolCall } from "turnloop";
import { describe, expect, it, vi } from "vitest";
import { answer, answerOf, delta, done, eventsThen, iterable, start, streams, toolCall } from "./hand-written.js";
import { makeTool, outline, type RunRecord, run, textOf } from "./helpers.js";

const failure = (said: string): AssistantMessageEvent => ({
  type: "error",
  reason: "error",
  error: answer([{ type: "text", text: said }], { stopReason: "error", errorMessage: `${said} failed` }),
});
const updatesOf = (record: RunRecord) => record.events.filter((event) => event.type === "message_update");
/** The outline of the assistant message, its updates by their inner type. */
const answerOutline = (record: RunRecord): string =>
  record.events
    .flatMap((event) => {
      if (event.type === "message_update") return [event.assistantMessageEvent.type];
      if (event.type !== "message_start" && event.type !== "message_end") return [];
      return event.message.role === "assistant" ? [event.type] : [];
    })
    .join(" ");

describe("a stream that is not by the book", () => {
  // SPEC 3.3
  it.each<[string, unknown[], string, string]>([
    ["an update before the start", [delta("a"), start, done([])], "message_start text_delta start message_end", ""],
    ["no start", [delta("a"), delta("ab"), done([{ type: "text", text: "ab" }])], "message_start text_delta text_delta message_end", "ab"],
    ["only a done", [done([{ type: "text", text: "x" }])], "message_start message_end", "x"],
    ["a start and a done", [start, done([{ type: "text", text: "x" }])], "message_start message_end", "x"],
    [
      "a second start",
      [start, delta("old"), start, delta("new"), done([{ type: "text", text: "new" }])],
      "message_start text_delta start text_delta message_end",
      "new",
    ],
    [
      "a done after the done",
      [start, done([{ type: "text", text: "1" }]), done([{ type: "text", text: "2" }])],
      "message_start message_end",
      "1",
    ],
    ["an update after the done", [start, done([{ type: "text", text: "1" }]), delta("2")], "message_start message_end", "1"],
    ["an error after the done", [start, done([{ type: "text", text: "1" }]), failure("2")], "message_start message_end", "1"],
    [
      "indexes out of order",
      [start, delta("a", 7), delta("a", -1), delta("a", 0), done([])],
      "message_start text_delta text_delta text_delta message_end",
      "",
    ],
    [
      "events of no known type",
      [start, { type: "ping" }, null, undefined, {}, delta("a"), done([])],
      "message_start text_delta message_end",
      "",
    ],
    [
      "updates without a partial",
      [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "a" }, done([])],
      "message_start text_start text_delta message_end",
      "",
    ],
  ])("%s: one message, and its final content is the terminal event's", async (_name, events, expected, said) => {
    const record = await run(streams(events));
    expect(answerOutline(record)).toBe(expected);
    expect(textOf(answerOf(record))).toBe(said);
    expect(record.outcome).toBe("completed");
  });

  // SPEC 3.3
  it("the first terminal event wins also when it is the error", async () => {
    const record = await run(streams([start, failure("1"), done([{ type: "text", text: "2" }])]));
    expect(record.outcome).toBe("error");
    expect(answerOf(record)).toMatchObject({ stopReason: "error", errorMessage: "1 failed", content: [{ text: "1" }] });
  });

  // SPEC 3.3
  it("is left after the terminal event: nothing more is pulled, and it may clean up", async () => {
    const pulled: string[] = [];
    let cleaned = false;
    const record = await run(async function* () {
      try {
        for (const event of [start, done([]), delta("late")]) {
          pulled.push(event.type);
          yield event;
        }
      } finally {
        cleaned = true;
      }
    });
    expect(pulled).toEqual(["start", "done"]);
    expect(cleaned).toBe(true);
    expect(record.outcome).toBe("completed");
  });

  // SPEC 3.3
  it.each<[string, () => unknown]>([
    ["never settles", () => new Promise(() => {})],
    ["rejects", () => Promise.reject(new Error("no"))],
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
  ])("a return() that %s changes nothing", async (_name, onReturn) => {
    const record = await run(() =>
      iterable(async () => ({ done: false, value: done([{ type: "text", text: "x" }]) }), { return: onReturn }),
    );
    expect([record.outcome, textOf(answerOf(record))]).toEqual(["completed", "x"]);
  });

  // SPEC 3.3
  it("a restart replaces everything: no update shows the old attempt any more", async () => {
    const attempt = (name: string, key: string) => {
      const b = new AssistantMessageBuilder({ id: "m", provider: "p" });
      const json = JSON.stringify({ [key]: Array.from({ length: 60 }, (_, i) => i) });
      return [...b.toolCallStart(name, name), ...b.toolCallDelta(json.slice(0, 100)), ...b.toolCallDelta(json.slice(100)), ...b.done()];
    };
    const old = attempt("old", "stale").slice(0, -1);
    const record = await run(streams([...old, ...attempt("t", "fresh")]), { tools: [makeTool("t", () => "x")] });
    const types = updatesOf(record).map((event) => event.assistantMessageEvent.type);
    const after = updatesOf(record).slice(types.indexOf("start"));
    expect(after.length).toBeGreaterThan(3);
    expect(after.filter((event) => /stale|old/.test(JSON.stringify(event)))).toEqual([]);
    expect(outline(record.events).filter((name) => name === "message_start assistant")).toHaveLength(2);
  });

  // SPEC 3, 4.8
  it("a toolcall_end carries the whole call, however long it is", async () => {
    const args = { items: Array.from({ length: 100 }, (_, i) => ({ i })) };
    const b = new AssistantMessageBuilder({ id: "m", provider: "p" });
    const deltas = JSON.stringify(args).split("");
    const events = [...b.toolCallStart("c1", "t"), ...deltas.flatMap((unit) => b.toolCallDelta(unit)), ...b.done()];
    const record = await run(streams(events), { tools: [makeTool("t", () => "x")] });
    const ended = updatesOf(record).filter((event) => event.assistantMessageEvent.type === "toolcall_end");
    expect(ended.map(({ message }) => (message.content[0] as ToolCall).arguments)).toEqual([args]);
    expect(ended.map(({ assistantMessageEvent }) => (assistantMessageEvent as { toolCall: ToolCall }).toolCall.arguments)).toEqual([args]);
  });

  // SPEC 3.3
  it("a partial with a hole, because a later block came first, gives whole blocks to the host", async () => {
    const content: unknown[] = [];
    content[1] = { type: "text", text: "second" };
    const events = [{ type: "text_delta", contentIndex: 1, delta: "second", partial: answer(content) }, done([])];
    const record = await run(streams(events));
    for (const { message } of updatesOf(record)) for (const block of message.content) expect(block).toHaveProperty("type");
    expect(updatesOf(record)).toHaveLength(1);
  });

  // SPEC 2, 3.3
  it.each<[string, unknown[]]>([
    ["a done with nothing but content", [{ type: "done", reason: "stop", message: { content: [{ type: "text", text: "x" }] } }]],
    [
      "a done with nulls",
      [{ type: "done", reason: "stop", message: { content: "x", usage: null, api: null, provider: null, model: null } }],
    ],
    ["usage in part", [done([{ type: "text", text: "x" }], { usage: { input: 0 }, api: undefined })]],
    ["usage without numbers", [done([{ type: "text", text: "x" }], { usage: { input: "0", output: Number.NaN, cost: null } })]],
    [
      "a partial with nothing but content that then breaks off",
      [{ type: "text_delta", partial: { content: [{ type: "text", text: "x" }] } }, { type: "error" }],
    ],
  ])("%s is filled up to a whole message", async (_name, events) => {
    const record = await run(streams(events));
    const strings = { api: expect.any(String), provider: expect.any(String), model: expect.any(String) };
    expect(answerOf(record)).toMatchObject({ role: "assistant", ...strings, usage: emptyUsage(), timestamp: expect.any(Number) });
    expect(textOf(answerOf(record))).toBe("x");
  });
});

describe("stop reasons", () => {
  // SPEC 2.3, 5.1
  it.each<[unknown, boolean, object]>([
    ["end_turn", false, { stopReason: "stop", rawStopReason: "end_turn" }],
    ["end_turn", true, { stopReason: "toolUse", rawStopReason: "end_turn" }],
    ["", true, { stopReason: "toolUse", rawStopReason: "" }],
    ["toString", false, { stopReason: "stop", rawStopReason: "toString" }],
    ["stop", true, { stopReason: "stop" }],
    ["toolUse", false, { stopReason: "toolUse" }],
    ["length", false, { stopReason: "length" }],
  ])("%j, with calls: %j, is one of the five in everything a run emits", async (stopReason, calls, expected) => {
    const content = [{ type: "text", text: "x" }, ...(calls ? [toolCall("t", {})] : [])];
    const partial = answer(content, { stopReason: "in_progress" });
    const events = [{ type: "text_delta", contentIndex: 0, delta: "x", partial }, done(content, { stopReason })];
    const record = await run(streams(events), { tools: [makeTool("t", () => "ran")] });
    expect(answerOf(record)).toMatchObject(expected);
    expect("rawStopReason" in (answerOf(record) ?? {})).toBe("rawStopReason" in expected);
    const reasons = JSON.stringify(record.events).match(/"stopReason":"[^"]*"/g) ?? [];
    expect(reasons.filter((reason) => !/"(stop|length|toolUse)"$/.test(reason))).toEqual([]);
    expect(record.messages.map(textOf).includes("ran")).toBe(calls);
  });
});

describe("an answer that fails", () => {
  const thrower = (thrown: unknown): StreamFn =>
    async function* () {
      yield start;
      yield delta("part");
      throw thrown;
    };
  const fails =
    (value: unknown): (() => never) =>
    () => {
      throw value;
    };
  const awful = {
    get message() {
      throw new Error("worse");
    },
  };
  const returned = (value: unknown): StreamFn => (() => value) as unknown as StreamFn;

  // SPEC 3.4
  it.each<[string, StreamFn, RegExp, string]>([
    ["a streamFn that throws", fails(new Error("down")), /^down$/, ""],
    ["a streamFn that throws nothing", fails(undefined), /\S/, ""],
    ["a streamFn that throws what cannot be read", fails(awful), /\S/, ""],
    ["a streamFn that rejects", async () => fails(new Error("down"))(), /^down$/, ""],
    ["a streamFn that rejects with a string", () => Promise.reject("down"), /^down$/, ""],
    ["nothing in place of a stream", returned(undefined), /async iterable.*undefined/, ""],
    ["null in place of a stream", returned(null), /async iterable.*null/, ""],
    ["an array in place of a stream", returned([start]), /async iterable/, ""],
    ["a text in place of a stream", returned("hello"), /async iterable.*hello/, ""],
    ["a synchronous generator in place of a stream", returned((function* () {})()), /async iterable/, ""],
    ["a promise of nothing", returned(Promise.resolve()), /async iterable.*undefined/, ""],
    ["an iterator that cannot be made", returned({ [Symbol.asyncIterator]: fails(new Error("no iterator")) }), /no iterator/, ""],
    ["a next() that throws", returned(iterable(fails(new Error("no next")))), /no next/, ""],
    ["a next() that gives nothing", returned(iterable(() => undefined)), /\S/, ""],
    ["an iteration that throws", thrower(new Error("cut")), /^cut$/, "part"],
    ["an iteration that throws a symbol", thrower(Symbol("cut")), /cut/, "part"],
    ["an iteration that ends early", eventsThen([start, delta("part")]), /ended early/, "part"],
    ["an empty iteration", eventsThen([]), /ended early/, ""],
    ["a done without a message", streams([delta("part"), { type: "done", reason: "stop" }]), /"done" event has no message/, "part"],
    ["an error without a message", streams([delta("part"), { type: "error", reason: "error" }]), /"error" event has no error/, "part"],
    ["an error that does not say why", streams([{ type: "error", reason: "error", error: answer([], { stopReason: "error" }) }]), /\S/, ""],
    ["a done that is an error", streams([done([], { stopReason: "error", errorMessage: "refused" })]), /^refused$/, ""],
  ])("%s is an error turn that says so and keeps what came", async (_name, streamFn, expected, kept) => {
    const record = await run(streamFn, { tools: [makeTool("t", () => "x")], config: { getFollowUpMessages: () => [] } });
    expect(answerOf(record)).toMatchObject({ stopReason: "error", errorMessage: expect.stringMatching(expected) });
    expect(textOf(answerOf(record))).toBe(kept);
    expect(outline(record.events).slice(-4)).toEqual(["message_start assistant", "message_end assistant", "turn_end", "agent_end error"]);
    expect(record.end.error?.message).toBe(answerOf(record)?.errorMessage);
    expect(record.messages).toHaveLength(2);
  });

  // SPEC 3.4, 4.4
  it.each<[string, (events: AssistantMessageEvent[]) => StreamFn]>([
    ["ends early", (events) => eventsThen(events)],
    [
      "throws",
      (events) =>
        async function* () {
          yield* events;
          throw new Error("cut");
        },
    ],
    ["gives an error event", (events) => streams([...events, { type: "error", reason: "error", error: answer([toolCall("t", {})]) }])],
  ])("no tool of an answer that %s is executed", async (_name, make) => {
    const b = new AssistantMessageBuilder({ id: "m", provider: "p" });
    const execute = vi.fn(() => "x");
    const record = await run(make([...b.toolCallStart("c1", "t"), ...b.toolCallEnd()]), { tools: [makeTool("t", execute)] });
    expect(execute).not.toHaveBeenCalled();
    expect(record.outcome).toBe("error");
    expect(answerOf(record)?.content).toMatchObject([{ type: "toolCall", name: "t" }]);
    expect(outline(record.events).filter((name) => name.startsWith("tool_"))).toEqual([]);
  });

  // SPEC 3.1
  it.each<[string, StreamFn]>([
    ["a promise of a stream", async () => streams([done([{ type: "text", text: "x" }])])({ id: "m", provider: "p" }, { messages: [] })],
    ["next() results that are no promises", returned(iterable(() => ({ done: false, value: done([{ type: "text", text: "x" }]) })))],
    [
      "a thenable of a stream",
      returned({
        then: (resolve: (value: unknown) => void) => resolve(eventsThen([done([{ type: "text", text: "x" }])])({} as never, {} as never)),
      }),
    ],
  ])("but %s is as good as any", async (_name, streamFn) => {
    const record = await run(streamFn);
    expect([record.outcome, textOf(answerOf(record))]).toEqual(["completed", "x"]);
  });
});
