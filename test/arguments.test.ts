import type { AgentTool, AssistantMessage, ToolCall } from "turnloop";
import { Type } from "turnloop/schema";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { answerOf, callWith, done, NOT_EXECUTED, streams, toolCall } from "./hand-written.js";
import { makeTool, type RunRecord, resultsOf, run, textOf } from "./helpers.js";

const callsOf = (message: AssistantMessage | undefined): ToolCall[] =>
  (message?.content ?? []).filter((block): block is ToolCall => block.type === "toolCall");

const idsIn = (record: RunRecord, type: "tool_execution_start" | "tool_execution_end") =>
  record.events.flatMap((event) => (event.type === type ? [event.toolCallId] : []));

function nested(depth: number): string {
  return `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
}

describe("call ids", () => {
  // SPEC 5.4
  it.each<[string, unknown[], (string | RegExp)[]]>([
    ["of a provider stay", ["a", "b"], ["a", "b"]],
    ["that are empty are made of turn and index", ["", "x", ""], ["call_1_0", "x", "call_1_2"]],
    ["that are missing are made too", [undefined, null], ["call_1_0", "call_1_1"]],
    ["that repeat get a suffix, the first keeps its own", ["a", "a", "a"], ["a", /^a./, /^a./]],
    ["with a suffix do not meet another call's own", ["a", "a", "a_2", "a_1"], ["a", /^a./, "a_2", "a_1"]],
    ["that are made do not meet another call's own", ["", "call_1_0"], [/^call_1_0/, "call_1_0"]],
  ])("%s, the same everywhere", async (_name, ids, expected) => {
    const content = ids.map((id) => ({ ...toolCall("t", {}), id }));
    const model = streams([done(content)], [done([toolCall("t", {}, "")])]);
    const seen: string[] = [];
    const record = await run(model, { tools: [makeTool("t", (id) => String(seen.push(id)))] });
    const given = callsOf(answerOf(record)).map(({ id }) => id);
    given.forEach((id, i) => {
      expect(id).toMatch(expected[i] instanceof RegExp ? expected[i] : new RegExp(`^${expected[i]}$`));
    });
    expect(new Set(given).size).toBe(ids.length);
    const all = [...given, "call_2_0"];
    expect(seen).toEqual(all);
    expect(idsIn(record, "tool_execution_start")).toEqual(all);
    expect(idsIn(record, "tool_execution_end")).toEqual(all);
    expect(resultsOf(record).map(({ toolCallId }) => toolCallId)).toEqual(all);
    expect(callsOf(model.requests[1]?.messages[1] as AssistantMessage).map(({ id }) => id)).toEqual(given);
  });
});

describe("arguments as the model sent them", () => {
  // SPEC 5.4
  it.each<[string, unknown, object]>([
    ["absent", undefined, {}],
    ["null", null, {}],
    ["an empty text", "", {}],
    ["an object", { a: [1, { b: null }] }, { a: [1, { b: null }] }],
    ["the JSON text of an object", ' {"a": [1, "😀"]}\n', { a: [1, "😀"] }],
    ["an object without prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ["an object with undefined in it", { a: undefined, b: [undefined, 1], c: { d: undefined } }, { b: [null, 1], c: {} }],
    ["a deep object", JSON.parse(nested(400)), JSON.parse(nested(400))],
  ])("%s: an object for the tool and plain JSON in the transcript", async (_name, given, expected) => {
    const record = await callWith({ type: "object" }, given);
    expect(record.got).toEqual(expected);
    const [call] = callsOf(answerOf(record));
    expect(call).toEqual(toolCall("t", expected));
    expect(JSON.parse(JSON.stringify(call))).toStrictEqual(call);
  });

  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const bad: [string, unknown][] = [
    ["an array", [1]],
    ["a number", 5],
    ["a boolean", false],
    ["a function", () => 1],
    ["a plain text", "hello"],
    ["the JSON text of an array", "[1]"],
    ["the JSON text of a scalar", "5"],
    ["broken JSON", '{"a": 1'],
    ["JSON with something after it", '{"a":1} {"b":2}'],
    ["a BigInt in them", { n: 1n }],
    ["a circle", circular],
    ["very deep nesting", JSON.parse(nested(100_000))],
    ["very deep nesting as text", nested(100_000)],
    [
      "a getter that throws",
      {
        get a() {
          throw new Error("no");
        },
      },
    ],
  ];

  // SPEC 5.4, 5.8
  it.each(bad)("%s: {} and an argumentsError, and the call is answered with an error, not executed", async (_name, given) => {
    const execute = vi.fn(() => "ran");
    const beforeToolCall = vi.fn();
    const record = await run(streams([done([toolCall("t", given, "c1"), toolCall("t", {}, "c2")])]), {
      tools: [makeTool("t", execute)],
      config: { beforeToolCall },
    });
    const [call] = callsOf(answerOf(record));
    expect(call?.arguments).toEqual({});
    expect(call?.argumentsError).toMatch(/\S/);
    expect(resultsOf(record).map(({ isError }) => isError)).toEqual([true, false]);
    expect(textOf(resultsOf(record)[0])).toContain(call?.argumentsError);
    expect(execute.mock.calls.map(([id]: unknown[]) => id)).toEqual(["c2"]);
    expect(beforeToolCall).toHaveBeenCalledTimes(1);
    expect(record.events).toContainEqual({ type: "tool_execution_start", toolCallId: "c1", toolName: "t", args: {} });
  });

  // SPEC 3.2, 5.4
  it.each(["[1]", '"x"', '{"a":', "}", '{"a":1}}', nested(100_000)])(
    "broken argument text that was streamed is answered the same way",
    async (rawArgs) => {
      const execute = vi.fn(() => "ran");
      const record = await run([[{ toolCall: "t", rawArgs }], "sorry"], { tools: [makeTool("t", execute)] });
      expect(execute).not.toHaveBeenCalled();
      expect(resultsOf(record)).toMatchObject([{ isError: true }]);
      expect(record.outcome).toBe("completed");
    },
  );

  // SPEC 5.6, 5.7
  it("stay in transcript, events and next request, whatever preparation, coercion, the tool or the StreamFn make of them", async () => {
    const sent = { n: "5", list: '["a"]' };
    const given = structuredClone(sent);
    const model = streams([done([toolCall("t", given)])]);
    const received: unknown[] = [];
    const tool = makeTool(
      "t",
      (_id, params, _signal, onUpdate) => {
        received.push(structuredClone(params));
        onUpdate({ content: [] });
        Object.assign(params, { n: "written by the tool" }).list.push("by the tool");
        Object.assign(given, { n: "written by the StreamFn" });
        return "ok";
      },
      {
        parameters: Type.Object({ n: Type.Number(), list: Type.Array(Type.String()), d: Type.Number({ default: 1 }) }),
        prepareArguments: (args) => Object.assign(args as object, { prepared: true }),
      },
    );
    const record = await run(model, { tools: [tool] });
    expect(received).toEqual([{ n: 5, list: ["a"], d: 1, prepared: true }]);
    expect(callsOf(answerOf(record))[0]?.arguments).toEqual(sent);
    const args = record.events.flatMap((event) => ("args" in event ? [event.args] : []));
    expect(args).toEqual([sent, sent]);
    expect(callsOf(model.requests[1]?.messages[1] as AssistantMessage)[0]?.arguments).toEqual(sent);
  });
});

describe("keys that name a prototype", () => {
  const anything = Type.Object({ o: Type.Optional(Type.Union([Type.Object({}), Type.Array(Type.Any())])) });
  const standard = { "~standard": { version: 1, vendor: "x", validate: (value: unknown) => ({ value }) } };
  const kinds: [string, unknown, Partial<AgentTool>][] = [
    ["TypeBox", anything, {}],
    ["JSON Schema", { type: "object", properties: { o: { type: ["object", "array"] } } }, {}],
    ["Zod", z.looseObject({ o: z.union([z.looseObject({}), z.array(z.any())]).optional() }), {}],
    ["a Standard Schema", standard, { jsonSchema: { type: "object", properties: { o: { type: "object" } } } }],
  ];
  const texts = [
    '{"__proto__":{"polluted":1}}',
    '{"o":{"__proto__":{"polluted":1},"k":1}}',
    '{"o":[{"__proto__":{"polluted":1}},[{"__proto__":{"polluted":1}}]]}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"o":{"constructor":{"prototype":{"polluted":1}},"prototype":{"polluted":1}}}',
    '{"o":"{\\"__proto__\\":{\\"polluted\\":1},\\"constructor\\":{\\"prototype\\":{\\"polluted\\":1}}}"}',
  ];
  /** The merge that made such keys famous. */
  function merge(target: any, source: any): void {
    for (const key in source) {
      if (source[key] instanceof Object && target[key] instanceof Object) merge(target[key], source[key]);
      else target[key] = source[key];
    }
  }
  const checkSafe = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    expect([Object.prototype, Array.prototype]).toContain(Object.getPrototypeOf(value));
    expect(Object.hasOwn(value, "__proto__")).toBe(false);
    Object.values(value).forEach(checkSafe);
  };

  // SPEC 5.7
  it.each(kinds)("never reach one through arguments checked by %s", async (_name, parameters, extra) => {
    for (const text of texts) {
      for (const prepareArguments of [
        undefined,
        (args: unknown) => ({ ...(args as object) }),
        (args: unknown) => Object.assign({}, args),
      ]) {
        const { got } = await callWith(parameters, text, { ...extra, ...(prepareArguments && { prepareArguments }) });
        expect(got).not.toBe(NOT_EXECUTED);
        checkSafe(got);
        merge({}, got);
        expect([({} as any).polluted, (Object as any).polluted]).toEqual([undefined, undefined]);
      }
    }
  });

  // SPEC 5.7, 5.8
  it("never reach one through arguments a hook gives", async () => {
    const received: unknown[] = [];
    const tool = makeTool("t", (_id, params) => String(received.push(params)), { parameters: anything });
    const beforeToolCall = () => ({ args: JSON.parse(texts[1] as string) });
    await run([[{ toolCall: "t" }], "end"], { tools: [tool], config: { beforeToolCall } });
    expect(received).toEqual([{ o: { k: 1 } }]);
    received.forEach(checkSafe);
  });

  // SPEC 5.7
  it.each(["constructor", "toString", "hasOwnProperty", "valueOf"])("a property called %s is a property like any other", async (key) => {
    const optional = { type: "object", properties: { [key]: { type: "string" } }, additionalProperties: false };
    for (const parameters of [optional, Type.Object({ [key]: Type.Optional(Type.String()) }, { additionalProperties: false })]) {
      expect((await callWith(parameters, {})).got).toEqual({});
      expect((await callWith(parameters, { [key]: "x" })).got).toEqual({ [key]: "x" });
      expect((await callWith(parameters, { [key]: 5 })).text).toContain(key);
      expect((await callWith({ ...parameters, required: [key] }, {})).text).toMatch(new RegExp(`${key}.*missing`));
      expect((await callWith({ type: "object", properties: {}, additionalProperties: false }, { [key]: 1 })).got).toBe(NOT_EXECUTED);
    }
  });
});
