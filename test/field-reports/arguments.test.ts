/** Field reports G, H and N: malformed arguments, names and ids, coercion, hostile keys. SPEC 5.3 to 5.7. */
import { type AssistantMessage, type ToolCall, userMessage } from "turnloop";
import { Type } from "turnloop/schema";
import { describe, expect, it } from "vitest";
import { makeTool, outline, resultsOf, textOf } from "../helpers.js";
import { answer, call, callsOf, finalMessages, type Played, play, recordingTools, watchConditions } from "./conditions.js";

watchConditions();

/** An answer whose tool calls carry these very arguments. */
const rawCalls = (name: string, values: unknown[]): AssistantMessage =>
  answer({
    content: values.map((value, i) => ({ type: "toolCall", id: `c${i}`, name, arguments: value })),
    stopReason: "toolUse",
  });

const callsSent = (played: Played, request: number): ToolCall[] => callsOf(played.requests[request]?.messages[1] as AssistantMessage);
const needsP = Type.Object({ p: Type.String() });

describe("field reports G: malformed or cut arguments", () => {
  it.each([
    ["streamed under toolUse", [[{ toolCall: "x", id: "a", rawArgs: '{"p": "unclosed' }], "ok"], /must be a JSON object/],
    ["streamed under stop", [{ content: [{ toolCall: "x", id: "a", rawArgs: '{"p": "unclosed' }], stopReason: "stop" }, "ok"], /JSON/],
    ["given as a text", finalMessages(rawCalls("x", ['{"p": "unclosed'])), /must be a JSON object/],
    ["not given at all", finalMessages(rawCalls("x", [undefined])), /p: required/],
    ["F36: a file body that was cut", [[{ toolCall: "x", id: "a", rawArgs: '{"p":"f","body":"cu' }], "ok"], /must be a JSON object/],
  ])(
    "F31 F36 arguments that do not parse (%s) are refused, never repaired, and replayed as a safe object",
    async (_name, answers, text) => {
      const { got, tool } = recordingTools();
      const played = await play(answers, { tools: [tool("x", needsP)] });
      expect(got).toEqual([]);
      expect(resultsOf(played)).toMatchObject([{ isError: true }]);
      expect(textOf(resultsOf(played)[0])).toMatch(text);
      expect(callsSent(played, 1).map((sent) => sent.arguments)).toEqual([{}]);
      expect(() => JSON.stringify(played.requests[1])).not.toThrow();
      expect(played.outcome).toBe("completed");
    },
  );

  it("F32 arguments that are no object are refused, one by one, and never become {}", async () => {
    const { got, tool } = recordingTools();
    const values = [[1, 2], "str", 7, true, false, 0, '"str"', "[1,2]", "7", 10n, () => {}, Number.NaN];
    const played = await play(finalMessages(rawCalls("x", values)), { tools: [tool("x")] });
    expect(got).toEqual([]);
    expect(resultsOf(played)).toHaveLength(values.length);
    for (const result of resultsOf(played)) {
      expect(result.isError).toBe(true);
      expect(textOf(result)).toMatch(/must be a JSON object/);
    }
    expect(callsSent(played, 1).map((sent) => sent.arguments)).toEqual(values.map(() => ({})));
  });

  it("F33 absent arguments count as {}: enough for a tool that needs none, an error naming what is missing for others", async () => {
    const { got, tool } = recordingTools();
    const none = rawCalls("noArgs", [undefined, null, ""]);
    const needs = rawCalls("needsP", ["", null]).content.map((block, i) => ({ ...block, id: `n${i}` }));
    const both = { ...none, content: [...none.content, ...needs] };
    const played = await play(finalMessages(both), { tools: [tool("noArgs"), tool("needsP", needsP)] });
    expect(got).toEqual([{}, {}, {}]);
    expect(resultsOf(played).map(({ isError }) => isError)).toEqual([false, false, false, true, true]);
    for (const refused of resultsOf(played).slice(3)) expect(textOf(refused)).toMatch(/p: required, but missing/);
  });

  it("F34 the model can correct itself: the error names the field and what was expected", async () => {
    const { got, tool } = recordingTools();
    const parameters = Type.Object({ count: Type.Number(), unit: Type.Union([Type.Literal("cm"), Type.Literal("in")]) });
    const bad = call("a", "x", { count: "many", unit: "cm" });
    const played = await play([[bad], [call("b", "x", { count: 2, unit: "cm" })], "done"], { tools: [tool("x", parameters)] });
    expect(played.requests).toHaveLength(3);
    expect(textOf(resultsOf(played)[0])).toMatch(/"x".*\n- count: expected number, received "many"$/);
    expect(got).toEqual([{ count: 2, unit: "cm" }]);
    expect(played.outcome).toBe("completed");
  });

  it("F37 an empty answer at the output limit ends the run, and is not replayed", async () => {
    const first = await play([{ content: [], stopReason: "length" }, "never asked for"]);
    expect(first.requests).toHaveLength(1);
    expect(first.outcome).toBe("completed");
    const second = await play(["ok"], { messages: first.messages, prompts: [userMessage("again")] });
    expect(second.requests[0]?.messages.map(({ role }) => role)).toEqual(["user", "user"]);
  });
});

describe("field reports H: tool names and call ids", () => {
  it.each(["nope", "constructor", "__proto__", "toString", "hasOwnProperty"])(
    "F38 the unknown tool %j is an error with a bounded list of names",
    async (name) => {
      const { got, tool } = recordingTools();
      const tools = Array.from({ length: 30 }, (_, i) => tool(`tool_${i}_`));
      const played = await play([[call("a", name), call("b", "tool_3_")], "ok"], { tools });
      const [unknown, known] = resultsOf(played);
      expect(unknown).toMatchObject({ toolCallId: "a", toolName: name, isError: true });
      expect(textOf(unknown)).toMatch(/not found/);
      expect(textOf(unknown).match(/tool_\d+_/g)).toHaveLength(20);
      expect(known).toMatchObject({ toolCallId: "b", isError: false });
      expect(got).toEqual([{}]);
      expect(played.requests).toHaveLength(2);
    },
  );

  it.each(["parallel", "sequential"] as const)(
    "F39 calls that are never executed have their start and their end (%s)",
    async (toolExecution) => {
      const { got, tool } = recordingTools();
      const batch = [call("unknown", "nope"), call("blocked", "x", { p: "1" }), call("invalid", "x"), call("fine", "x", { p: "2" })];
      const played = await play([batch, "ok"], {
        tools: [tool("x", needsP)],
        config: { toolExecution, beforeToolCall: ({ args }) => ({ block: args.p === "1" }) },
      });
      const ids = ["unknown", "blocked", "invalid", "fine"];
      const lines = outline(played.events).filter((line) => line.startsWith("tool_execution"));
      expect(lines.filter((line) => line.includes("_start "))).toEqual(ids.map((id) => `tool_execution_start ${id}`));
      expect(lines).toEqual(ids.flatMap((id) => [`tool_execution_start ${id}`, `tool_execution_end ${id}`]));
      expect(resultsOf(played).map(({ isError }) => isError)).toEqual([true, true, true, false]);
      expect(got).toEqual([{ p: "2" }]);
    },
  );

  it("F39 calls cut by the output limit have their start and their end", async () => {
    const played = await play([{ content: [call("a", "x"), call("b", "nope")], stopReason: "length" }, "ok"], {
      tools: [makeTool("x", () => "ran")],
    });
    expect(played.executed).toEqual([]);
    expect(outline(played.events).filter((line) => line.startsWith("tool_execution"))).toEqual(
      ["a", "b"].flatMap((id) => [`tool_execution_start ${id}`, `tool_execution_end ${id}`]),
    );
  });

  it("F41 a call without a name is answered shortly, without a catalogue, and the run goes on", async () => {
    const { got, tool } = recordingTools();
    const played = await play([[call("a", ""), call("b", "real")], [call("c", "  ")], "ok"], { tools: [tool("real")] });
    const [a, b, c] = resultsOf(played);
    for (const nameless of [a, c]) {
      expect(nameless?.isError).toBe(true);
      expect(textOf(nameless)).not.toContain("real");
      expect(textOf(nameless).length).toBeLessThan(120);
    }
    expect(b?.isError).toBe(false);
    expect(got).toHaveLength(1);
    expect(played.requests).toHaveLength(3);
  });

  it("F41 empty, missing and repeated ids become unique ones, the same for call and result", async () => {
    const { tool } = recordingTools();
    const ids = ["", "  ", undefined, null, "a", "a", "a_2", ""];
    const content = ids.map((id, i) => ({ type: "toolCall", id, name: i === 7 ? "" : "real", arguments: {} }));
    const played = await play(finalMessages(answer({ content, stopReason: "toolUse" })), { tools: [tool("real")] });
    const sent = callsSent(played, 1).map(({ id }) => id);
    expect(sent.every((id) => typeof id === "string" && id.trim() !== "")).toBe(true);
    expect(new Set(sent).size).toBe(ids.length);
    expect(sent[4]).toBe("a");
    expect(resultsOf(played).map(({ toolCallId }) => toolCallId)).toEqual(sent);
    expect(played.executed).toEqual(sent.slice(0, 7));
  });

  it("F43 an id that comes again in a later turn is a new call", async () => {
    const { got, tool } = recordingTools();
    const played = await play([[call("read:0", "read", { p: 1 })], [call("read:0", "read", { p: 2 })], "ok"], { tools: [tool("read")] });
    expect(got).toEqual([{ p: 1 }, { p: 2 }]);
    expect(played.requests[2]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant", "toolResult"]);
  });
});

describe("field reports N: coercion and hostile keys", () => {
  const nullable = Type.Union([Type.Number(), Type.Null()]);
  const schema = Type.Object({ opt: Type.Optional(Type.Number()), q: nullable, r: Type.String() });

  it.each([
    ["TypeBox", schema],
    ["JSON Schema", JSON.parse(JSON.stringify(schema))],
  ])(
    "F69 null for an optional property is dropped, for a nullable one kept, for a required one refused (%s)",
    async (_name, parameters) => {
      const { got, tool } = recordingTools();
      const batch = [
        call("dropped", "x", { opt: null, q: null, r: "x" }),
        call("null", "x", { q: null, r: null }),
        call("omitted", "x", { r: "x" }),
      ];
      const played = await play([batch, "ok"], { tools: [tool("x", parameters)] });
      expect(got).toEqual([{ q: null, r: "x" }]);
      expect(Object.keys(got[0])).toEqual(["q", "r"]);
      expect(resultsOf(played).map(({ isError }) => isError)).toEqual([false, true, true]);
      expect(textOf(resultsOf(played)[1])).toMatch(/- r: expected string, received null/);
      expect(textOf(resultsOf(played)[2])).toMatch(/- q: required/);
      expect(callsSent(played, 1)[0]?.arguments).toEqual({ opt: null, q: null, r: "x" }); // the transcript keeps what came
    },
  );

  const hostile = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"prototype":{"polluted":1},"p":"ok"}';
  const inner = { type: "object", properties: { p: { type: "string" }, n: { type: "number", default: 5 } } };
  const plain = { ...inner, properties: { ...inner.properties, o: inner, list: { type: "array", items: inner }, text: inner } };

  it.each([
    ["JSON Schema", plain],
    ["TypeBox", Type.Unsafe<object>(plain)],
    ["any object", undefined],
  ])("F70 keys that name a prototype never reach one (%s)", async (_name, parameters) => {
    const { got, tool } = recordingTools();
    const raw = `${hostile.slice(0, -1)},"o":${hostile},"list":[${hostile}],"text":${JSON.stringify(hostile)}}`;
    const config = { beforeToolCall: ({ args }: { args: any }) => ({ args: { ...args, n: "7" } }) };
    for (const options of [{}, { config }]) {
      const played = await play([[{ toolCall: "x", id: "a", rawArgs: raw }], "ok"], { ...options, tools: [tool("x", parameters)] });
      expect(resultsOf(played)).toMatchObject([{ isError: false }]);
      expect(() => JSON.stringify(played.requests[1])).not.toThrow();
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(got).toHaveLength(2);
    for (const args of got) {
      expect(args).toMatchObject({ p: "ok", o: { p: "ok" }, list: [{ p: "ok" }] });
      for (const object of [args, args.o, args.list[0], ...(parameters ? [args.text] : [])]) {
        expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
        expect(Object.hasOwn(object, "__proto__")).toBe(false);
        expect(object.polluted).toBeUndefined();
        expect(object.constructor).toBe(Object);
      }
    }
  });
});
