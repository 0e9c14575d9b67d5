import fc from "fast-check";
import { type AssistantMessage, AssistantMessageBuilder, type AssistantMessageEvent, type ToolCall } from "turnloop";
import { describe, expect, it } from "vitest";
import { model } from "./helpers.js";

const builder = () => new AssistantMessageBuilder(model);
const argumentsOf = (events: AssistantMessageEvent[]): ToolCall["arguments"] => {
  const { content } = (events[events.length - 1] as { partial: AssistantMessage }).partial;
  return (content[content.length - 1] as ToolCall).arguments;
};

/** Whether `part` is `whole` with its end missing: no key, item or value that `whole` does not have, in the same order. */
function isBeginning(part: unknown, whole: unknown): boolean {
  if (typeof part === "string") return typeof whole === "string" && whole.startsWith(part);
  if (typeof part !== "object" || part === null) return Object.is(part, whole);
  if (typeof whole !== "object" || whole === null || Array.isArray(part) !== Array.isArray(whole)) return false;
  const [keys, all] = [Object.keys(part), Object.keys(whole)];
  return keys.every((key, i) => {
    const [ours, theirs] = [(part as Record<string, unknown>)[key], (whole as Record<string, unknown>)[key]];
    const complete = i < keys.length - 1;
    return all[i] === key && (complete ? JSON.stringify(ours) === JSON.stringify(theirs) : isBeginning(ours, theirs));
  });
}

function argumentsAfter(...deltas: string[]): { partials: ToolCall["arguments"][]; final: ToolCall } {
  const b = builder();
  b.toolCallStart("1", "t");
  const partials = deltas.map((delta) => argumentsOf(b.toolCallDelta(delta)));
  return { partials, final: (b.toolCallEnd()[0] as { toolCall: ToolCall }).toolCall };
}

function checkEveryCut(json: string): void {
  const whole = JSON.parse(json);
  const { partials, final } = argumentsAfter(...json.split(""));
  expect(final).toEqual({ type: "toolCall", id: "1", name: "t", arguments: whole });
  for (let cut = 0; cut <= json.length; cut++) {
    const atOnce = argumentsAfter(json.slice(0, cut)).partials[0];
    if (!isBeginning(atOnce, whole)) expect.fail(`cut ${cut}: ${json.slice(0, cut)} gave ${JSON.stringify(atOnce)}`);
    const [before, after] = [partials[cut - 2], partials[cut - 1]];
    if (after && !isBeginning(after, atOnce)) expect.fail(`delta ${cut} of ${json} gave ${JSON.stringify(after)}`);
    if (before && !isBeginning(before, after)) expect.fail(`delta ${cut} of ${json} took back ${JSON.stringify(before)}`);
    const { partials: two, final: end } = argumentsAfter(json.slice(0, cut), json.slice(cut));
    expect(end.arguments).toEqual(whole);
    expect(isBeginning(two[0], whole)).toBe(true);
  }
}

describe("partial tool arguments", () => {
  // SPEC 3.2
  it.each([
    "{}",
    ' { "a" : 1 , "b" : -0.5e+10 , "c" : true , "d" : null , "e" : false } ',
    '{"path":"C:\\\\dir\\\\","q":"say \\"hi\\"","nl":"a\\nb\\tc\\/","last":"\\\\"}',
    '{"\\u00e9\\"}{":"\\u0041\\ud83d\\ude00\\u005c\\u0022","raw":"😀{[\\"]}","x":"\\u0000"}',
    '{"list":[1,[2,[3,[]],{}],{"a":[{"b":[null,true,"x,y"]}]},""],"end":[[["z"]]]}',
    '{"a":{"a":{"a":{"b":"{\\"c\\":[1"}}},"":{"":""},"k:,":":,{}[]"}',
    '{"numbers":[0,-1,1e5,1.25E-3,12345678901234567890],"t":[true,false,null]}',
    '{"__proto__":{"x":1},"constructor":"c","toString":[1]}',
    `{"code":${JSON.stringify("if (a) {\n\treturn [\"x\", 'y'];\n}\\".repeat(6))},"n":[${Array(40).fill('{"i":1}').join(",")}]}`,
  ])("are a growing beginning of the whole at every cut, text %#", (json) => checkEveryCut(json));

  // SPEC 3.2
  it("are a growing beginning of the whole for any JSON object", () => {
    const nasty = fc.string({
      unit: fc.constantFrom('"', "\\", "{", "}", "[", "]", ":", ",", "u", "0", "\n", "é", "😀", "\ud83d", " "),
      maxLength: 8,
    });
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        nasty,
        fc.double(),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(nasty, tie("value"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(nasty, value, { maxKeys: 4 }), fc.constantFrom(undefined, 1, "\t"), (object, space) =>
        checkEveryCut(JSON.stringify(object, null, space)),
      ),
      { numRuns: 60 },
    );
  });

  // SPEC 3.2
  it("show what is there: strings so far, finished items, never a number that may go on", () => {
    const soFar = (json: string) => argumentsAfter(json).partials[0];
    expect(soFar('{"q":"hel')).toEqual({ q: "hel" });
    expect(soFar('{"q":"hel\\')).toEqual({ q: "hel" });
    expect(soFar('{"q":"hel\\u00')).toEqual({ q: "hel" });
    expect(soFar('{"n":[1,2')).toEqual({ n: [1] });
    expect(soFar('{"n":12')).not.toHaveProperty("n");
    expect(soFar('{"a":{"b":tru')).toEqual({ a: {} });
    expect(soFar('{"a":1,"b')).toEqual({ a: 1 });
  });

  // SPEC 3.2, 5.4
  it.each([
    "[1,2]",
    '"text"',
    "5",
    "nul",
    "{'a': 1}",
    '{"a":01}',
    '{"a":1}}',
    '{"a":"x',
    "}]}",
    '{"a":1,}',
    "hello {world}",
    '{"a":"\\x"}',
  ])("of %s are objects all the way, and the finished call says that it is none", (text) => {
    const { partials, final } = argumentsAfter(...text.split(""));
    for (const partial of partials) expect(Object.prototype.toString.call(partial)).toBe("[object Object]");
    for (const partial of partials) expect(Array.isArray(partial)).toBe(false);
    expect(final.arguments).toEqual({});
    expect(final.argumentsError).toMatch(/JSON object/);
  });

  // SPEC 3.2
  it.each([
    ["one long text", (n: number) => JSON.stringify({ content: 'line of "code"\n'.repeat(n / 17) })],
    ["many small items", (n: number) => JSON.stringify({ items: Array(Math.ceil(n / 9)).fill({ i: "x" }) })],
    [
      "deep nesting",
      (n: number) => JSON.stringify({ deep: Array(n / 1000).fill(JSON.parse(`${'{"a":['.repeat(125)}1${"]}".repeat(125)}`)) }),
    ],
  ])("are read in linear work over 100,000 one-character deltas of %s", (_name, make) => {
    const json = make(100_000);
    const b = builder();
    b.toolCallStart("1", "t");
    const seen = new Set<object>();
    let work = 0;
    for (const unit of json) {
      const partial = argumentsOf(b.toolCallDelta(unit));
      if (seen.has(partial)) continue;
      seen.add(partial);
      work += JSON.stringify(partial).length;
    }
    expect(json.length).toBeGreaterThan(90_000);
    expect(seen.size).toBeGreaterThan(5);
    expect(seen.size).toBeLessThan(200);
    expect(work).toBeLessThan(10 * json.length);
    expect((b.toolCallEnd()[0] as { toolCall: ToolCall }).toolCall.arguments).toEqual(JSON.parse(json));
  });

  // SPEC 3.2
  it("start anew with each call", () => {
    const b = builder();
    b.toolCallStart("1", "t");
    b.toolCallDelta('{"a":"un');
    b.toolCallStart("2", "t");
    for (const delta of ['{"b":', "2}"]) b.toolCallDelta(delta);
    const end = b.done().pop();
    expect(end).toMatchObject({
      type: "done",
      message: {
        content: [
          { id: "1", arguments: {} },
          { id: "2", arguments: { b: 2 } },
        ],
      },
    });
    const [cut, whole] = (end as { message: AssistantMessage }).message.content;
    expect(cut).toHaveProperty("argumentsError");
    expect(whole).not.toHaveProperty("argumentsError");
  });
});
