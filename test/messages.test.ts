import {
  type AgentMessage,
  AssistantMessageBuilder,
  emptyUsage,
  type ImageContent,
  type StreamFn,
  sumUsage,
  toLlmMessages,
  type Usage,
  userMessage,
} from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { answer, callWith, deepFreeze, done, loneSurrogates, streams, toolCall } from "./hand-written.js";
import { continueRun, makeTool, resultsOf, run, textOf } from "./helpers.js";

afterEach(() => {
  vi.useRealTimers();
});

const image: ImageContent = { type: "image", data: "aGk=", mimeType: "image/png" };
const HIGH = "\ud83d";
const LOW = "\ude00";

describe("userMessage", () => {
  const text = { type: "text" as const, text: "look" };
  // SPEC 2.4
  it.each([
    ["a text stays a text", "look", undefined, "look"],
    ["no images leave the content as it is", "look", [], "look"],
    ["blocks stay blocks", [text, image], undefined, [text, image]],
    ["images follow the text", "look", [image], [text, image]],
    ["images follow the blocks", [image, text], [image], [image, text, image]],
    ["an empty text gives way to the images", "", [image], [image]],
  ])("%s", (_name, content, images, expected) => {
    const message = userMessage(deepFreeze(content), images && { images: deepFreeze(images) });
    expect(message.role).toBe("user");
    expect(message.content).toEqual(expected);
  });

  // SPEC 2.4
  it("is stamped with the current time unless a timestamp is given", () => {
    vi.useFakeTimers({ now: 1234 });
    expect(userMessage("x").timestamp).toBe(1234);
    expect(userMessage("x", { timestamp: 0 }).timestamp).toBe(0);
  });
});

describe("usage", () => {
  const usage = (n: number): Usage => ({
    input: n,
    output: n + 1,
    cacheRead: n + 2,
    cacheWrite: n + 3,
    totalTokens: 4 * n + 6,
    cost: { input: n, output: n, cacheRead: n, cacheWrite: n, total: 4 * n },
  });
  const result = (given: unknown) => ({ role: "toolResult", usage: given }) as unknown as AgentMessage;

  // SPEC 2.4
  it("emptyUsage is zeros, a fresh object each time", () => {
    const first = emptyUsage();
    first.input = 9;
    first.cost.total = 9;
    expect(Object.values({ ...emptyUsage(), ...emptyUsage().cost, cost: 0 })).toEqual(Array(7).fill(0));
  });

  // SPEC 2.4
  it("sumUsage adds assistant and tool-result usage and nothing else", () => {
    const messages = [answer([], { usage: usage(10) }), result(usage(100)), { ...userMessage("x"), usage: usage(1) } as AgentMessage];
    const note = { role: "note", usage: usage(1) } as unknown as AgentMessage;
    expect(sumUsage(deepFreeze([...messages, note]))).toEqual({
      input: 110,
      output: 112,
      cacheRead: 114,
      cacheWrite: 116,
      totalTokens: 452,
      cost: { input: 110, output: 110, cacheRead: 110, cacheWrite: 110, total: 440 },
    });
    expect(sumUsage([])).toEqual(emptyUsage());
  });

  // SPEC 2.4
  it.each([
    ["no usage", undefined],
    ["null", null],
    ["a number", 7],
    [
      "parts that are no numbers",
      { input: "7", output: Number.NaN, cacheRead: null, totalTokens: {}, cost: { total: "1", input: Number.NaN } },
    ],
    ["no cost", { input: 0 }],
    ["a null cost", { cost: null }],
  ])("sumUsage counts %s as 0", (_name, given) => {
    expect(sumUsage([answer([], { usage: given }), result(given)])).toEqual(emptyUsage());
    expect(sumUsage([result(given), result(usage(1))])).toEqual(usage(1));
  });
});

describe("a transcript is plain JSON", () => {
  const script: ScriptedAnswer[] = [
    [{ thinking: "hmm 😀" }, { text: "first" }, { toolCall: "look", args: { a: [1, null, { "": "\u0000" }], n: -0.5 } }],
    [{ toolCall: "nothing-like-it" }, { toolCall: "look", rawArgs: '{"__proto__": {"x": 1}}' }, { toolCall: "look", rawArgs: "[1" }],
    { content: ["partly"], errorMessage: "overloaded", errorInfo: { kind: "overloaded", retryable: true } },
  ];
  const look = makeTool("look", () => ({ content: [{ type: "text", text: "seen" }, image], usage: { ...emptyUsage(), input: 3 } }));

  // SPEC 2.1
  it("survives a JSON round trip unchanged and continues with the same requests", async () => {
    const { messages } = await run(script, { tools: [look] });
    const copy = JSON.parse(JSON.stringify(messages));
    expect(copy).toStrictEqual(messages);
    const next = userMessage("again", { timestamp: 1 });
    const [fromStored, fromCopy] = await Promise.all(
      [messages, copy].map((stored) => continueRun(["ok"], { messages: [...stored, next], tools: [look] })),
    );
    expect(fromCopy?.requests).toEqual(fromStored?.requests);
    expect(fromCopy?.requests[0]?.messages).toHaveLength(9);
    expect(fromCopy?.outcome).toBe("completed");
  });

  // SPEC 2.1
  it("hands on a tool's details untouched, whatever they are", async () => {
    class Details {
      readonly big = 10n;
      readonly self = this;
      toJSON(): never {
        throw new Error("details were serialised");
      }
    }
    const details = new Details();
    const tool = makeTool("look", () => ({ content: [], details }));
    const record = await run([[{ toolCall: "look" }], "end"], { tools: [tool] });
    const ends = record.events.filter((event) => event.type === "tool_execution_end");
    expect(ends[0]?.result.details).toBe(details);
    expect(resultsOf(record)[0]?.details).toBe(details);
    expect(resultsOf({ messages: record.end.messages })[0]?.details).toBe(details);
    const again = await run(["more"], { messages: record.messages });
    expect(again.outcome).toBe("completed");
  });

  // SPEC 2.1, 5.11
  it("does not serialise details for an error text either, and shows them to no model", async () => {
    const details = { toJSON: vi.fn(() => "secret") };
    const odd = makeTool("odd", () => ({ content: 5, details }) as never);
    const changed = makeTool("changed", () => ({ content: [], details }));
    const afterToolCall = ({ toolCall: { name } }: { toolCall: { name: string } }) =>
      name === "changed" ? { content: 5 as never } : undefined;
    const record = await run([[{ toolCall: "odd" }, { toolCall: "changed" }], "end"], { tools: [odd, changed], config: { afterToolCall } });
    expect(resultsOf(record).map(({ isError }) => isError)).toEqual([true, true]);
    expect(resultsOf(record).map(textOf).join()).not.toContain("secret");
    expect(details.toJSON).not.toHaveBeenCalled();
  });
});

describe("timestamps", () => {
  const HOST_TIME = 5_000_000;
  const timestamps = (value: unknown): number[] => {
    const found: number[] = [];
    JSON.stringify(value, (key, item) => {
      if (key === "timestamp") found.push(item);
      return item;
    });
    return found;
  };
  const thrower: StreamFn = () => {
    throw new Error("down");
  };
  const untimely: StreamFn = () => new Promise(() => {});
  const cases: [string, () => ScriptedAnswer[] | StreamFn, AbortSignal?][] = [
    ["tool turns", () => [[{ text: "a" }, { toolCall: "t" }, { toolCall: "unknown" }], "end"]],
    ["a streamFn with its own clock", () => streams([{ type: "start", partial: answer([]) }, done([toolCall("t", {})])])],
    ["an error in the stream", () => [{ content: ["part"], errorMessage: "x" }]],
    ["a stream that breaks", () => [{ content: ["part of it"], fault: { kind: "throw", afterEvents: 2 } }]],
    ["a streamFn that throws", () => thrower],
    ["an aborted run", () => untimely, AbortSignal.abort()],
  ];

  // SPEC 2.2
  it.each(cases)("come from config.now and replay with %s", async (_name, answers, signal) => {
    vi.useFakeTimers({ now: HOST_TIME });
    const replay = () => {
      let time = 100;
      const config = { now: () => time++, getFollowUpMessages: () => [] };
      return run(answers(), { prompts: [userMessage("go", { timestamp: 100 })], tools: [makeTool("t", () => "x")], config, signal });
    };
    const first = await replay();
    const stamps = timestamps([first.events, first.messages]);
    expect(stamps.length).toBeGreaterThan(4);
    expect(stamps.filter((stamp) => stamp < 100 || stamp > 200)).toEqual([]);
    const stored = timestamps(first.messages);
    expect(stored).toEqual([...stored].sort((a, b) => a - b));
    const second = await replay();
    expect(second.events).toEqual(first.events);
  });

  // SPEC 2.2
  it("come from Date.now without a config.now", async () => {
    vi.useFakeTimers({ now: HOST_TIME });
    const { messages } = await run([[{ toolCall: "t" }], "end"], { tools: [makeTool("t", () => "x")] });
    expect(timestamps(messages)).toEqual(Array(4).fill(HOST_TIME));
  });
});

describe("text in requests is well-formed", () => {
  const broken = `a${HIGH}b`;
  const brokenAnswer = [
    { type: "thinking", thinking: broken, thinkingSignature: broken },
    { type: "text", text: broken, textSignature: broken },
    toolCall("t", { [broken]: [broken, { deep: broken }] }, `id${LOW}`),
    toolCall(broken, {}, "c2"),
  ];
  const tool = makeTool("t", () => ({ content: [{ type: "text", text: broken }, image] }));

  // SPEC 2.7
  it.each([
    ["the default conversion", undefined],
    ["a conversion of the host's", (messages: AgentMessage[]) => [...toLlmMessages(messages)]],
  ])("lone surrogates become U+FFFD with %s, and the transcript keeps what came", async (_name, convertToLlm) => {
    const model = streams([done(brokenAnswer)]);
    const record = await run(model, {
      prompts: [userMessage(broken), userMessage([{ type: "text", text: broken }])],
      systemPrompt: broken,
      tools: [tool],
      config: convertToLlm ? { convertToLlm } : {},
    });
    expect(model.requests).toHaveLength(2);
    expect(loneSurrogates(model.requests)).toEqual([]);
    expect(model.requests[1]?.systemPrompt).toBe("a\ufffdb");
    expect(textOf(model.requests[1]?.messages[0])).toBe("a\ufffdb");
    const [, , asked, first] = model.requests[1]?.messages ?? [];
    expect(asked).toMatchObject({
      content: [{}, {}, { id: "id\ufffd", arguments: { "a\ufffdb": ["a\ufffdb", { deep: "a\ufffdb" }] } }, {}],
    });
    expect(first).toMatchObject({ toolCallId: "id\ufffd", content: [{ text: "a\ufffdb" }, image] });
    // SPEC 5.4: ids are made safe in the transcript already, or two of them could become one in a request
    const [thinking, text, call, named] = brokenAnswer;
    expect(record.messages.slice(2, 3)).toMatchObject([{ content: [thinking, text, { ...call, id: "id\ufffd" }, named] }]);
    expect(textOf(record.messages[0])).toBe(broken);
  });

  // SPEC 2.7
  it.each([
    [
      "the text of a failure",
      { messages: [userMessage("x"), answer([{ type: "text", text: "y" }], { stopReason: "error", errorMessage: broken })] },
    ],
    ["a tool's description", { tools: [{ ...tool, description: broken }] }],
    ["a tool's parameters", { tools: [{ ...tool, parameters: { type: "object", description: broken } }] }],
  ])("also in %s", async (_name, options) => {
    const { requests } = await run(["end"], options);
    expect(loneSurrogates(requests)).toEqual([]);
  });

  const split: StreamFn = async function* (model) {
    const b = new AssistantMessageBuilder(model);
    for (const half of [HIGH, LOW]) yield* b.thinking(half);
    for (const half of [HIGH, LOW]) yield* b.text(half);
    yield* b.toolCallStart("c1", "t");
    for (const part of [`{"k":"${HIGH}`, `${LOW}"}`]) yield* b.toolCallDelta(part);
    yield* b.done();
  };
  const live: StreamFn = async function* () {
    const partial = answer([{ type: "text", text: "" }]);
    const block = partial.content[0] as { text: string };
    for (const delta of [HIGH, LOW]) {
      block.text += delta;
      yield { type: "text_delta", contentIndex: 0, delta, partial };
    }
    yield { type: "done", reason: "stop", message: partial };
  };

  // SPEC 2.7
  it("a pair split over two deltas stays one character", async () => {
    const record = await run(split, { tools: [tool], config: { shouldStopAfterTurn: () => true } });
    const { requests } = await continueRun(["end"], { messages: record.messages });
    expect(requests[0]?.messages[1]).toMatchObject({ content: [{ thinking: "😀" }, { text: "😀" }, { arguments: { k: "😀" } }] });
    expect(textOf((await run(live)).messages[1])).toBe("😀");
  });

  // SPEC 2.7
  it("a shortened value in an error text is never cut inside a pair", async () => {
    for (let offset = 0; offset < 4; offset++) {
      const long = `${"x".repeat(offset)}${"😀".repeat(80)}`;
      const refused = await callWith({ type: "object", properties: { n: { type: "number" } } }, { n: long });
      const unknown = await run([[{ toolCall: long }], "end"]);
      const unusable = await callWith({ type: "object" }, [long]);
      const odd = await run([[{ toolCall: "t" }], "end"], { tools: [makeTool("t", () => [long] as never)] });
      for (const text of [refused.text, textOf(resultsOf(unknown)[0]), unusable.text, textOf(resultsOf(odd)[0])]) {
        expect(text).toContain("😀");
        expect(text).toContain("...");
        expect(loneSurrogates(text)).toEqual([]);
      }
    }
  });
});
