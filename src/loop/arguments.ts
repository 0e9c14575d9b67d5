/** From the model's arguments to those a tool may trust (SPEC 5.7). No eval, so it runs under a strict CSP. */
import {
  dereference,
  format,
  ignoredKeyword,
  type SchemaDraft,
  schemaArrayKeyword,
  schemaKeyword,
  schemaMapKeyword,
  validate,
} from "@cfworker/json-schema";
import type { TSchema } from "@sinclair/typebox";
import { Check } from "@sinclair/typebox/value";
import { describe, errorText, misuse, TurnLoopError } from "../errors.js";
import { parseObject } from "../partial-json.js";
import type { AgentTool } from "../tool.js";
import { wellFormedDeep } from "../transcript.js";
import { isThenable } from "./abort.js";
import { coerce } from "./coerce.js";
import { fillDefaults, type SchemaAccess } from "./defaults.js";
import { invalidText, joinPath, type Problem, problemsOf, valueAt, wordProblem } from "./problems.js";
import { copyJson, isPlainObject, type Json } from "./snapshot.js";

/** Why arguments were refused, for the model to read. */
export class InvalidArguments {
  readonly error: string;

  constructor(error: string) {
    this.error = error;
  }
}

/** What is worked out once for a tool's schema. */
export interface ToolSchema {
  /** What the model is shown: a JSON copy of the tool's own. */
  json: Json;
  /** Keys that do not reach the tool: a schema may ask for `constructor` and `prototype` by name. */
  drop: "proto" | "unsafe";
  /** What arguments of the loop's own become, or InvalidArguments; a promise of either from an async schema. May throw. */
  check(args: unknown): unknown;
}

/** The parts of the Standard Schema interface that are used here. */
interface StandardSchema {
  "~standard": {
    validate(value: unknown): StandardResult | Promise<StandardResult>;
    jsonSchema?: { input(options: { target: string }): unknown };
  };
}
type StandardResult = { value: unknown; issues?: undefined } | { issues: readonly StandardIssue[] };
interface StandardIssue {
  message: string;
  path?: readonly (PropertyKey | { key: PropertyKey })[];
}

const schemas = new WeakMap<AgentTool, { parameters: unknown; schema: ToolSchema }>();

/** Throws `invalid_tool` for a tool whose parameters cannot be shown to a model. */
export function toolSchema(tool: AgentTool): ToolSchema {
  const known = schemas.get(tool);
  if (known && known.parameters === tool.parameters) return known.schema;
  const schema = isStandardSchema(tool.parameters) ? standardSchema(tool, tool.parameters) : jsonSchema(tool);
  schema.json = wellFormedDeep(schema.json);
  schemas.set(tool, { parameters: tool.parameters, schema });
  return schema;
}

/** Coerces and validates a copy of the arguments; the given ones are not touched. Gives what `check` does, and may throw. */
export function validateArguments(tool: AgentTool, schema: ToolSchema, given: unknown): unknown {
  const isPromise = isThenable(given);
  if (isPromise) Promise.resolve(given).catch(() => {});
  if (isPromise || given === undefined) {
    return new InvalidArguments(
      `prepareArguments of tool "${tool.name}" must return the arguments; got ${isPromise ? "a promise" : "nothing"}.`,
    );
  }
  return schema.check(copyJson(typeof given === "string" ? (parseObject(given) ?? given) : given, schema.drop));
}

function jsonSchema(tool: AgentTool): ToolSchema {
  const given = (tool.parameters ?? { type: "object", properties: {} }) as TSchema;
  const json = jsonCopy(tool, given);
  const isTypeBox = Symbol.for("TypeBox.Kind") in given;
  const checker = new Checker(tool, json);
  return {
    json,
    drop: droppedKeys(json),
    check(args) {
      checker.fillDefaults(args);
      if (isTypeBox && quickCheck(given, args)) return args;
      const problems = coerce(args, checker);
      return problems.length === 0
        ? args
        : new InvalidArguments(
            invalidText(
              tool.name,
              problems.map((problem) => wordProblem(problem, valueAt(args, problem.keys))),
            ),
          );
    },
  };
}

/** TypeBox is many times faster, but says no to every `format` and throws on some schemas: only its yes counts. */
function quickCheck(schema: TSchema, args: unknown): boolean {
  try {
    return Check(schema, args);
  } catch {
    return false;
  }
}

function standardSchema(tool: AgentTool, given: StandardSchema): ToolSchema {
  let shown: unknown = tool.jsonSchema;
  let why = "";
  try {
    shown ??= given["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  } catch (error) {
    why = `: ${errorText(error)}`;
  }
  if (!isPlainObject(shown)) {
    throw new TurnLoopError(
      "invalid_tool",
      `The parameters of tool "${tool.name}" are a Standard Schema that cannot say its JSON Schema${why}. Give the tool a jsonSchema for the model to see.`,
    );
  }
  const json = jsonCopy(tool, shown);
  const checker = new Checker(tool, json);
  const validate = (args: unknown): StandardResult | Promise<StandardResult> => given["~standard"].validate(args);
  const refuse = (args: unknown, issues: readonly StandardIssue[]): InvalidArguments =>
    new InvalidArguments(
      invalidText(
        tool.name,
        issues.map((issue) => wordIssue(issue, args)),
      ),
    );
  const again = (args: unknown, result: StandardResult): unknown => {
    if (!result.issues) return result.value;
    coerce(args, checker);
    return settle(validate(args), (coerced) => (coerced.issues ? refuse(args, coerced.issues) : coerced.value));
  };
  return { json, drop: droppedKeys(json), check: (args) => settle(validate(args), (result) => again(args, result)) };
}

function settle(result: StandardResult | Promise<StandardResult>, next: (result: StandardResult) => unknown): unknown {
  return isThenable(result) ? Promise.resolve(result).then(next) : next(result);
}

function isStandardSchema(schema: unknown): schema is StandardSchema {
  return typeof (schema as Partial<StandardSchema> | undefined | null)?.["~standard"]?.validate === "function";
}

/** The JSON Schema checker for one tool. */
class Checker implements SchemaAccess {
  readonly #schema: Json;
  readonly #draft: SchemaDraft;
  readonly #hasDefaults: boolean;
  #lookup: Record<string, unknown> | undefined;

  /** The checker writes into the schema, so it gets a copy of its own. */
  constructor(tool: AgentTool, json: Json) {
    this.#schema = madeReadable(jsonCopy(tool, json));
    this.#draft = draftOf(json);
    this.#hasDefaults = JSON.stringify(json).includes('"default":');
  }

  /** All of them, unless that could take too long or too much: then the first one. */
  problems(args: unknown): Problem[] {
    let result = this.#validate(args, this.#schema, true);
    if (!result.valid && depthOf(args) <= MAX_DEPTH_FOR_ALL) {
      try {
        result = this.#validate(args, this.#schema, false);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
      }
    }
    return problemsOf(result.errors, this.#schema);
  }

  fillDefaults(args: unknown): void {
    if (this.#hasDefaults) fillDefaults(this.#schema, args, this);
  }

  target(reference: Json): unknown {
    return this.#references[reference.__absolute_ref__ as string];
  }

  accepts(branch: Json, value: unknown): boolean {
    return this.#validate(value, branch, true).valid;
  }

  #validate(value: unknown, schema: Json, shortCircuit: boolean): ReturnType<typeof validate> {
    return validate(value, schema, this.#draft, this.#references as Parameters<typeof validate>[3], shortCircuit);
  }

  /** Made at the first need: every part of the schema by its address. */
  get #references(): Record<string, unknown> {
    this.#lookup ??= dereference(this.#schema) as Record<string, unknown>;
    return this.#lookup;
  }
}

function draftOf(schema: Json): SchemaDraft {
  const uri = String(schema.$schema);
  if (uri.includes("draft-04")) return "4";
  return uri.includes("draft-07") ? "7" : "2020-12";
}

/** Unions of recursive schemas take time exponential in the depth when every branch is followed to its end. */
const MAX_DEPTH_FOR_ALL = 8;

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Object.values(value).reduce<number>((deepest, item) => Math.max(deepest, depthOf(item)), 0);
}

function droppedKeys(schema: Json): "proto" | "unsafe" {
  return /"(constructor|prototype)"/.test(JSON.stringify(schema)) ? "proto" : "unsafe";
}

/**
 * The checker takes an `id` for the name of a schema also in examples and extensions, where it is none, and cannot read the
 * patterns that are none in Unicode mode, such as `a\\-b`.
 */
function madeReadable(schema: Json): Json {
  const { pattern } = schema;
  if (typeof pattern === "string" && !isPattern(pattern, "u") && isPattern(pattern, "")) {
    const expression = new RegExp(pattern);
    const name = `pattern ${pattern}`;
    format[name] = (text) => expression.test(text);
    schema.allOf = [schema.allOf ?? [], { format: name }].flat();
    delete schema.pattern;
  }
  for (const [key, part] of Object.entries(schema)) {
    if (schemaMapKeyword[key]) for (const named of Object.values(Object(part))) if (isPlainObject(named)) madeReadable(named);
    if (schemaArrayKeyword[key] || schemaKeyword[key]) for (const item of [part].flat()) if (isPlainObject(item)) madeReadable(item);
    if (!schemaMapKeyword[key] && !schemaArrayKeyword[key] && !schemaKeyword[key] && !ignoredKeyword[key]) removeIds(part);
  }
  return schema;
}

function isPattern(text: string, flags: string): boolean {
  try {
    return new RegExp(text, flags) !== undefined;
  } catch {
    return false;
  }
}

function removeIds(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) for (const key of ["id", "$id"]) if (typeof (value as Json)[key] === "string") delete (value as Json)[key];
  for (const item of Object.values(value)) removeIds(item);
}

// the checker's own pattern for it takes time exponential in the length of a host name
format.url = (text: string): boolean => /^(https?|ftp):\/\/[^\s/]/i.test(text) && !/\s/.test(text) && isUrl(text);

function isUrl(text: string): boolean {
  try {
    return new URL(text).hostname !== "";
  } catch {
    return false;
  }
}

function jsonCopy(tool: AgentTool, schema: unknown): Json {
  try {
    const copy = copyJson(JSON.parse(JSON.stringify(schema))); // the checker recurses: not beyond copyJson's depth
    if (isPlainObject(copy)) return copy;
  } catch (error) {
    throw new TurnLoopError("invalid_tool", `The parameters of tool "${tool.name}" are not a JSON Schema: ${errorText(error)}`);
  }
  throw misuse(`The parameters of tool "${tool.name}"`, "a schema of an object", schema, "invalid_tool");
}

function wordIssue({ path = [], message }: StandardIssue, args: unknown): string {
  const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
  return `${keys.reduce(joinPath, "") || "arguments"}: ${message}, received ${describe(valueAt(args, keys))}`;
}
