/** What was wrong with arguments, for a model to read: path, expectation, a shortened received value (SPEC 5.7). */
import type { OutputUnit } from "@cfworker/json-schema";
import { describe } from "../errors.js";

/** One problem of a Standard Schema. */
export interface StandardIssue {
  message: string;
  path?: readonly (PropertyKey | { key: PropertyKey })[];
}

const MAX_PROBLEMS = 10;

export function invalidArguments(tool: { name: string }, problems: readonly string[]): string {
  const shown = problems.slice(0, MAX_PROBLEMS).map((problem) => `- ${problem}`);
  if (problems.length > MAX_PROBLEMS) shown.push(`- and ${problems.length - MAX_PROBLEMS} more`);
  return `Invalid arguments for tool "${tool.name}"; it was not executed:\n${shown.join("\n")}`;
}

/** One text a path and kind of problem, leaves only: a parent's error says no more than that a child has one. */
export function wordErrors(errors: readonly OutputUnit[], args: unknown): string[] {
  const expectations = new Map<string, { expected: Set<string>; received: string }>();
  const texts: string[] = [];
  for (let i = 0; i < errors.length; i++) {
    const error = errors[i] as OutputUnit;
    if (isParent(error, errors[i + 1])) continue;
    const keys = pointerKeys(error.instanceLocation);
    const path = keys.reduce(joinPath, "") || "arguments";
    const received = describe(keys.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], args));
    const expected = expectation(error);
    if (expected !== undefined) {
      const known = expectations.get(path);
      if (known) known.expected.add(expected);
      else expectations.set(path, { expected: new Set([expected]), received });
    } else if (error.keyword === "required") {
      texts.push(`${joinPath(keys.reduce(joinPath, ""), /"(.*)"/s.exec(error.error)?.[1] ?? "")}: required, but missing`);
    } else if (error.keyword === "false") {
      texts.push(`${path}: not an expected property`);
    } else {
      texts.push(`${path}: ${error.error.replace(/\.$/, "")}, received ${received}`);
    }
  }
  for (const [path, { expected, received }] of expectations) {
    texts.push(`${path}: expected ${[...expected].join(" or ")}, received ${received}`);
  }
  return [...new Set(texts)];
}

/** The checker lists a parent right before the errors of its child. */
function isParent(error: OutputUnit, next: OutputUnit | undefined): boolean {
  if (!next || (error.keyword === "oneOf" && !error.error.includes("(0 matches)"))) return false;
  if (next.keyword === "false") return next.instanceLocation.startsWith(`${error.instanceLocation}/`);
  return next.keywordLocation.startsWith(`${error.keywordLocation}/`);
}

function expectation(error: OutputUnit): string | undefined {
  switch (error.keyword) {
    case "type":
      return /Expected "(.*)"/s.exec(error.error)?.[1]?.replaceAll('", "', " or ");
    case "enum":
      return `one of ${/match any of (.*)\.$/s.exec(error.error)?.[1]}`;
    case "const":
      return /match (.*)\.$/s.exec(error.error)?.[1];
    default:
      return undefined;
  }
}

export function wordIssue(issue: StandardIssue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).reduce(joinPath, "");
  return `${path || "arguments"}: ${issue.message}`;
}

function pointerKeys(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((key) => decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** `a`, `a.b`, `a[0]`. */
export function joinPath(path: string, key: string): string {
  if (/^\d+$/.test(key)) return `${path}[${key}]`;
  return path === "" ? key : `${path}.${key}`;
}
