/**
 * Lossless coercion of arguments, led by what the JSON Schema checker says is wrong (SPEC 5.7): a text becomes the number,
 * boolean, array or object it spells where one is wanted, a null for an optional property that takes none is left out. A
 * change that does not mend its place is undone, so that what cannot be converted without loss is refused as it came.
 */

import { type Problem, valueAt } from "./problems.js";
import { copyJson, isPlainObject, type Json } from "./snapshot.js";

/** Texts in texts are mended from the outside in, one level a round. */
const MAX_ROUNDS = 20;

export interface Checking {
  problems(args: unknown): Problem[];
  fillDefaults(args: unknown): void;
}

/** Coerces the arguments in place. Returns what is still wrong with them. */
export function coerce(args: unknown, checker: Checking): Problem[] {
  let problems = checker.problems(args);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const changes = problems.map((problem) => mend(args, problem)).filter((change) => change !== undefined);
    if (changes.length === 0) break;
    const after = new Map(checker.problems(args).map((problem) => [problem.path, problem]));
    const mended = changes.filter((change) => {
      const holds = isMended(change.problem, after.get(change.problem.path));
      if (!holds) change.undo();
      return holds;
    });
    checker.fillDefaults(args);
    for (const change of mended) change.again();
    problems = checker.problems(args);
    if (mended.length === 0) break;
  }
  return problems;
}

/** Less is expected at the place than before, and nothing new: another branch of a union may want what was there. */
function isMended(before: Problem, after: Problem | undefined): boolean {
  const expected = after?.expected ?? [];
  return expected.length < before.expected.length && expected.every((one) => before.expected.includes(one));
}

interface Change {
  problem: Problem;
  undo(): void;
  /** After defaults were filled: a default of null is no better than a given one. */
  again(): void;
}

/** Changes the value that the problem is about, if there is a way. */
function mend(args: unknown, problem: Problem): Change | undefined {
  const key = problem.keys[problem.keys.length - 1];
  const parent = valueAt(args, problem.keys.slice(0, -1)) as Json | undefined;
  if (key === undefined || typeof parent !== "object" || problem.expected.length === 0) return undefined;
  const value = parent[key];
  if (value === null && problem.isNamed && isPlainObject(parent)) delete parent[key];
  else {
    const spelled = typeof value === "string" ? spell(problem.expected, value) : undefined;
    if (spelled === undefined) return undefined;
    parent[key] = spelled;
  }
  return {
    problem,
    undo: () => {
      parent[key] = value;
    },
    again: () => {
      if (value === null && parent[key] === null) delete parent[key];
    },
  };
}

/** What the text spells in the first of the types it spells something in. */
function spell(types: string[], text: string): unknown {
  for (const type of types) {
    const value = readAs(type, text);
    if (value !== undefined) return value;
  }
  return undefined;
}

function readAs(type: string, text: string): unknown {
  if (type === "number" || type === "integer") return losslessNumber(text, type);
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  if (type !== "array" && type !== "object") return undefined;
  try {
    const value = copyJson(JSON.parse(text), "unsafe");
    return (type === "array" ? Array.isArray(value) : isPlainObject(value)) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The number a JSON number literal spells, if a double holds all of its digits. */
function losslessNumber(text: string, type: string): number | undefined {
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return undefined;
  const number = Number(text);
  if (!Number.isFinite(number) || (type === "integer" && !Number.isInteger(number))) return undefined;
  return significantDigits(text) === significantDigits(String(number)) ? number : undefined;
}

function significantDigits(text: string): string {
  const digits = text.replace(/[eE].*|[-.]/g, "").replace(/^0+/, "");
  return digits.slice(0, digits.length - trailing(digits, "0"));
}

/** How often the text has this character at its end: a pattern would try again from each one before. */
function trailing(text: string, character: string): number {
  let count = 0;
  while (text[text.length - 1 - count] === character) count++;
  return count;
}
