import { type AssistantMessage, AssistantMessageBuilder, type AssistantMessageEvent, emptyUsage, type Usage } from "turnloop";
import { describe, expect, it, vi } from "vitest";
import { deepFreeze } from "./hand-written.js";
import { model, run, textOf } from "./helpers.js";

const builder = () => new AssistantMessageBuilder(model, { now: () => 7 });
const types = (events: AssistantMessageEvent[]): string[] =>
  events.map((event) => ("contentIndex" in event ? `${event.type} ${event.contentIndex}` : event.type));
const partialOf = (event: AssistantMessageEvent | undefined) => (event as { partial: AssistantMessage }).partial;
const finalOf = (events: AssistantMessageEvent[]): AssistantMessage => {
  const last = events[events.length - 1];
  return (last as { message: AssistantMessage }).message ?? (last as { error: AssistantMessage }).error;
};

type Method = [string, (b: AssistantMessageBuilder) => AssistantMessageEvent[]];
const methods: Method[] = [
  ["text", (b) => b.text("t")],
  ["an empty text", (b) => b.text("")],
  ["thinking", (b) => b.thinking("t")],
  ["an empty thinking", (b) => b.thinking("")],
  ["toolCallStart", (b) => b.toolCallStart("1", "t")],
  ["toolCallEnd", (b) => b.toolCallEnd()],
  ["blockEnd", (b) => b.blockEnd()],
  ["usage", (b) => b.usage({ input: 1 })],
  ["done", (b) => b.done("stop")],
  ["fail", (b) => b.fail("x")],
];

describe("AssistantMessageBuilder's events", () => {
  // SPEC 3.2
  it("keep blocks of one type apart, each with its signature, when they are told where one ends", () => {
    const b = builder();
    const events = [
      ...b.blockEnd("of nothing"),
      ...b.thinking("a"),
      ...b.blockEnd("s1"),
      ...b.thinking("", "s2"),
      ...b.blockEnd(),
      ...b.text("x"),
      ...b.blockEnd("s3"),
      ...b.text("y"),
      ...b.toolCallStart("c1", "add"),
      ...b.blockEnd("s4"),
      ...b.blockEnd("too late"),
      ...b.done(),
    ];
    expect(finalOf(events).content).toEqual([
      { type: "thinking", thinking: "a", thinkingSignature: "s1" },
      { type: "thinking", thinking: "", thinkingSignature: "s2" },
      { type: "text", text: "x", textSignature: "s3" },
      { type: "text", text: "y" },
      { type: "toolCall", id: "c1", name: "add", arguments: {}, thoughtSignature: "s4" },
    ]);
    const ends = events.filter(({ type }) => type.endsWith("_end"));
    expect(types(ends)).toEqual(["thinking_end 0", "thinking_end 1", "text_end 2", "text_end 3", "toolcall_end 4"]);
    expect(ends.map((event) => partialOf(event).content)).toEqual([1, 2, 3, 4, 5].map((n) => finalOf(events).content.slice(0, n)));
  });

  // SPEC 3.2
  it("are a whole stream: start, blocks that close by themselves, done", () => {
    const b = builder();
    const events = [
      ...b.thinking("hm"),
      ...b.thinking("m", "sig"),
      ...b.text("Hel"),
      ...b.text(""),
      ...b.text("lo"),
      ...b.toolCallStart("c1", "add"),
      ...b.toolCallDelta('{"a":'),
      ...b.toolCallDelta("1}"),
      ...b.toolCallStart("c2", "add"),
      ...b.toolCallEnd(),
      ...b.toolCallEnd(),
      ...b.text("bye"),
      ...b.usage({ input: 3 }),
      ...b.done("toolUse"),
    ];
    expect(types(events)).toEqual([
      "start",
      "thinking_start 0",
      "thinking_delta 0",
      "thinking_delta 0",
      "thinking_end 0",
      "text_start 1",
      "text_delta 1",
      "text_delta 1",
      "text_end 1",
      "toolcall_start 2",
      "toolcall_delta 2",
      "toolcall_delta 2",
      "toolcall_end 2",
      "toolcall_start 3",
      "toolcall_end 3",
      "text_start 4",
      "text_delta 4",
      "text_end 4",
      "done",
    ]);
    expect(events.flatMap((event) => ("delta" in event ? [event.delta] : []))).toEqual(["hm", "m", "Hel", "lo", '{"a":', "1}", "bye"]);
    expect(events.flatMap((event) => ("content" in event ? [event.content] : []))).toEqual(["hmm", "Hello", "bye"]);
    expect(finalOf(events)).toEqual({
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hmm", thinkingSignature: "sig" },
        { type: "text", text: "Hello" },
        { type: "toolCall", id: "c1", name: "add", arguments: { a: 1 } },
        { type: "toolCall", id: "c2", name: "add", arguments: {} },
        { type: "text", text: "bye" },
      ],
      api: "test-api",
      provider: "test-provider",
      model: "test-model",
      usage: { ...emptyUsage(), input: 3, totalTokens: 3 },
      stopReason: "toolUse",
      timestamp: 7,
    });
  });

  // SPEC 3.2
  it("blockEnd keeps two neighbours of one kind apart, and closes nothing twice", () => {
    const b = builder();
    const events = [
      ...b.thinking("one", "s1"),
      ...b.blockEnd(),
      ...b.blockEnd(),
      ...b.thinking("", "secret", true),
      ...b.blockEnd(),
      ...b.text("a"),
      ...b.blockEnd(),
      ...b.text("b"),
      ...b.done(),
    ];
    expect(types(events).filter((type) => !type.includes("delta"))).toEqual([
      "start",
      ...["thinking_start 0", "thinking_end 0", "thinking_start 1", "thinking_end 1"],
      ...["text_start 2", "text_end 2", "text_start 3", "text_end 3", "done"],
    ]);
    expect(finalOf(events).content).toEqual([
      { type: "thinking", thinking: "one", thinkingSignature: "s1" },
      { type: "thinking", thinking: "", thinkingSignature: "secret", redacted: true },
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]);
  });

  // SPEC 3.2
  it.each(methods)("begin with one start when %s comes first", (_name, first) => {
    const b = builder();
    expect(types(first(b))[0]).toBe("start");
    for (const [, next] of methods) expect(types(next(b))).not.toContain("start");
  });

  // SPEC 3.2
  it.each(methods.slice(-2))("end with %s: nothing comes after it", (_name, end) => {
    const b = builder();
    b.toolCallStart("1", "t");
    const message = finalOf(end(b));
    const before = structuredClone(message);
    for (const [, method] of [...methods, ["toolCallDelta", (x) => x.toolCallDelta("{")] as Method]) expect(method(b)).toEqual([]);
    expect(message).toEqual(before);
  });

  // SPEC 3.2
  it("toolCallDelta without an open call is refused, and the stream can still begin", () => {
    const b = builder();
    expect(() => b.toolCallDelta("{}")).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(types(b.text("x"))).toEqual(["start", "text_start 0", "text_delta 0"]);
    expect(() => b.toolCallDelta("{}")).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(types(b.text("y"))).toEqual(["text_delta 0"]);
  });

  // SPEC 3.2
  it.each([
    ["toolUse with a call", (b: AssistantMessageBuilder) => b.toolCallStart("1", "t"), "toolUse"],
    ["stop without one", (b: AssistantMessageBuilder) => b.text("x"), "stop"],
  ] as const)("done without a reason means %s", (_name, begin, reason) => {
    const b = builder();
    begin(b);
    const events = b.done();
    expect(events[events.length - 1]).toMatchObject({ type: "done", reason, message: { stopReason: reason } });
  });

  // SPEC 3.2, 3.4
  it.each<[string, unknown, Parameters<AssistantMessageBuilder["fail"]>[1], object]>([
    ["an Error", new Error("down"), undefined, { stopReason: "error", errorMessage: "down" }],
    ["a string", "down", undefined, { stopReason: "error", errorMessage: "down" }],
    ["nothing", undefined, undefined, { stopReason: "error", errorMessage: expect.stringMatching(/\S/) }],
    [
      "an AbortError",
      new DOMException("stopped", "AbortError"),
      undefined,
      { stopReason: "aborted", errorMessage: "stopped", errorInfo: { kind: "aborted", retryable: false } },
    ],
    [
      "what kind it was",
      "busy",
      { kind: "overloaded", status: 529, retryable: true },
      { stopReason: "error", errorInfo: { kind: "overloaded", status: 529, retryable: true } },
    ],
    [
      "an abort of the provider's own kind",
      "cut",
      { kind: "aborted", retryable: false },
      { stopReason: "aborted", errorInfo: { kind: "aborted", retryable: false } },
    ],
  ])("fail with %s keeps the content", (_name, error, info, expected) => {
    const b = builder();
    b.text("part");
    const events = b.fail(error, info);
    expect(events[events.length - 1]).toMatchObject({ type: "error", reason: (expected as AssistantMessage).stopReason, error: expected });
    expect(textOf(finalOf(events))).toBe("part");
  });

  // SPEC 3.2
  it("are what a StreamFn yields: a run shows them one for one", async () => {
    const record = await run(async function* (used) {
      const b = new AssistantMessageBuilder(used);
      yield* b.text("Hi");
      yield* b.thinking("hm");
      yield* b.done("length");
    });
    const inner = record.events.flatMap((event) => (event.type === "message_update" ? [event.assistantMessageEvent] : []));
    expect(types(inner)).toEqual(["text_start 0", "text_delta 0", "text_end 0", "thinking_start 1", "thinking_delta 1", "thinking_end 1"]);
    expect(record.messages[1]).toMatchObject({ stopReason: "length", content: [{ text: "Hi" }, { thinking: "hm" }] });
  });
});

describe("AssistantMessageBuilder's usage", () => {
  const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  const priced = () => new AssistantMessageBuilder({ ...model, cost });
  const given = (b: AssistantMessageBuilder, ...parts: Partial<Usage>[]): Usage => {
    for (const part of parts) b.usage(deepFreeze(part));
    return finalOf(b.done()).usage;
  };

  // SPEC 3.2
  it.each<[string, Partial<Usage>[], Partial<Usage>]>([
    ["a part alone", [{ output: 2 }], { output: 2, totalTokens: 2 }],
    [
      "parts that come one by one",
      [{ input: 10, cacheRead: 4 }, { output: 1 }, { output: 2 }],
      { input: 10, cacheRead: 4, output: 2, totalTokens: 16 },
    ],
    ["a total of the provider's", [{ input: 1, totalTokens: 99 }], { input: 1, totalTokens: 99 }],
    ["a cost of the provider's", [{ cost: { ...emptyUsage().cost, total: 5 } }], { cost: { ...emptyUsage().cost, total: 5 } }],
    ["parts a provider left undefined", [{ input: 5, output: undefined, cost: undefined }], { input: 5, totalTokens: 5 }],
  ])("adds up %s", (_name, parts, expected) => {
    expect(given(builder(), ...parts)).toEqual({ ...emptyUsage(), ...expected });
  });

  // SPEC 3.2, 12.2
  it("prices the tokens by the model's cost per million", () => {
    const usage = given(priced(), { input: 1_000_000, output: 100_000 }, { cacheRead: 2_000_000, cacheWrite: 400_000 });
    expect(usage.cost.input).toBeCloseTo(3);
    expect(usage.cost.output).toBeCloseTo(1.5);
    expect(usage.cost.cacheRead).toBeCloseTo(0.6);
    expect(usage.cost.cacheWrite).toBeCloseTo(1.5);
    expect(usage.cost.total).toBeCloseTo(6.6);
    expect(given(priced(), { cost: { ...emptyUsage().cost, total: 9 } }).cost.total).toBe(9);
  });
});

describe("AssistantMessageBuilder's partials", () => {
  const play = (b: AssistantMessageBuilder): AssistantMessageEvent[] => [
    ...b.thinking("a"),
    ...b.text("b"),
    ...b.text("c"),
    ...b.toolCallStart("1", "t"),
    ...b.toolCallDelta('{"k":["v'),
    ...b.toolCallDelta('w"]}'),
    ...b.usage({ input: 1 }),
    ...b.text("d"),
    ...b.text("e"),
    ...b.done(),
  ];

  // SPEC 3.2
  it("never change, whatever comes later", () => {
    const b = builder();
    const whole = play(builder());
    const replayed: AssistantMessageEvent[] = [];
    const frozen: AssistantMessageEvent[] = [];
    for (const method of [() => b.thinking("a"), () => b.text("b"), () => b.text("c"), () => b.toolCallStart("1", "t")]) {
      const events = method();
      replayed.push(...structuredClone(events));
      frozen.push(...deepFreeze(events));
    }
    frozen.push(...deepFreeze(b.toolCallDelta('{"k":["v')), ...b.toolCallDelta('w"]}'), ...b.usage({ input: 1 }));
    frozen.push(...deepFreeze(b.text("d")), ...b.text("e"), ...b.done());
    expect(frozen).toEqual(whole);
    expect(frozen.slice(0, replayed.length)).toEqual(replayed);
  });

  // SPEC 3.2
  it("are not changed by what the caller does to the usage it gave", () => {
    const b = builder();
    const usage = { input: 1, cost: { ...emptyUsage().cost, total: 1 } };
    const partial = partialOf(b.usage(usage)[0]);
    usage.input = usage.cost.total = 1000;
    expect(partial.usage).toMatchObject({ input: 1, cost: { total: 1 } });
    expect(finalOf(b.done()).usage).toMatchObject({ input: 1, cost: { total: 1 } });
  });

  // SPEC 3.2
  it("share every block that a delta is not about", () => {
    const partials = play(builder()).flatMap((event) => ("partial" in event ? [partialOf(event)] : []));
    for (let i = 1; i < partials.length; i++) {
      const [before, after] = [partials[i - 1]!.content, partials[i]!.content];
      for (let k = 0; k < before.length - 1; k++) expect(after[k]).toBe(before[k]);
    }
    expect(partials[partials.length - 1]?.content).toHaveLength(4);
  });

  // SPEC 3.2
  it("are stamped once, with the time the builder was made", () => {
    let time = 1;
    const b = new AssistantMessageBuilder(model, { now: () => time++ });
    expect(new Set(play(b).map((event) => (partialOf(event) ?? finalOf([event])).timestamp))).toEqual(new Set([1]));
    vi.useFakeTimers({ now: 42 });
    expect(finalOf(new AssistantMessageBuilder({ id: "m", provider: "p" }).done())).toMatchObject({
      timestamp: 42,
      api: "unknown",
      model: "m",
    });
    vi.useRealTimers();
  });
});
