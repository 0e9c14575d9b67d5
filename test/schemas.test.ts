import { TurnLoopError } from "turnloop";
import { type TSchema, Type } from "turnloop/schema";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { callWith, deepFreeze, NOT_EXECUTED as REFUSED } from "./hand-written.js";
import { makeTool, resultsOf, run, textOf } from "./helpers.js";

const jsonOf = (schema: unknown) => JSON.parse(JSON.stringify(schema));

const standard = (validate: (value: any) => unknown, extra = {}) => ({ "~standard": { version: 1, vendor: "test", validate, ...extra } });

describe("kinds of schema", () => {
  // SPEC 5.7
  it.each<[string, object, unknown, unknown]>([
    [
      "patternProperties",
      { patternProperties: { "^n_": { type: "number" } }, additionalProperties: { type: "boolean" } },
      { n_a: "1", b: "true" },
      { n_a: 1, b: true },
    ],
    [
      "a record of objects with defaults",
      { additionalProperties: { type: "object", properties: { n: { type: "number", default: 1 } }, required: ["n"] } },
      { x: {} },
      { x: { n: 1 } },
    ],
    ["a type list", { properties: { v: { type: ["integer", "null"] } } }, { v: "3" }, { v: 3 }],
    [
      "draft 2020-12 tuples",
      { properties: { v: { prefixItems: [{ type: "number" }], items: { type: "boolean" } } } },
      { v: ["1", "true"] },
      { v: [1, true] },
    ],
    [
      "draft-07 tuples",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        properties: { v: { items: [{ type: "number" }], additionalItems: { type: "boolean" } } },
      },
      { v: ["1", "true"] },
      { v: [1, true] },
    ],
    [
      "draft-04 limits",
      { $schema: "http://json-schema.org/draft-04/schema#", properties: { v: { type: "number", minimum: 3, exclusiveMinimum: true } } },
      { v: "3" },
      REFUSED,
    ],
    ["$ref to $defs", { properties: { v: { $ref: "#/$defs/a~1b" } }, $defs: { "a/b": { type: "number" } } }, { v: "3" }, { v: 3 }],
    [
      "$ref to itself",
      { properties: { n: { type: "number" }, kids: { type: "array", items: { $ref: "#" } } } },
      { kids: [{ n: "1", kids: '[{"n":"2"}]' }] },
      { kids: [{ n: 1, kids: [{ n: 2 }] }] },
    ],
    ["definitions", { properties: { v: { $ref: "#/definitions/n" } }, definitions: { n: { type: "number" } } }, { v: "x" }, REFUSED],
    ["oneOf", { properties: { v: { oneOf: [{ type: "number" }, { type: "null" }] } } }, { v: "3" }, { v: 3 }],
    ["allOf", { allOf: [{ properties: { v: { type: "number" } } }, { required: ["v"] }] }, { v: "3" }, { v: 3 }],
    ["enum without a type", { properties: { v: { enum: ["1", 2, null] } } }, { v: "1" }, { v: "1" }],
  ])("plain JSON Schema: %s", async (_name, schema, given, expected) => {
    expect((await callWith(deepFreeze({ type: "object", ...schema }), given)).got).toEqual(expected);
  });

  // SPEC 5.6
  it.each<[string, object]>([
    ["a pattern that is none", { properties: { v: { type: "string", pattern: "(" } } }],
    ["a property pattern that is none", { patternProperties: { "(": { type: "number" } } }],
    ["a reference to nowhere", { properties: { v: { $ref: "#/$defs/nowhere" } } }],
    ["a reference to itself alone", { properties: { v: { $ref: "#/properties/v" } } }],
  ])("a schema that cannot be checked with is an error result: %s", async (_name, schema) => {
    expect(await callWith({ type: "object", ...schema }, { v: 1 })).toMatchObject({ got: REFUSED, isError: true, outcome: "completed" });
  });

  const znode: z.ZodType = z.object({
    v: z.number(),
    get kids() {
      return z.array(znode).optional();
    },
  });
  const node = Type.Recursive((This) => Type.Object({ v: Type.Number(), kids: Type.Optional(Type.Array(This)) }), { $id: "Node" });
  const module = Type.Module({ Node: Type.Object({ v: Type.Number(), kids: Type.Optional(Type.Array(Type.Ref("Node"))) }) });

  // SPEC 5.7
  it.each<[string, unknown]>([
    ["Type.Recursive", node],
    ["Type.Recursive after JSON", jsonOf(node)],
    ["Type.Module", module.Import("Node")],
    ["Zod getters", znode],
  ])("recursive schemas coerce and refuse at every depth: %s", async (_name, parameters) => {
    const tree = (leaf: unknown) => ({ v: 1, kids: [{ v: "2", kids: [{ v: leaf }] }] });
    expect((await callWith(parameters, tree("3"))).got).toEqual({ v: 1, kids: [{ v: 2, kids: [{ v: 3 }] }] });
    expect(await callWith(parameters, tree("3x"))).toMatchObject({ got: REFUSED, text: expect.stringContaining("kids[0].kids[0].v") });
  });

  // SPEC 5.7: the checker reads patterns in Unicode mode, where these are none
  describe.each<[string, string, string, string]>([
    ["an escape that is none in Unicode mode", "^a\\-b$", "a-b", "a_b"],
    ["a range that begins with a class", "^[\\w-.]+$", "a-.b", "a b"],
    ["a name for a group of its own", "^(?<n>\\_)\\k<n>$", "__", "_"],
  ])("a pattern with %s", (_name, pattern, right, wrong) => {
    const typebox = Type.Object({ v: Type.String({ pattern }), n: Type.Number() });
    it.each<[string, unknown]>([
      ["TypeBox", typebox],
      ["JSON Schema", jsonOf(typebox)],
      ["JSON Schema with parts", { ...jsonOf(typebox), properties: { v: { pattern, allOf: [{ minLength: 1 }] }, n: { type: "number" } } }],
      ["Zod", z.object({ v: z.string().regex(new RegExp(pattern)), n: z.number() })],
    ])("is checked by %s", async (kind, parameters) => {
      expect((await callWith(kind === "Zod" ? parameters : deepFreeze(parameters), { v: right, n: "1" })).got).toEqual({ v: right, n: 1 });
      const { got, text } = await callWith(parameters, { v: wrong, n: 1 });
      expect(got).toBe(REFUSED);
      expect(text).toContain(kind === "Zod" ? "v: Invalid string" : pattern);
      expect(text).toContain(`received "${wrong}"`);
    });
  });

  // SPEC 5.7
  it.each<[string, TSchema, unknown, unknown]>([
    ["email", Type.String({ format: "email" }), "a@b.co", "a.b.co"],
    ["date-time", Type.String({ format: "date-time" }), "2020-01-02T03:04:05Z", "yesterday"],
    ["uuid", Type.String({ format: "uuid" }), "123e4567-e89b-12d3-a456-426614174000", "123"],
    ["uri", Type.String({ format: "uri" }), "https://x.test/a?b", "not a uri"],
    ["Type.Unsafe with an enum", Type.Unsafe<"a" | "b">({ type: "string", enum: ["a", "b"] }), "b", "c"],
    ["a pattern", Type.String({ pattern: "^[a-z]+$" }), "abc", "ABC"],
    ["a template literal", Type.TemplateLiteral([Type.Literal("v"), Type.Union([Type.Literal("1"), Type.Literal("2")])]), "v2", "v3"],
    ["limits", Type.Integer({ minimum: 1, maximum: 9, multipleOf: 2 }), 8, 10],
    ["lengths", Type.Array(Type.Number(), { minItems: 1, maxItems: 2, uniqueItems: true }), [1, 2], [1, 1]],
    ["a const object", Type.Unsafe({ const: { a: [1] } }), { a: [1] }, { a: [2] }],
    ["not", Type.Not(Type.String()), 1, "x"],
    ["a format inside a tuple", Type.Tuple([Type.String({ format: "email" }), Type.Number()]), ["a@b.co", 1], ["a@b.co", "x"]],
  ])("%s is checked, as TypeBox, as JSON and frozen", async (_name, typebox, good, bad) => {
    const object = Type.Object({ v: typebox });
    for (const parameters of [object, jsonOf(object), deepFreeze(Type.Object({ v: { ...typebox } }))]) {
      expect((await callWith(parameters, { v: good })).got).toEqual({ v: good });
      expect(await callWith(parameters, { v: bad })).toMatchObject({ got: REFUSED, isError: true, text: expect.stringMatching(/- v\b/) });
    }
  });

  const issue = (path: unknown) => ({ issues: [{ message: "must be even", path }] });

  // SPEC 5.7
  it.each<[string, (value: any) => unknown, unknown, RegExp | undefined]>([
    ["a value", (value) => ({ value }), { n: 1 }, undefined],
    ["a value of its own making", ({ n }) => ({ value: { date: new Date(n) } }), { date: new Date(1) }, undefined],
    ["a promise of a value", async (value) => ({ value }), { n: 1 }, undefined],
    ["a thenable", (value) => ({ then: (resolve: (result: unknown) => void) => resolve({ value }) }), { n: 1 }, undefined],
    [
      "a thenable whose then gives something of its own",
      (value) => ({
        then: (resolve: (result: unknown) => void) => {
          resolve({ value });
          return { n: "unchecked" };
        },
      }),
      { n: 1 },
      undefined,
    ],
    [
      "a thenable that answers later",
      (value) => ({ then: (resolve: (result: unknown) => void) => void setTimeout(() => resolve({ value }), 1) }),
      { n: 1 },
      undefined,
    ],
    ["an issue", () => issue(["n"]), REFUSED, /- n: must be even/],
    ["a promise of an issue", async () => issue(["list", 0, "n"]), REFUSED, /- list\[0\]\.n: must be even/],
    ["an issue with path objects", () => issue([{ key: "a" }, { key: 1 }]), REFUSED, /- a\[1\]: must be even/],
    ["an issue without a path", () => issue(undefined), REFUSED, /must be even/],
    [
      "a throw",
      () => {
        throw new Error("schema broke");
      },
      REFUSED,
      /schema broke/,
    ],
    ["a rejection", () => Promise.reject(new Error("schema broke")), REFUSED, /schema broke/],
  ])("a Standard Schema that answers with %s", async (_name, validate, got, text) => {
    const outcome = await callWith(standard(validate), { n: 1 }, { jsonSchema: { type: "object" } });
    expect(outcome.got).toEqual(got);
    expect(outcome.text).toMatch(text ?? /^ok$/);
    const callable = Object.assign(() => {}, standard(validate));
    expect((await callWith(callable, { n: 1 }, { jsonSchema: { type: "object" } })).got).toEqual(got);
  });
});

describe("the model is shown JSON Schema", () => {
  const shown = async (parameters: unknown, extra = {}) => {
    const { requests } = await run(["end"], { tools: [makeTool("t", () => "x", { parameters, ...extra })] });
    return requests[0]?.tools?.[0];
  };
  const typebox = Type.Object({ n: Type.Number({ description: "how many" }), s: Type.Optional(Type.String()) });
  const own = { type: "object", properties: { shown: { type: "string" } } };
  const converting = (input: (options: { target: string }) => unknown) => standard((value) => ({ value }), { jsonSchema: { input } });

  // SPEC 5.7
  it.each<[string, unknown, object, object]>([
    ["TypeBox, without its symbols", typebox, {}, jsonOf(typebox)],
    ["frozen JSON Schema", deepFreeze(own), {}, own],
    ["a Standard Schema's jsonSchema", standard((value) => ({ value })), { jsonSchema: deepFreeze(own) }, own],
    [
      "a Standard Schema's own converter, asked for draft 2020-12",
      converting(({ target }) => ({ ...own, target })),
      {},
      { ...own, target: "draft-2020-12" },
    ],
    ["the jsonSchema rather than the converter", converting(() => ({ type: "object" })), { jsonSchema: own }, own],
  ])("%s", async (_name, parameters, extra, expected) => {
    const tool = await shown(parameters, extra);
    expect(tool).toEqual({ name: "t", description: "t", parameters: expected });
    expect(Reflect.ownKeys(tool?.parameters).filter((key) => typeof key === "symbol")).toEqual([]);
  });

  // SPEC 5.7
  it("the input side of a Zod schema", async () => {
    const schema = z.object({ n: z.number().default(2), text: z.string().transform((text) => text.length) });
    const { parameters } = (await shown(schema)) ?? {};
    expect(parameters).toMatchObject({ type: "object", properties: { n: { type: "number", default: 2 }, text: { type: "string" } } });
    expect(parameters.required).toEqual(["text"]);
    expect((await callWith(schema, { text: "four" })).got).toEqual({ n: 2, text: 4 });
  });

  const circular: Record<string, unknown> = { type: "object" };
  circular.properties = { circular };

  // SPEC 4.3, 5.7
  it.each<[string, unknown]>([
    ["a Standard Schema that cannot say its JSON Schema", standard((value) => ({ value }))],
    ["one whose converter gives nothing", converting(() => undefined)],
    [
      "one whose converter throws",
      converting(() => {
        throw new Error("cannot be represented");
      }),
    ],
    ["a Zod schema of what JSON does not have", z.object({ when: z.date() })],
    ["a text", "object"],
    ["a number", 5],
    ["an array", [{ type: "object" }]],
    ["a function", () => {}],
    ["a circle", circular],
    ["a BigInt in it", { type: "object", properties: { n: { minimum: 1n } } }],
  ])("%s is refused before any event, as invalid_tool", async (_name, parameters) => {
    const onEvent = vi.fn();
    const running = run(["end"], { tools: [makeTool("my-tool", () => "x", { parameters })], onEvent });
    const error: unknown = await running.catch((thrown: unknown) => thrown);
    expect(TurnLoopError.is(error) && [error.code, error.message]).toEqual(["invalid_tool", expect.stringContaining("my-tool")]);
    expect(onEvent).not.toHaveBeenCalled();
  });
});

describe("the text of refused arguments", () => {
  const typebox = Type.Object({
    a: Type.Optional(Type.Object({ b: Type.Array(Type.Object({ c: Type.Number() })) })),
    e: Type.Optional(Type.Union([Type.Literal("red"), Type.Literal("green")])),
    p: Type.Optional(Type.String({ pattern: "^[a-z]{3}$" })),
    m: Type.Optional(Type.Number({ maximum: 10 })),
    x: Type.Optional(Type.Object({}, { additionalProperties: false })),
  });
  const zod = z.object({
    a: z.object({ b: z.array(z.object({ c: z.number() })) }).optional(),
    e: z.enum(["red", "green"]).optional(),
    p: z
      .string()
      .regex(/^[a-z]{3}$/)
      .optional(),
    m: z.number().max(10).optional(),
    x: z.strictObject({}).optional(),
  });
  const rows: [string, unknown, RegExp[]][] = [
    ["a wrong type, deep down", { a: { b: [{ c: 1 }, { c: "1x" }] } }, [/a\.b\[1\]\.c/, /number/, /"1x"/]],
    ["a missing property", { a: { b: [{}] } }, [/a\.b\[0\]\.c/]],
    ["a value that is none of several", { e: "blue" }, [/\be\b/, /"red"/, /"green"/, /"blue"/]],
    ["a pattern", { p: "ABCD" }, [/\bp\b/, /\^\[a-z\]\{3\}\$/, /"ABCD"/]],
    ["a limit", { m: 11 }, [/\bm\b/, /10/, /11/]],
    ["an array in place of an object", { a: [1, 2] }, [/\ba\b/, /object/, /\[1,2\]/]],
  ];

  // SPEC 5.7
  describe.each<[string, unknown]>([
    ["TypeBox", typebox],
    ["JSON Schema", jsonOf(typebox)],
    ["Zod", zod],
  ])("checked by %s", (_kind, parameters) => {
    it.each(rows)("names path, expectation and what came: %s", async (_name, given, expected) => {
      const { text, got } = await callWith(parameters, given);
      expect(got).toBe(REFUSED);
      for (const part of expected) expect(text).toMatch(part);
      expect(text).toContain('"t"');
    });

    it("names leaves, not their parents", async () => {
      const { text } = await callWith(parameters, { a: { b: [{ c: "1x" }, { c: true }] } });
      expect(text.match(/^- [^:]*/gm)).toEqual(["- a.b[0].c", "- a.b[1].c"]);
    });

    it("names an unexpected property", async () => {
      expect((await callWith(parameters, { x: { surprise: 1 } })).text).toMatch(/x.*surprise/);
    });

    it("shortens what came", async () => {
      const long = "much ".repeat(10_000);
      for (const given of [{ m: long }, { a: { b: [{ c: { long } }] } }, { a: { b: Array(10_000).fill(1) } }]) {
        expect((await callWith(parameters, given)).text.length).toBeLessThan(2000);
      }
    });
  });
});

describe("without code generation", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  // SPEC 5.7, 14.1
  it("arguments are checked under a policy that forbids eval", async () => {
    const forbid = (): never => {
      throw new EvalError("code generation from strings is forbidden");
    };
    vi.stubGlobal("Function", new Proxy(Function, { apply: forbid, construct: forbid }));
    vi.stubGlobal("eval", forbid);
    const parameters = Type.Object({ n: Type.Number(), e: Type.Optional(Type.String({ format: "email" })) });
    for (const schema of [parameters, jsonOf(parameters)]) {
      expect((await callWith(schema, { n: "1", e: "a@b.co" })).got).toEqual({ n: 1, e: "a@b.co" });
      expect((await callWith(schema, { n: 1, e: "x" })).got).toBe(REFUSED);
    }
  });

  // SPEC 5.7
  it("one frozen tool serves valid and invalid calls, and run after run", async () => {
    const parameters = Type.Object({ n: Type.Number(), e: Type.Optional(Type.String({ format: "email" })) }, { $id: "shared" });
    const tools = deepFreeze(["t", "u"].map((name) => makeTool(name, (_id, { n }) => `got ${n}`, { parameters })));
    for (let turn = 0; turn < 2; turn++) {
      const calls = [{ n: "1" }, { n: "x" }, { n: 2, e: "a@b.co" }, { n: 2, e: "x" }].flatMap((args) =>
        tools.map(({ name }) => ({ toolCall: name, args })),
      );
      const record = await run([calls, "end"], { tools });
      const texts = resultsOf(record).map(textOf);
      expect(texts.map((text) => text.slice(0, 7))).toEqual([
        "got 1",
        "got 1",
        "Invalid",
        "Invalid",
        "got 2",
        "got 2",
        "Invalid",
        "Invalid",
      ]);
      expect(record.requests[1]?.tools?.[0]?.parameters).toEqual(jsonOf(parameters));
    }
  });
});
