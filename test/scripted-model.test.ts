import { type AssistantMessage, type AssistantMessageEvent, emptyUsage, type LlmContext, userMessage } from "turnloop";
import { type ScriptedAnswer, type ScriptedModelOptions, scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answerOf } from "./hand-written.js";
import { makeTool, model, outline, resultsOf, run, textOf } from "./helpers.js";

type Events = AssistantMessageEvent<string>[];
const request = (): LlmContext => ({ messages: [userMessage("go", { timestamp: 1 })] });

/** All events of one model call. */
async function collect(streamFn: ReturnType<typeof scriptedModel>, signal?: AbortSignal): Promise<Events> {
  const events: Events = [];
  for await (const event of await streamFn(model, request(), signal && { signal })) events.push(event);
  return events;
}

const play = (answer: ScriptedAnswer, options?: ScriptedModelOptions) => collect(scriptedModel([answer], options));
const types = (events: Events) => events.map(({ type }) => type);
const deltas = (events: Events) => events.flatMap((event) => ("delta" in event ? [event.delta] : []));
const finalOf = (events: Events) => {
  const last = events[events.length - 1];
  return (last?.type === "done" ? last.message : last?.type === "error" ? last.error : undefined) as AssistantMessage;
};

beforeEach(() => {
  vi.useFakeTimers({ now: 1000 });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("scriptedModel's answers", () => {
  const text = (said: string) => ({ type: "text", text: said });

  // SPEC 13.1
  it.each<[string, ScriptedAnswer, object]>([
    ["a text", "hello", { content: [text("hello")], stopReason: "stop" }],
    ["an empty text", "", { content: [], stopReason: "stop" }],
    ["no blocks", [], { content: [], stopReason: "stop" }],
    [
      "blocks",
      [{ thinking: "hm" }, { text: "x" }, { toolCall: "t", args: { a: [1] }, id: "c" }],
      {
        content: [{ type: "thinking", thinking: "hm" }, text("x"), { type: "toolCall", id: "c", name: "t", arguments: { a: [1] } }],
        stopReason: "toolUse",
      },
    ],
    ["a call without arguments", [{ toolCall: "t" }], { content: [{ arguments: {} }] }],
    ["raw arguments", [{ toolCall: "t", rawArgs: ' {"a" : "\\u0041"} ' }], { content: [{ arguments: { a: "A" } }] }],
    ["raw arguments rather than args", [{ toolCall: "t", args: { a: 1 }, rawArgs: '{"b":2}' }], { content: [{ arguments: { b: 2 } }] }],
    [
      "broken arguments",
      [{ toolCall: "t", rawArgs: '{"a":' }],
      { content: [{ arguments: {}, argumentsError: expect.stringMatching(/\S/) }] },
    ],
    [
      "arguments that are no object",
      [{ toolCall: "t", args: [1] }],
      { content: [{ arguments: {}, argumentsError: expect.stringMatching(/\S/) }] },
    ],
    [
      "an answer in detail",
      { content: ["a", { text: "b" }, { toolCall: "t" }] },
      { content: [text("ab"), { name: "t" }], stopReason: "toolUse" },
    ],
    ["nothing in detail", {}, { content: [], stopReason: "stop" }],
    ["a stop reason", { content: [{ toolCall: "t" }], stopReason: "length" }, { stopReason: "length" }],
    ["a stop reason of no known kind", { content: ["x"], stopReason: "end_turn" }, { stopReason: "end_turn" }],
    ["usage", { content: ["x"], usage: { input: 3, output: 4 } }, { usage: { ...emptyUsage(), input: 3, output: 4, totalTokens: 7 } }],
    ["a failure", { content: ["part"], errorMessage: "down" }, { content: [text("part")], stopReason: "error", errorMessage: "down" }],
    [
      "a failure of a kind",
      { errorMessage: "busy", errorInfo: { kind: "overloaded", status: 529, retryable: true } },
      { errorInfo: { kind: "overloaded", status: 529, retryable: true } },
    ],
    [
      "a failure of which only the kind is said",
      { content: ["part"], errorInfo: { kind: "network", retryable: true } },
      { content: [text("part")], stopReason: "error", errorInfo: { kind: "network", retryable: true } },
    ],
    ["a failure without a text", { stopReason: "error" }, { stopReason: "error", errorMessage: expect.stringMatching(/\S/) }],
    ["an abort", { content: ["part"], stopReason: "aborted" }, { content: [text("part")], stopReason: "aborted" }],
    ["a function", () => "made", { content: [text("made")] }],
    ["a function that answers later", async () => [{ text: "later" }], { content: [text("later")] }],
    ["a function that gives a function", () => async () => () => ({ content: ["deep"] }), { content: [text("deep")] }],
  ])("%s", async (_name, answer, expected) => {
    const events = await play(answer);
    expect(types(events)[0]).toBe("start");
    expect(finalOf(events)).toMatchObject({ role: "assistant", model: "test-model", provider: "test-provider", ...expected });
    const last = events[events.length - 1];
    expect(last).toMatchObject({
      type: ["error", "aborted"].includes(finalOf(events).stopReason) ? "error" : "done",
      reason: finalOf(events).stopReason,
    });
  });

  // SPEC 13.1
  it("are given call by call, and then the script is exhausted", async () => {
    const streamFn = scriptedModel(["one", "two"]);
    const said = [];
    for (let call = 0; call < 4; call++) said.push(finalOf(await collect(streamFn)));
    expect(said.map((message) => textOf(message))).toEqual(["one", "two", "", ""]);
    expect(said.slice(2)).toMatchObject(Array(2).fill({ stopReason: "error", errorMessage: expect.stringContaining("script exhausted") }));
    const record = await run([]);
    expect([record.outcome, record.end.error?.message]).toEqual(["error", expect.stringContaining("script exhausted")]);
  });

  // SPEC 13.1
  it("may depend on the request and its options", async () => {
    const script: ScriptedAnswer[] = [
      (context, options) => `${context.systemPrompt}|${textOf(context.messages[0])}|${options?.apiKey}|${options?.signal?.aborted}`,
    ];
    const { messages } = await run(script, { systemPrompt: "sys", config: { apiKey: "key" } });
    expect(textOf(messages[1])).toBe("sys|go|key|false");
  });

  // SPEC 13.1, 3.4
  it.each<[string, ScriptedAnswer]>([
    [
      "throws",
      () => {
        throw new Error("scripted mistake");
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("scripted mistake");
      },
    ],
  ])("a function that %s is an error turn", async (_name, answer) => {
    const record = await run([answer]);
    expect(answerOf(record)).toMatchObject({ stopReason: "error", errorMessage: "scripted mistake" });
  });

  // SPEC 13.1, 5.4
  it("calls without an id get one each, no id twice in a run", async () => {
    const calls = [{ toolCall: "t" }, { toolCall: "t" }];
    const record = await run([calls, calls, "end"], { tools: [makeTool("t", () => "x")] });
    const ids = resultsOf(record).map(({ toolCallId }) => toolCallId);
    expect(new Set(ids).size).toBe(4);
    expect((await run([calls, calls, "end"])).requests).toEqual((await run([calls, calls, "end"])).requests);
  });
});

describe("scriptedModel's chunks", () => {
  const long = "The quick brown fox 🦊 jumps 🐶🐶 over it.";

  // SPEC 13.1
  it.each([undefined, 1, 2, 3, 7, 1000, Number.POSITIVE_INFINITY])(
    "of %s units make up the whole, are never empty and cut no pair",
    async (chunkSize) => {
      const options = chunkSize === undefined ? {} : { chunkSize };
      const answer = [{ thinking: long }, { text: long }, { toolCall: "t", args: { long } }];
      const events = await play(answer, options);
      for (const delta of deltas(events)) {
        expect(delta.length).toBeGreaterThan(0);
        expect(delta.length).toBeLessThanOrEqual((chunkSize ?? 16) + 1);
        expect(delta).not.toMatch(/\p{Surrogate}/u);
      }
      const whole = (type: string) => deltas(events.filter((event) => event.type === type)).join("");
      expect(whole("thinking_delta")).toBe(long);
      expect(whole("text_delta")).toBe(long);
      expect(JSON.parse(whole("toolcall_delta"))).toEqual({ long });
      expect(finalOf(events).content).toMatchObject([{ thinking: long }, { text: long }, { arguments: { long } }]);
      expect(await play(answer, options)).toEqual(events);
    },
  );

  // SPEC 13.1
  it.each([0, -1, Number.NaN])("of %s units lose nothing all the same", async (chunkSize) => {
    expect(textOf(finalOf(await play(long, { chunkSize })))).toBe(long);
  });

  // SPEC 13.1
  it("come without any timer unless delays are asked for", async () => {
    const streamed = collect(scriptedModel([long]));
    expect(vi.getTimerCount()).toBe(0);
    expect(types(await streamed)).toContain("text_delta");
  });
});

describe("scriptedModel's delays", () => {
  /** The events so far, after each of the steps. */
  async function watch(streamFn: ReturnType<typeof scriptedModel>, steps: number[], signal?: AbortSignal): Promise<string[][]> {
    const events: Events = [];
    const reading = (async () => {
      for await (const event of await streamFn(model, request(), signal && { signal })) events.push(event);
    })();
    const seen: string[][] = [];
    for (const step of steps) {
      await vi.advanceTimersByTimeAsync(step);
      seen.push(types(events));
    }
    if (seen[seen.length - 1]?.some((type) => type === "done" || type === "error")) await reading;
    return seen;
  }

  // SPEC 13.1
  it("an answer's delay comes before its first event", async () => {
    const whole = ["start", "text_start", "text_delta", "text_end", "done"];
    expect(await watch(scriptedModel([{ content: ["x"], delayMs: 100 }]), [0, 99, 1])).toEqual([[], [], whole]);
  });

  // SPEC 13.1
  it("the model's delay comes before each delta", async () => {
    const begun = ["start", "text_start"];
    const seen = await watch(scriptedModel(["abcd"], { chunkSize: 2, delayMs: 10 }), [0, 9, 1, 10]);
    expect(seen).toEqual([begun, begun, [...begun, "text_delta"], [...begun, "text_delta", "text_delta", "text_end", "done"]]);
  });

  // SPEC 13.1, 7.2
  it.each<[string, ScriptedAnswer, ScriptedModelOptions, string]>([
    ["an answer's delay", { content: ["x"], delayMs: 1000 }, {}, ""],
    ["a delta's delay", "abcd", { chunkSize: 2, delayMs: 10 }, "ab"],
  ])("an abort ends %s at once, as aborted, and leaves no timer and no listener", async (_name, answer, options, kept) => {
    const controller = new AbortController();
    const remove = vi.spyOn(controller.signal, "removeEventListener");
    const add = vi.spyOn(controller.signal, "addEventListener");
    const reading = collect(scriptedModel([answer], options), controller.signal);
    await vi.advanceTimersByTimeAsync(15);
    controller.abort(new Error("enough"));
    const final = finalOf(await reading);
    expect(final).toMatchObject({ stopReason: "aborted", errorMessage: expect.stringContaining("enough") });
    expect(textOf(final)).toBe(kept);
    expect(vi.getTimerCount()).toBe(0);
    expect(add.mock.calls.length - remove.mock.calls.length).toBeLessThanOrEqual(1);
  });

  // SPEC 13.1
  it("an abort between two events ends the answer as aborted", async () => {
    const controller = new AbortController();
    const events: Events = [];
    for await (const event of await scriptedModel(["a long answer, long enough"])(model, request(), { signal: controller.signal })) {
      events.push(event);
      if (event.type === "text_delta") controller.abort("stop");
    }
    expect(types(events).filter((type) => type === "text_delta")).toHaveLength(1);
    expect(finalOf(events)).toMatchObject({ stopReason: "aborted", content: [{ text: "a long answer, l" }] });
  });
});

describe("scriptedModel's faults", () => {
  const twoDeltas = { content: ["0123456789abcdef-and-more"] };

  // SPEC 13.1, 3.3, 3.4
  it.each<[string, ScriptedAnswer, string, object]>([
    ["throwSync", { fault: { kind: "throwSync" } }, "", { stopReason: "error", errorMessage: expect.stringMatching(/\S/) }],
    ["throwSync with a text", { errorMessage: "no!", fault: { kind: "throwSync" } }, "", { errorMessage: "no!" }],
    ["reject", { errorMessage: "no!", fault: { kind: "reject" } }, "", { stopReason: "error", errorMessage: "no!" }],
    ["throw at once", { ...twoDeltas, errorMessage: "no!", fault: { kind: "throw" } }, "", { stopReason: "error", errorMessage: "no!" }],
    [
      "throw after a delta",
      { ...twoDeltas, fault: { kind: "throw", afterEvents: 3 } },
      "0123456789abcdef",
      { stopReason: "error", errorMessage: expect.stringMatching(/\S/) },
    ],
    [
      "end at once",
      { ...twoDeltas, fault: { kind: "end" } },
      "",
      { stopReason: "error", errorMessage: expect.stringContaining("ended early") },
    ],
    [
      "end after a delta",
      { ...twoDeltas, fault: { kind: "end", afterEvents: 3 } },
      "0123456789abcdef",
      { errorMessage: expect.stringContaining("ended early") },
    ],
    [
      "end before the terminal event",
      { ...twoDeltas, fault: { kind: "end", afterEvents: 5 } },
      "0123456789abcdef-and-more",
      { stopReason: "error" },
    ],
    [
      "restart after a delta",
      { ...twoDeltas, fault: { kind: "restart", afterEvents: 3 } },
      "0123456789abcdef-and-more",
      { stopReason: "stop" },
    ],
    ["noStart", { ...twoDeltas, fault: { kind: "noStart" } }, "0123456789abcdef-and-more", { stopReason: "stop" }],
  ])("%s", async (_name, answer, kept, expected) => {
    const record = await run([answer]);
    expect(answerOf(record)).toMatchObject(expected);
    expect(textOf(answerOf(record))).toBe(kept);
    expect(record.outcome).toBe(answerOf(record)?.stopReason === "stop" ? "completed" : "error");
  });

  // SPEC 13.1
  it("each comes after exactly so many events", async () => {
    const whole = types(await play(twoDeltas));
    for (let afterEvents = 0; afterEvents < whole.length; afterEvents++) {
      expect(types(await play({ ...twoDeltas, fault: { kind: "end", afterEvents } }))).toEqual(whole.slice(0, afterEvents));
      const restarted = types(await play({ ...twoDeltas, fault: { kind: "restart", afterEvents } }));
      expect(restarted).toEqual([...whole.slice(0, afterEvents), ...whole]);
      const seen: string[] = [];
      const throwing = (async () => {
        const stream = await scriptedModel([{ ...twoDeltas, fault: { kind: "throw", afterEvents } }])(model, request());
        for await (const event of stream) seen.push(event.type);
      })();
      await expect(throwing).rejects.toThrow();
      expect(seen).toEqual(whole.slice(0, afterEvents));
    }
    expect(types(await play({ ...twoDeltas, fault: { kind: "noStart" } }))).toEqual(whole.slice(1));
  });

  // SPEC 13.1, 7.2
  it.each([0, 3])(
    "a stall after %i events never goes on by itself, whatever the signal says, but an abort ends the run",
    async (afterEvents) => {
      const controller = new AbortController();
      let ended = false;
      const running = run([{ ...twoDeltas, fault: { kind: "stall", afterEvents } }], { signal: controller.signal });
      running.then(() => {
        ended = true;
      });
      await vi.advanceTimersByTimeAsync(3_600_000);
      expect(ended).toBe(false);
      controller.abort();
      const record = await running;
      expect(record.outcome).toBe("aborted");
      expect(textOf(answerOf(record))).toBe(afterEvents === 0 ? "" : "0123456789abcdef");
      expect(outline(record.events).slice(-2)).toEqual(["turn_end", "agent_end aborted"]);
    },
  );
});

describe("scriptedModel's requests", () => {
  // SPEC 13.1
  it("are deep copies: what happens later to messages and tools does not show", async () => {
    const streamFn = scriptedModel(["a", "b"]);
    const block = { type: "text" as const, text: "x" };
    const parameters = { properties: { a: {} as Record<string, unknown> } };
    const context: LlmContext = {
      systemPrompt: "s",
      messages: [userMessage([block])],
      tools: [{ name: "t", description: "d", parameters }],
    };
    const before = structuredClone(context);
    await streamFn(model, context);
    expect(streamFn.requests).toEqual([before]);
    block.text = "changed";
    context.messages.push(userMessage("more"));
    parameters.properties.a.type = "number";
    expect(streamFn.requests).toEqual([before]);
    streamFn.requests[0]?.messages.pop();
    expect(context.messages).toHaveLength(2);
  });

  // SPEC 13.1
  it("are one for each call, also for calls that fail", async () => {
    const script: ScriptedAnswer[] = [[{ toolCall: "t" }], { fault: { kind: "throwSync" } }];
    const { requests } = await run(script, { tools: [makeTool("t", () => "x")], systemPrompt: "s" });
    expect(requests.map(({ messages }) => messages.map(({ role }) => role))).toEqual([["user"], ["user", "assistant", "toolResult"]]);
    expect(requests[0]).toMatchObject({ systemPrompt: "s", tools: [{ name: "t" }] });
  });

  // SPEC 13.1, 2.1
  it("hold whatever a host's details are", async () => {
    const details: Record<string, unknown> = { big: 1n, when: new Date(0) };
    details.self = details;
    const { requests } = await run([[{ toolCall: "t" }], "end"], { tools: [makeTool("t", () => ({ content: [], details }))] });
    const seen = requests[1]?.messages[2] as { details: typeof details };
    expect(seen.details).toMatchObject({ big: 1n, when: new Date(0) });
    expect(seen.details).not.toBe(details);
    expect(seen.details.self).toBe(seen.details);
  });
});
