import { type AgentTool, type AgentToolResult, defineTool, ToolRegistry, TurnLoopError } from "turnloop";
import { type Static, Type } from "turnloop/schema";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { deepFreeze } from "./hand-written.js";
import { makeTool, resultsOf, run, textOf } from "./helpers.js";

const tool = (name: string, said = name) => makeTool(name, () => said);
const names = (tools: Iterable<AgentTool>) => [...tools].map(({ name }) => name);

function codeOf(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    if (TurnLoopError.is(error)) return error.code;
    throw error;
  }
  return undefined;
}

describe("ToolRegistry", () => {
  // SPEC 8.6
  it("keeps tools by name in registration order", () => {
    const [a, b, c] = [tool("a"), tool("b"), tool("c")];
    const registry = new ToolRegistry([b]);
    registry.register(a);
    registry.register(c);
    expect([...registry]).toEqual([b, a, c]);
    expect([...registry]).toEqual([b, a, c]);
    expect(registry.size).toBe(3);
    expect(registry.get("a")).toBe(a);
    expect([registry.has("a"), registry.has("d"), registry.get("d")]).toEqual([true, false, undefined]);
  });

  // SPEC 8.6
  it("is empty unless it is given tools", () => {
    expect([new ToolRegistry().size, ...new ToolRegistry()]).toEqual([0]);
  });

  // SPEC 8.6
  it("refuses a second tool of a name and keeps the first", () => {
    const first = tool("a");
    const registry = new ToolRegistry([first]);
    expect(codeOf(() => registry.register(tool("a")))).toBe("duplicate_tool");
    expect(codeOf(() => registry.register(first))).toBe("duplicate_tool");
    expect(codeOf(() => new ToolRegistry([tool("b"), tool("b")]))).toBe("duplicate_tool");
    expect([...registry]).toEqual([first]);
  });

  // SPEC 8.6, 4.3
  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a text", "a"],
    ["an empty object", {}],
    ["an empty name", tool("")],
    ["a blank name", tool(" ")],
    ["a name that is no text", { ...tool("a"), name: 5 }],
    ["no execute", { ...tool("a"), execute: undefined }],
    ["an execute that is no function", { ...tool("a"), execute: "run" }],
  ])("refuses %s as invalid_tool, on every way in, and stays as it was", (_name, invalid) => {
    const registry = new ToolRegistry([tool("x")]);
    expect(codeOf(() => registry.register(invalid as AgentTool))).toBe("invalid_tool");
    expect(codeOf(() => registry.replace(invalid as AgentTool))).toBe("invalid_tool");
    expect(codeOf(() => new ToolRegistry([invalid as AgentTool]))).toBe("invalid_tool");
    expect(names(registry)).toEqual(["x"]);
  });

  // SPEC 8.6
  it("replace takes the place of the tool of that name, or the last place", () => {
    const registry = new ToolRegistry([tool("a"), tool("b")]);
    const [second, third] = [tool("a", "second"), tool("c")];
    registry.replace(second);
    registry.replace(third);
    expect(names(registry)).toEqual(["a", "b", "c"]);
    expect([registry.get("a"), registry.get("c"), registry.size]).toEqual([second, third, 3]);
  });

  // SPEC 8.6
  it("unregister says whether there was such a tool; a name is free again after it", () => {
    const registry = new ToolRegistry([tool("a"), tool("b")]);
    expect([registry.unregister("a"), registry.unregister("a"), registry.unregister("z")]).toEqual([true, false, false]);
    registry.register(tool("a"));
    expect(names(registry)).toEqual(["b", "a"]);
  });

  // SPEC 8.6, 5.5
  it.each(["constructor", "__proto__", "toString", "size"])('knows no tool "%s" until it is registered', (name) => {
    const registry = new ToolRegistry([tool("a")]);
    expect([registry.has(name), registry.get(name), registry.unregister(name)]).toEqual([false, undefined, false]);
    registry.register(tool(name));
    expect([registry.has(name), registry.get(name)?.name, names(registry)]).toEqual([true, name, ["a", name]]);
  });

  // SPEC 8.6
  it("filter gives the named ones in registration order, in a registry of its own", () => {
    const registry = new ToolRegistry(["a", "b", "c"].map((name) => tool(name)));
    const some = registry.filter(["c", "nope", "a", "c"]);
    expect(names(some)).toEqual(["a", "c"]);
    expect(names(registry.filter(new Set<string>()))).toEqual([]);
    some.unregister("a");
    registry.unregister("c");
    expect([names(some), names(registry)]).toEqual([["c"], ["a", "b"]]);
    expect([...some][0]).toBe(some.get("c"));
  });

  // SPEC 8.6, 8.2
  it("serves a run as its tools; what changes during a turn counts from the next one on", async () => {
    const registry = new ToolRegistry();
    registry.register(
      makeTool("change", () => {
        registry.unregister("old");
        registry.register(tool("new"));
        return "changed";
      }),
    );
    registry.register(tool("old"));
    const calls = ["change", "old", "new"].map((toolCall) => ({ toolCall }));
    const record = await run([calls, calls.slice(1), "end"], { tools: registry, config: { toolExecution: "sequential" } });
    expect(record.requests.map(({ tools }) => tools?.map(({ name }) => name))).toEqual([
      ["change", "old"],
      ["change", "new"],
      ["change", "new"],
    ]);
    expect(resultsOf(record).map(({ isError }) => isError)).toEqual([false, false, true, true, false]);
    expect(
      resultsOf(record)
        .map(textOf)
        .filter((_text, i) => i !== 2 && i !== 3),
    ).toEqual(["changed", "old", "new"]);
  });
});

describe("defineTool", () => {
  // SPEC 8.6
  it("returns its argument and infers parameters and details of a TypeBox schema", () => {
    const parameters = Type.Object({ n: Type.Number(), tag: Type.Optional(Type.Union([Type.Literal("a"), Type.Literal("b")])) });
    const definition = deepFreeze({
      name: "t",
      description: "d",
      parameters,
      execute: (_id: string, params: Static<typeof parameters>) => ({ content: [], details: { doubled: params.n * 2 } }),
    });
    const defined = defineTool(definition);
    expect(defined).toBe(definition);
    expectTypeOf<Parameters<typeof defined.execute>[1]>().toEqualTypeOf<{ n: number; tag?: "a" | "b" }>();
    const inferred = defineTool({
      name: "t",
      description: "d",
      parameters,
      execute: (_id, params) => {
        expectTypeOf(params).toEqualTypeOf<{ n: number; tag?: "a" | "b" }>();
        return { content: [], details: { doubled: params.n * 2 } };
      },
    });
    expectTypeOf<Awaited<ReturnType<typeof inferred.execute>>>().toEqualTypeOf<string | AgentToolResult<{ doubled: number }>>();
  });

  // SPEC 8.6, 5.7
  it("infers what a Zod schema puts out", () => {
    const defined = defineTool({
      name: "t",
      description: "d",
      parameters: z.object({ when: z.string().transform((text) => new Date(text)), n: z.number().default(1) }),
      execute: (_id, params) => {
        expectTypeOf(params).toEqualTypeOf<{ when: Date; n: number }>();
        return params.when.toISOString().slice(0, params.n);
      },
    });
    expect(new ToolRegistry([defined]).get("t")).toBe(defined);
  });

  // SPEC 8.6
  it("takes plain JSON Schema and hooks, and is usable in a run", async () => {
    const defined = defineTool({
      name: "t",
      description: "d",
      kind: "read",
      parameters: { type: "object", properties: { n: { type: "number" } } },
      prepareArguments: (args) => args,
      execute: (_id, { n }) => `n is ${n}`,
    });
    const record = await run([[{ toolCall: "t", args: { n: 4 } }], "end"], { tools: [defined] });
    expect(textOf(resultsOf(record)[0])).toBe("n is 4");
    expect(record.requests[0]?.tools).toEqual([{ name: "t", description: "d", parameters: defined.parameters }]);
  });
});
