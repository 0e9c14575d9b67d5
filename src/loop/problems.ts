/** What the JSON Schema checker finds wrong, by place: for coercion, and for a model to read. */
import type { OutputUnit } from "@cfworker/json-schema";
import { describe, shorten } from "../errors.js";

export interface Problem {
  keys: string[];
  /** The keys as `a.b[0]`. */
  path: string;
  /** The types and values that would be right here, over all branches of a union; `present` for a missing property. */
  expected: string[];
  /** What else is wrong here. */
  others: string[];
  /** A property that the schema names. */
  isNamed: boolean;
}

const NAMED_PROPERTY = /\/properties\/[^/]+(\/(anyOf|oneOf|allOf)\/\d+|\/\$ref)*\/\w+$/;

/** Leaves only: a parent's error says no more than that a child has one. */
export function problemsOf(errors: readonly OutputUnit[], schema: unknown): Problem[] {
  const problems = new Map<string, Problem>();
  errors.forEach((error, i) => {
    if (isParent(error, errors[i + 1])) return;
    const keys = keysOf(error.instanceLocation);
    const [, quoted = ""] = /"(.*)"/s.exec(error.error) ?? [];
    if (error.keyword === "required") keys.push(quoted);
    const path = keys.reduce(joinPath, "");
    const problem = problems.get(path) ?? { keys, path, expected: [], others: [], isNamed: false };
    problems.set(path, problem);
    problem.isNamed ||= NAMED_PROPERTY.test(error.keywordLocation);
    const expected = expectationsOf(error, quoted);
    problem.expected.push(...expected.filter((one) => !problem.expected.includes(one)));
    if (expected.length === 0) problem.others.push(wordOther(error, schema));
  });
  return [...problems.values()];
}

/** The checker lists a parent right before the errors of its child. */
function isParent(error: OutputUnit, next: OutputUnit | undefined): boolean {
  if (!next || (error.keyword === "oneOf" && !error.error.includes("(0 matches)"))) return false;
  if (next.keyword === "false") return next.instanceLocation.startsWith(`${error.instanceLocation}/`);
  return next.keywordLocation.startsWith(`${error.keywordLocation}/`);
}

function expectationsOf({ keyword, error }: OutputUnit, quoted: string): string[] {
  if (keyword === "required") return ["present"];
  if (keyword === "type") return (/Expected "(.*)"/s.exec(error)?.[1] ?? quoted).split('", "');
  if (keyword !== "enum" && keyword !== "const") return [];
  const [, any, values = ""] = /match (any of )?(.*)\.$/s.exec(error) ?? [];
  return [any ? `one of ${values}` : values];
}

function wordOther({ keyword, error, keywordLocation }: OutputUnit, schema: unknown): string {
  if (keyword === "false") return "not an expected property";
  const limit = keyword === "pattern" ? ` ${String(valueAt(schema, keysOf(keywordLocation)) ?? "")}` : "";
  return `${error.replace(/\.$/, "")}${limit}`;
}

export function wordProblem({ path, expected, others }: Problem, received: unknown): string {
  const place = shorten(path || "arguments", 200);
  if (expected.includes("present")) return `${place}: required, but missing`;
  const wrong = [...(expected.length > 0 ? [`expected ${expected.join(" or ")}`] : []), ...others];
  return `${place}: ${shorten(wrong.join("; "), 300)}, received ${describe(received)}`;
}

const MAX_PROBLEMS = 10;

export function invalidText(toolName: string, problems: readonly string[]): string {
  const shown = problems.slice(0, MAX_PROBLEMS).map((problem) => `- ${problem}`);
  if (problems.length > MAX_PROBLEMS) shown.push(`- and ${problems.length - MAX_PROBLEMS} more`);
  return `Invalid arguments for tool "${toolName}"; it was not executed:\n${shown.join("\n")}`;
}

/** The value at a place in arguments or in a schema. */
export function valueAt(root: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (value, key) => (Object.hasOwn(Object(value), key) ? (value as Record<string, unknown>)[key] : undefined),
    root,
  );
}

function keysOf(pointer: string): string[] {
  const keys = pointer.split("/").slice(1);
  return keys.map((key) => decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function joinPath(path: string, key: string): string {
  if (/^\d+$/.test(key)) return `${path}[${key}]`;
  return path === "" ? key : `${path}.${key}`;
}
