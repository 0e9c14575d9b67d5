import fc from "fast-check";
import { type TSchema, Type } from "turnloop/schema";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { callWith, deepFreeze, NOT_EXECUTED } from "./hand-written.js";
import { makeTool, run } from "./helpers.js";

const REFUSED = NOT_EXECUTED;
const jsonOf = (schema: unknown) => JSON.parse(JSON.stringify(schema));

/** One property `v` of the tool, described four ways. */
function kinds(typebox: TSchema, zod: z.ZodType): [string, unknown][] {
  const object = Type.Object({ v: typebox });
  return [
    ["TypeBox", object],
    ["JSON Schema", deepFreeze(jsonOf(object))],
    ["Zod", z.object({ v: zod })],
    ["Type.Unsafe", Type.Object({ v: Type.Unsafe(jsonOf(typebox)), extra: Type.Optional(Type.String({ format: "email" })) })],
  ];
}

type Rows = [given: unknown, expected: unknown][];
const same = (...values: unknown[]): Rows => values.map((value) => [value, value]);
const refused = (...values: unknown[]): Rows => values.map((value) => [value, REFUSED]);
const k = Type.Object({ k: Type.Number() });
const zk = z.object({ k: z.number() });

describe("coercion is lossless or not at all", () => {
  // SPEC 5.7
  it.each<[string, TSchema, z.ZodType, Rows]>([
    [
      "number",
      Type.Number(),
      z.number(),
      [
        ["5", 5],
        ["-0.5", -0.5],
        ["1e3", 1000],
        ["0", 0],
        ...same(5, 1e300, -1),
        ...refused(
          "5x",
          "",
          " ",
          "0x10",
          "1e999",
          "-1e999",
          "NaN",
          "Infinity",
          "+5",
          "5,0",
          "1_0",
          "12345678901234567890123",
          "9007199254740993",
          "0.1234567890123456789",
          "1e-999",
          true,
          null,
          [],
          ["5"],
          {},
          Number.NaN,
          Number.POSITIVE_INFINITY,
        ),
      ],
    ],
    ["integer", Type.Integer(), z.int(), [["5", 5], ["-7", -7], ...same(0, 5), ...refused("5.5", 5.5, "5x", "9007199254740993", null)]],
    [
      "boolean",
      Type.Boolean(),
      z.boolean(),
      [["true", true], ["false", false], ...same(true, false), ...refused("yes", "TRUE", "True", "1", "", " true", 1, 0, null, [true])],
    ],
    ["string", Type.String(), z.string(), [...same("5", "true", '["a"]', "null", "", " ", "{}"), ...refused(5, true, null, ["a"])]],
    [
      "array",
      Type.Array(Type.String()),
      z.array(z.string()),
      [
        ['["a"]', ["a"]],
        ["[]", []],
        [' ["a", "b"] ', ["a", "b"]],
        ...same(["5", "true"], []),
        ...refused("a", "a,b", "", "[", '{"0":"a"}', [5], {}, null),
      ],
    ],
    [
      "array of numbers",
      Type.Array(Type.Number()),
      z.array(z.number()),
      [
        ['["1", 2]', [1, 2]],
        [
          ["1", "2"],
          [1, 2],
        ],
        ...refused(["1", "x"], "1,2", [null]),
      ],
    ],
    [
      "object",
      k,
      zk,
      [
        ['{"k":1}', { k: 1 }],
        ['{"k":"1"}', { k: 1 }],
        [{ k: "1" }, { k: 1 }],
        ...refused("k", "[1]", "null", "", '{"k":"x"}', {}, [], null),
      ],
    ],
    [
      "array of objects",
      Type.Array(k),
      z.array(zk),
      [['[{"k":"1"},{"k":2}]', [{ k: 1 }, { k: 2 }]], [['{"k":1}'], [{ k: 1 }]], ...refused([{ k: "x" }])],
    ],
    ["string or number", Type.Union([Type.Number(), Type.String()]), z.union([z.number(), z.string()]), same("5", 5, "x")],
    [
      "number or null",
      Type.Union([Type.Number(), Type.Null()]),
      z.number().nullable(),
      [["5", 5], ...same(null, 5), ...refused("null", "", "x")],
    ],
    [
      "number or boolean",
      Type.Union([Type.Number(), Type.Boolean()]),
      z.union([z.number(), z.boolean()]),
      [["5", 5], ["true", true], ...refused("x", null)],
    ],
    ["number literal", Type.Literal(5), z.literal(5), [["5", 5], ...same(5), ...refused("6", 6, "5x", null)]],
    ["numeric enum", Type.Union([Type.Literal(1), Type.Literal(2)]), z.literal([1, 2]), [["2", 2], ...same(1), ...refused("3", 3)]],
    [
      "string enum",
      Type.Union([Type.Literal("a"), Type.Literal("1")]),
      z.enum(["a", "1"]),
      [...same("a", "1"), ...refused("A", 1, null, "")],
    ],
    ["boolean literal", Type.Literal(true), z.literal(true), [["true", true], ...refused("false", false)]],
    ["null", Type.Null(), z.null(), [...same(null), ...refused("null", 0)]],
    [
      "tuple",
      Type.Tuple([Type.String(), Type.Number()]),
      z.tuple([z.string(), z.number()]),
      [
        [
          ["1", "2"],
          ["1", 2],
        ],
        ['["1","2"]', ["1", 2]],
        ...same(["a", 1]),
        ...refused(["a"], ["a", 1, 2], [1, "a"]),
      ],
    ],
    [
      "record",
      Type.Record(Type.String(), Type.Number()),
      z.record(z.string(), z.number()),
      [
        [
          { x: "1", toString: "2" },
          { x: 1, toString: 2 },
        ],
        ['{"x":1}', { x: 1 }],
        ...same({}),
        ...refused({ x: "1x" }, []),
      ],
    ],
    [
      "two objects in one",
      Type.Intersect([k, Type.Object({ b: Type.Boolean() })]),
      z.intersection(zk, z.object({ b: z.boolean() })),
      [
        [
          { k: "1", b: "true" },
          { k: 1, b: true },
        ],
        ...refused({ k: 1 }, { k: "1", b: "x" }),
      ],
    ],
    ["anything", Type.Unknown(), z.unknown(), same("5", "true", null, ["1"], { k: "1" })],
  ])("%s", async (_name, typebox, zod, rows) => {
    for (const [kind, parameters] of kinds(typebox, zod)) {
      for (const [given, expected] of rows) {
        const outcome = await callWith(parameters, { v: given });
        expect([kind, given, outcome.got]).toEqual([kind, given, expected === REFUSED ? REFUSED : { v: expected }]);
        expect(outcome.isError).toBe(expected === REFUSED);
        if (expected === REFUSED) expect(outcome.text).toMatch(/\bv\b/);
      }
    }
  });

  const optional = Type.Object({
    n: Type.Optional(Type.Number()),
    s: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    d: Type.Optional(Type.Number({ default: 4 })),
    list: Type.Optional(Type.Array(Type.Object({ n: Type.Optional(Type.Number()) }), { default: [] })),
  });
  const zoptional = z.object({
    n: z.number().optional(),
    s: z.string().nullable().optional(),
    d: z.number().default(4),
    list: z.array(z.object({ n: z.number().optional() })).default([]),
  });

  // SPEC 5.7
  it.each<[object, object]>([
    [{}, { d: 4, list: [] }],
    [
      { n: null, s: null, d: null, list: null },
      { s: null, d: 4, list: [] },
    ],
    [
      { n: "1", d: "2", list: '[{"n":null},{"n":"3"}]' },
      { n: 1, d: 2, list: [{}, { n: 3 }] },
    ],
    [{ list: [{ n: null }] }, { d: 4, list: [{}] }],
  ])("fills defaults and drops a null of an optional property: %j", async (given, expected) => {
    for (const parameters of [optional, jsonOf(optional), zoptional]) expect((await callWith(parameters, given)).got).toEqual(expected);
  });

  // SPEC 5.7
  it("a filled default is the call's own: what one call does to it the next does not see", async () => {
    const seen: unknown[] = [];
    const tool = makeTool("t", (_id, { list }) => String(seen.push([...list]) && list.push("x")), { parameters: deepFreeze(optional) });
    await run([[{ toolCall: "t" }, { toolCall: "t" }], "end"], { tools: [tool] });
    expect(seen).toEqual([[], []]);
  });

  // SPEC 5.7
  it("a default that the schema refuses does not stand in the way of a call without the property", async () => {
    const parameters = { type: "object", properties: { s: { type: "string", default: null }, n: { type: "number" } } };
    expect((await callWith(parameters, { n: 1 })).got).toEqual({ n: 1 });
    expect((await callWith(parameters, { n: "1", s: "x" })).got).toEqual({ n: 1, s: "x" });
  });

  // SPEC 5.7
  it("a null for a required property is an error, with a default too", async () => {
    for (const parameters of [
      Type.Object({ n: Type.Number() }),
      Type.Object({ n: Type.Number({ default: 3 }) }),
      z.object({ n: z.number() }),
    ]) {
      expect(await callWith(parameters, { n: null })).toMatchObject({ got: REFUSED, text: expect.stringMatching(/\bn\b.*number.*null/) });
    }
  });

  const a = Type.Object({ kind: Type.Literal("a"), v: Type.Union([Type.Number(), Type.Boolean()]), n: Type.Number({ default: 3 }) });
  const b = Type.Object({ kind: Type.Literal("b"), v: Type.String(), m: Type.Number({ default: 4 }) });
  const strict = [a, b].map((branch) => ({ ...branch, additionalProperties: false }));
  const loose = Type.Union([
    Type.Object({ v: Type.Number() }),
    Type.Object({ v: Type.String() }),
    Type.Array(Type.Number()),
    Type.Array(Type.String()),
  ]);
  const versions = Type.Union([
    Type.Object({ version: Type.Literal(1), a: Type.String() }),
    Type.Object({ version: Type.Literal(2), a: Type.Number() }),
  ]);

  // SPEC 5.7
  it.each<[string, TSchema, unknown, unknown]>([
    ["what is valid stays, though an earlier branch could coerce it", loose, { v: "5" }, { v: "5" }],
    ["an array that is valid stays", loose, ["5"], ["5"]],
    ["the branch of the discriminator decides", Type.Union([a, b]), { kind: "b", v: "true", m: 1 }, { kind: "b", v: "true", m: 1 }],
    ["the branch of the discriminator coerces", Type.Union([a, b]), { kind: "a", v: "true", n: "1" }, { kind: "a", v: true, n: 1 }],
    ["another branch leaves no trace", Type.Union([a, b]), { kind: "b", v: "true", m: "1" }, { kind: "b", v: "true", m: 1 }],
    ["a coerced discriminator selects its branch", versions, { version: "1", a: "5" }, { version: 1, a: "5" }],
    ["and the second one", versions, { version: "2", a: "5" }, { version: 2, a: 5 }],
    ["defaults of the branch that fits are filled, of no other", Type.Union([a, b]), { kind: "a", v: 1 }, { kind: "a", v: 1, n: 3 }],
    [
      "the same for branches that take no other property",
      Type.Union(strict as TSchema[]),
      { kind: "b", v: "x" },
      { kind: "b", v: "x", m: 4 },
    ],
    [
      "in an array of them",
      Type.Array(Type.Union([a, b])),
      [
        { kind: "a", v: "1", n: 1 },
        { kind: "b", v: "1", m: "1" },
      ],
      [
        { kind: "a", v: 1, n: 1 },
        { kind: "b", v: "1", m: 1 },
      ],
    ],
    ["no branch", Type.Union([a, b]), { kind: "c", v: "true" }, REFUSED],
  ])("in a union: %s", async (_name, typebox, given, expected) => {
    for (const parameters of [Type.Object({ v: typebox }), jsonOf(Type.Object({ v: typebox }))]) {
      expect((await callWith(parameters, { v: given })).got).toEqual(expected === REFUSED ? REFUSED : { v: expected });
    }
  });

  const leaf = fc.oneof(
    fc.string().map((value) => [{ type: "string" }, value] as const),
    fc.constantFrom("5", "true", "[]").map((value) => [{ type: "string" }, value] as const),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => [{ type: "number" }, value === 0 ? 0 : value] as const),
    fc.boolean().map((value) => [{ type: "boolean" }, value] as const),
  );
  const pairs: fc.Arbitrary<readonly [object, unknown]> = fc.letrec<{ pair: readonly [object, unknown] }>((tie) => ({
    pair: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.dictionary(fc.constantFrom("a", "b", "c d", "e.f", "0"), tie("pair"), { maxKeys: 3 }).map(
        (entries) =>
          [
            {
              type: "object",
              properties: Object.fromEntries(Object.entries(entries).map(([key, [schema]]) => [key, schema])),
              required: Object.keys(entries),
            },
            Object.fromEntries(Object.entries(entries).map(([key, [, value]]) => [key, value])),
          ] as const,
      ),
      tie("pair").map(([schema, value]) => [{ type: "array", items: schema }, [value, value]] as const),
    ),
  })).pair;
  /** Writes the value as a careless model would: numbers, booleans and nested structures as texts where `pick` says so. */
  const careless = (value: unknown, pick: () => boolean): unknown => {
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null) return pick() ? JSON.stringify(value) : value;
    const inner = Array.isArray(value)
      ? value.map((item) => careless(item, pick))
      : Object.fromEntries(Object.entries(value).map(([key, item]) => [key, careless(item, pick)]));
    return pick() ? JSON.stringify(inner) : inner;
  };

  // SPEC 5.7
  it("gives back any value that was sent as texts", async () => {
    await fc.assert(
      fc.asyncProperty(pairs, fc.infiniteStream(fc.boolean()), async ([schema, value], picks) => {
        const given = careless(value, () => picks.next().value as boolean);
        const outcome = await callWith({ type: "object", properties: { v: schema }, required: ["v"] }, { v: given });
        expect(outcome.got).toEqual({ v: value });
      }),
      { numRuns: 150 },
    );
  });
});
