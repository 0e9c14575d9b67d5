/** Tables of odd values, named by their index in a scenario. */

const HUGE = "a long line of output \ud83d\ude00\n".repeat(8000);

/** What is thrown, or given as an abort reason. */
export const THROWN: readonly (() => unknown)[] = [
  () => new Error("plain failure"),
  () => undefined,
  () => "a thrown text",
  () => "",
  () => Symbol("thrown"),
  () => Object.create(null),
  () => Object.defineProperty(new Error("hidden"), "message", { get: () => raise(new Error("no message for you")) }),
  () => Object.assign(new Error("The operation was aborted"), { name: "AbortError" }),
  () => null,
  () => ({ message: 5 }),
  () => new Error(HUGE),
];

/** Those of THROWN that say something. */
export const READABLE: readonly number[] = [0, 2, 7, 10];

/** What a tool returns that is no good result. */
export const RETURNED: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => 5,
  () => [],
  () => ({}),
  () => ({ content: "a text" }),
  () => ({ content: [null, 5, "text", { type: "video" }, { type: "text" }, { type: "image", data: "aGk=", mimeType: "image/png" }] }),
  () => ({ content: [], details: circular(), terminate: "yes", isError: "no" }),
  () => ({ content: [{ type: "text", text: "cut \ud83d" }], usage: { input: 1 }, toolCallId: "mine", role: "user" }),
  () => Object.defineProperty({}, "content", { get: () => raise(new Error("no content for you")) }),
  () => ({ content: [{ type: "text", text: HUGE }], details: { list: Array.from({ length: 20_000 }, (_, i) => i) } }),
];

function circular(): unknown {
  const value: Record<string, unknown> = { big: 10n };
  value.self = value;
  return value;
}

export function raise(error: unknown): never {
  throw error;
}

/** The parameters of a strict tool; a loose one takes any object. */
export const STRICT = {
  type: "object",
  properties: {
    n: { type: "integer" },
    s: { type: "string" },
    flag: { type: "boolean", default: false },
    tags: { type: "array", items: { type: "string" } },
  },
  required: ["n"],
};
export const LOOSE = { type: "object", properties: {} };

export interface ArgumentsRow {
  /** As the model gives them, new each time. */
  given: () => unknown;
  /** What the transcript keeps; undefined: `{}` with an argumentsError (SPEC 5.4). */
  stored?: object;
  /** What a strict and a loose tool receive; undefined: the call is refused (SPEC 5.7). */
  strict?: object;
  loose?: object;
}

const row = (given: () => unknown, stored?: object, strict?: object, loose: object | undefined = stored): ArgumentsRow => ({
  given,
  ...(stored && { stored }),
  ...(strict && { strict }),
  ...(loose && { loose }),
});
const plain = (value: object, strict?: object): ArgumentsRow => row(() => structuredClone(value), value, strict);
const list = Array.from({ length: 40 }, (_, i) => i);

export const ARGUMENTS: readonly ArgumentsRow[] = [
  plain({ n: 1 }, { n: 1, flag: false }),
  plain({}),
  plain({ n: 1, s: "x", flag: true, tags: ["a", "b"] }, { n: 1, s: "x", flag: true, tags: ["a", "b"] }),
  plain({ n: "5", flag: "true", tags: '["a"]' }, { n: 5, flag: true, tags: ["a"] }),
  plain({ n: "5x" }),
  plain({ n: 1, s: null }, { n: 1, flag: false }),
  plain({ n: 1.5 }),
  plain({ n: 1, list, more: { list } }, { n: 1, list, more: { list }, flag: false }),
  row(() => '{"n":2}', { n: 2 }, { n: 2, flag: false }),
  row(() => undefined, {}),
  row(() => null, {}),
  row(() => "", {}),
  row(() => [1]),
  row(() => 5),
  row(() => '{"n":'),
  row(() => ({ n: 5n })),
  row(circular as () => unknown),
  row(
    () => JSON.parse('{"n":1,"__proto__":{"x":1},"constructor":{"y":1}}'),
    JSON.parse('{"n":1,"__proto__":{"x":1},"constructor":{"y":1}}'),
    { n: 1, flag: false },
    { n: 1 },
  ),
  plain({ n: 1, s: "cut \ud83d" }, { n: 1, s: "cut \ud83d", flag: false }),
];

/** Names that no tool has. */
export const UNKNOWN_NAMES: readonly unknown[] = ["", "__proto__", "constructor", undefined, 5, "nope", "\udc00"];

/** What a sink that writes leaves behind. */
export const MARK = "#written#";

/** Overwrites everything that can be reached, the host's own details aside. */
export function writeOver(value: unknown, seen = new Set<unknown>()): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value) || seen.has(value)) return;
  seen.add(value);
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    if (key === "details") continue;
    if (typeof item === "object") writeOver(item, seen);
    else if (key !== "type") Reflect.set(value, key, typeof item === "number" ? -999 : MARK);
  }
  if (Array.isArray(value)) value.length = 0;
  else Reflect.set(value, MARK, MARK);
}

/** JSON for comparing and for showing; copes with everything. */
export function show(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "undefined";
  } catch {
    return showOdd(value);
  }
}

/** The same for what JSON cannot hold: bigints and cycles. */
function showOdd(value: unknown): string {
  const open: unknown[] = [];
  return JSON.stringify(value, function (this: unknown, _key, item) {
    while (open.length > 0 && open[open.length - 1] !== this) open.pop();
    if (typeof item === "bigint") return `${item}n`;
    if (typeof item !== "object" || item === null) return item;
    if (open.includes(item)) return "(circular)";
    open.push(item);
    return item;
  });
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) for (const item of Object.values(Object.freeze(value))) deepFreeze(item);
  return value;
}
