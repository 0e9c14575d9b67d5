/** Keys, ids and names that reach for a prototype, wherever they come from (SPEC 5.4, 5.5, 5.7, 6.6, 12.3, 15.1, 15.3, 16.2). */
import {
  type AgentEvent,
  type AgentMessage,
  initialView,
  parseTranscript,
  reduceEvents,
  resumeAgentLoop,
  runAgentLoop,
  toWireEvent,
  userMessage,
} from "turnloop";
import { createUpdateState, toSessionUpdates } from "turnloop/acp";
import { durable, type Step } from "turnloop/durable";
import { mcpTools } from "turnloop/mcp";
import { scriptedModel } from "turnloop/testing";
import { afterEach, describe, expect, it } from "vitest";
import { callOnce, connect, listed, RawMcpServer } from "../adapters/mcp-helpers.js";
import { answer } from "../field-reports/conditions.js";
import { makeTool, model, resultsOf, run, textOf } from "../helpers.js";
import { outcomeOf } from "./one-call.js";

const NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
const POISON = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"prototype":{"polluted":1}}';
const poison = (): any => JSON.parse(POISON);

const own = Object.getOwnPropertyNames(Object.prototype).sort();
afterEach(() => {
  expect(({} as any).polluted).toBeUndefined();
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(own);
});

describe("names that every object has", () => {
  // SPEC 5.4, 5.5, 15.1
  it.each(NAMES)("%s is an ordinary id and tool name, live, in a view, over a wire and for an editor", async (name) => {
    const record = await run(
      [
        [
          { toolCall: name, id: name },
          { toolCall: name, id: name },
        ],
        "done",
      ],
      {
        tools: [makeTool(name, () => "ran")],
      },
    );
    expect(resultsOf(record).map((result) => [result.toolName, textOf(result), result.isError])).toEqual(
      Array(2).fill([name, "ran", false]),
    );
    for (const wire of [(event: AgentEvent) => event, toWireEvent]) {
      const view = record.events.reduce((state, event) => reduceEvents(state, wire(event)), initialView());
      expect(view.toolCalls.map(({ toolName, status }) => [toolName, status])).toEqual(Array(2).fill([name, "completed"]));
      expect(view.messages).toEqual(record.messages);
    }
    const state = createUpdateState({});
    const updates = record.events.flatMap((event) => toSessionUpdates(event, state));
    expect(new Set(updates.flatMap((update) => ("toolCallId" in update ? [update.toolCallId] : []))).size).toBe(2);
  });

  // SPEC 15.3
  it.each(NAMES)("%s is an ordinary id for a decision", async (name) => {
    const content = [{ type: "toolCall", id: name, name, arguments: {} }];
    const messages: AgentMessage[] = [userMessage("go"), answer({ content, stopReason: "toolUse" })];
    const resume = (toolCallId: string) =>
      resumeAgentLoop(
        [{ toolCallId, action: "approve", args: poison() }],
        { systemPrompt: "", messages, tools: [makeTool(name, (_id, args) => JSON.stringify(args))] },
        { model },
        () => {},
        undefined,
        scriptedModel(["done"]),
      );
    expect(resultsOf({ messages: await resume(name) }).map(textOf)).toEqual(["{}"]);
    await expect(resume(name === "toString" ? "valueOf" : "toString")).rejects.toMatchObject({ code: "unknown_decision" });
  });
});

describe("schemas whose parts have such names", () => {
  // SPEC 5.7
  const part = { type: "object", properties: { n: { type: "number", default: 5 } } };
  const named = (key: string): object => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(part)}}`);
  const rows = NAMES.flatMap((name): [string, object, object, boolean][] => [
    [`properties.${name}`, { type: "object", properties: named(name) }, { [name]: { n: "6" } }, true],
    [`$defs.${name}`, { type: "object", $defs: named(name), properties: { v: { $ref: `#/$defs/${name}` } } }, { v: { n: "6" } }, false],
    [`patternProperties.${name}`, { type: "object", patternProperties: named(name) }, { v: 1 }, false],
    [`default ${name}`, { type: "object", properties: { v: { default: poison() }, w: { type: "number" } } }, { w: "6" }, false],
    [`dependentSchemas.${name}`, { type: "object", dependentSchemas: named(name), properties: {} }, { v: 1 }, false],
  ]);
  it.each(rows)("%s", async (_what, parameters, args) => {
    const seen: any[] = [];
    const { outcome, result } = await outcomeOf(args, parameters, (_id, given) => `${seen.push(given)}`);
    expect(outcome).toBe("completed");
    expect(result).toBeDefined();
    for (const given of seen)
      for (const value of [given, given.v]) {
        if (typeof value === "object" && value !== null) expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      }
  });
});

describe("stored and received data", () => {
  // SPEC 6.6, 15.1
  it("a transcript may have such keys anywhere", async () => {
    const stored = JSON.stringify([
      { ...userMessage("hi", { timestamp: 1 }), extra: 0 },
      answer({ content: [{ type: "toolCall", id: "a", name: "t", arguments: {} }], stopReason: "toolUse" }),
      { role: "__proto__", timestamp: 1 },
    ])
      .replace('"extra":0', `"extra":${POISON},"__proto__":{"polluted":1}`)
      .replace('"arguments":{}', `"arguments":${POISON}`);
    const messages = parseTranscript(stored);
    const record = await run(["ok"], { messages });
    expect(record.outcome).toBe("completed");
    expect(initialView(messages).messages).toHaveLength(3);
    expect(() => parseTranscript(`[{"role":"user","timestamp":1,"content":[{"type":"__proto__"}]}]`)).toThrow(/content\[0\]\.type/);
    expect(() => parseTranscript(`[{"__proto__":{"role":"user"},"timestamp":1}]`)).toThrow(/role/);
  });

  // SPEC 15.1
  it("events of a wire may", () => {
    const event = (text: string): any => JSON.parse(text);
    const start = `{"type":"tool_execution_start","toolCallId":"__proto__","toolName":"constructor","args":${POISON},"__proto__":{"polluted":1}}`;
    const update = '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":"__proto__","delta":"x"}}';
    let view = reduceEvents(initialView(), event(start));
    view = reduceEvents(view, { type: "message_start", message: answer({}) });
    for (const index of ["__proto__", "constructor", "length"]) {
      try {
        view = reduceEvents(view, event(update.replace("__proto__", index)));
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }
    expect(view.toolCalls).toMatchObject([{ toolCallId: "__proto__", toolName: "constructor" }]);
  });

  // SPEC 12.3
  it("an MCP server may list and answer them", async () => {
    const schema = JSON.parse(
      `{"type":"object","properties":{"__proto__":{"type":"number"},"constructor":{"type":"number","default":5}},"$defs":${POISON}}`,
    );
    const server = new RawMcpServer({
      list: () => ({ tools: NAMES.map((name) => ({ ...listed(name), inputSchema: schema })) }),
      call: () => ({ content: [{ type: "text", text: "ran" }], structuredContent: poison(), _meta: poison() }),
    });
    const { client } = await connect(server);
    const tools = await mcpTools(client);
    expect(new Set(tools.map(({ name }) => name)).size).toBe(NAMES.length);
    expect(await callOnce(tools, JSON.parse('{"__proto__":{"polluted":1}}'))).toMatchObject({ isError: false, content: [{ text: "ran" }] });
    await client.close();
  });

  // SPEC 16.2
  it("a journal may", async () => {
    const step: Step = async (name) =>
      JSON.parse(
        name.includes("model:1")
          ? `{"message":${JSON.stringify(answer({ content: [{ type: "toolCall", id: "a", name: "t", arguments: {} }], stopReason: "toolUse" })).replace('"arguments":{}', `"arguments":${POISON}`)},"at":1}`
          : name.includes("tool")
            ? `{"result":{"content":[{"type":"text","text":"ran"}],"details":${POISON},"__proto__":{"polluted":1}},"at":2}`
            : `{"message":${JSON.stringify(answer({ content: [{ type: "text", text: "ok" }] }))},"at":3}`,
      );
    const parts = durable({ step, streamFn: scriptedModel([]), tools: [makeTool("t", () => "never")], prefix: "p" });
    const messages = await runAgentLoop(
      [userMessage("go")],
      { systemPrompt: "", messages: [], tools: parts.tools },
      { model, now: parts.now },
      () => {},
      undefined,
      parts.streamFn,
    );
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    expect(textOf(messages[2])).toBe("ran");
  });
});
