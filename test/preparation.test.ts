import type { AgentTool } from "turnloop";
import { describe, expect, it } from "vitest";
import { callWith, deepFreeze, done, streams, toolCall } from "./hand-written.js";
import { deferred, makeTool, outline, resultsOf, run, textOf } from "./helpers.js";

describe("lookup", () => {
  // SPEC 5.5
  it.each(["constructor", "__proto__", "toString", "hasOwnProperty", "T", " t"])(
    '"%s" is an unknown tool unless there is one of that name',
    async (name) => {
      const known = makeTool("t", () => "known");
      const script = () => [
        [
          { toolCall: name, id: "1" },
          { toolCall: "t", id: "2" },
        ],
        "end",
      ];
      const unknown = await run(script(), { tools: [known] });
      expect(resultsOf(unknown).map(({ isError }) => isError)).toEqual([true, false]);
      expect(textOf(resultsOf(unknown)[0])).toMatch(/not found.*t/);
      const found = await run(script(), { tools: [known, makeTool(name, () => "found")] });
      expect(resultsOf(found).map(textOf)).toEqual(["found", "known"]);
    },
  );

  // SPEC 5.5
  it("an unknown tool's error lists at most 20 known names", async () => {
    const names = Array.from({ length: 25 }, (_, i) => `tool-${i}-x`);
    const listed = async (tools: string[]) => {
      const record = await run([[{ toolCall: "nope" }], "end"], { tools: tools.map((name) => makeTool(name, () => "x")) });
      const text = textOf(resultsOf(record)[0]);
      expect(text).toContain("nope");
      return names.filter((name) => text.includes(name));
    };
    expect(await listed(names)).toHaveLength(20);
    expect(await listed(names.slice(0, 20))).toHaveLength(20);
    expect(await listed(names.slice(0, 2))).toEqual(names.slice(0, 2));
    expect(await listed([])).toEqual([]);
  });

  // SPEC 5.5
  it.each([[""], [" "], [undefined], [null], [7]])("the name %j gets a short error, without a list", async (name) => {
    const tools = Array.from({ length: 9 }, (_, i) => makeTool(`tool-${i}`, () => "x"));
    const record = await run(streams([done([{ ...toolCall("", {}), name }])]), { tools });
    expect(resultsOf(record)).toMatchObject([{ isError: true, toolName: expect.any(String) }]);
    const text = textOf(resultsOf(record)[0]);
    expect(text).toMatch(/name/);
    expect(text).not.toContain("tool-8");
    expect(text.length).toBeLessThan(120);
  });
});

describe("preparation", () => {
  const parameters = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

  // SPEC 5.6
  it("goes one call at a time, in source order: start, prepareArguments, validation, beforeToolCall", async () => {
    const log: string[] = [];
    const tool = makeTool("t", (id) => String(log.push(`execute ${id}`)), {
      parameters: {
        "~standard": {
          version: 1,
          vendor: "x",
          validate: async (value: { id: string }) => {
            await null;
            log.push(`validate ${value.id}`);
            return { value };
          },
        },
      },
      jsonSchema: { type: "object" },
      prepareArguments: (args) => {
        log.push(`prepare ${(args as { id: string }).id}`);
        return args;
      },
    });
    const ids = ["1", "2"];
    await run([ids.map((id) => ({ toolCall: "t", id, args: { id } })), "end"], {
      tools: [tool],
      config: {
        beforeToolCall: async ({ toolCall: { id } }) => {
          await null;
          log.push(`before ${id}`);
        },
      },
      onEvent: (event) => {
        if (event.type === "tool_execution_start") log.push(`start ${event.toolCallId}`);
      },
    });
    const stages = ["start", "prepare", "validate", "before"];
    expect(log).toEqual([...ids.flatMap((id) => stages.map((stage) => `${stage} ${id}`)), "execute 1", "execute 2"]);
  });

  // SPEC 5.6, 5.8
  it.each<[string, Partial<AgentTool>, unknown, string, RegExp, number]>([
    ["an unknown tool", {}, { n: 1 }, "nope", /not found/, 0],
    ["invalid arguments", {}, { n: "x" }, "t", /n: .*number.*"x"/, 0],
    [
      "a prepareArguments that throws",
      {
        prepareArguments: () => {
          throw new Error("cannot repair");
        },
      },
      { n: 1 },
      "t",
      /cannot repair/,
      0,
    ],
    [
      "a prepareArguments that returns a promise",
      { prepareArguments: () => Promise.reject(new Error("late")) },
      { n: 1 },
      "t",
      /promise/,
      0,
    ],
    ["a prepareArguments that returns nothing", { prepareArguments: () => undefined }, { n: 1 }, "t", /\S/, 0],
    ["a prepareArguments that makes them wrong", { prepareArguments: () => ({ n: "x" }) }, { n: 1 }, "t", /n: .*number.*"x"/, 0],
    [
      "a prepareArguments that makes a circle",
      { prepareArguments: (args) => Object.assign(args as object, { self: args }) },
      { n: 1 },
      "t",
      /\S/,
      0,
    ],
    ["a beforeToolCall that throws", {}, { n: 666 }, "t", /no such number/, 1],
  ])("%s is an error for that call only, and no later stage sees it", async (_name, extra, args, name, expected, asked) => {
    const executed: string[] = [];
    const before: string[] = [];
    const good = makeTool("good", (id) => String(executed.push(id)), { parameters });
    const tool = makeTool("t", (id) => String(executed.push(id)), { parameters, ...extra });
    const calls = [toolCall("good", { n: 1 }, "1"), toolCall(name, args, "2"), toolCall("good", { n: 1 }, "3")];
    const record = await run(streams([done(calls)]), {
      tools: deepFreeze([good, tool]),
      config: {
        beforeToolCall: ({ toolCall: { id }, args }) => {
          before.push(id);
          if (args.n === 666) throw new Error("no such number");
        },
      },
    });
    expect(executed).toEqual(["1", "3"]);
    expect(before).toEqual(asked ? ["1", "2", "3"] : ["1", "3"]);
    expect(resultsOf(record).map(({ isError }) => isError)).toEqual([false, true, false]);
    expect(textOf(resultsOf(record)[1])).toMatch(expected);
    expect(record.events.find((event) => event.type === "tool_execution_start" && event.toolCallId === "2")).toMatchObject({ args });
  });

  // SPEC 5.6
  it("prepareArguments repairs what the schema then accepts", async () => {
    const repaired = await callWith(
      parameters,
      { number: 4 },
      { prepareArguments: (args) => ({ n: (args as { number: number }).number }) },
    );
    expect(repaired.got).toEqual({ n: 4 });
  });

  // SPEC 5.6, 7.2
  it("an async validation that never settles does not outlive an abort", async () => {
    const controller = new AbortController();
    const entered = deferred();
    const validate = () => {
      entered.resolve();
      return new Promise(() => {});
    };
    const tool = makeTool("t", () => "x", { parameters: { "~standard": { version: 1, vendor: "x", validate } }, jsonSchema: {} });
    const running = run([[{ toolCall: "t", id: "1" }], "end"], { tools: [tool], signal: controller.signal });
    await entered.promise;
    controller.abort();
    const record = await running;
    expect(record.outcome).toBe("aborted");
    expect(outline(record.events)).toContain("tool_execution_end 1");
    expect(resultsOf(record)).toMatchObject([{ isError: true }]);
  });
});
