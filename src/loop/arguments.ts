/** From the model's arguments to those a tool may trust (SPEC 5.7). No eval, so it runs under a strict CSP. */
import { type SchemaDraft, Validator } from "@cfworker/json-schema";
import type { TSchema } from "@sinclair/typebox";
import { Check } from "@sinclair/typebox/value";
import { describe, errorText, TurnLoopError } from "../errors.js";
import type { AgentTool } from "../tool.js";
import { isThenable } from "./abort.js";
import { type Coerce, compileCoercion, type JsonSchema } from "./coerce.js";
import { copyJson } from "./snapshot.js";
import { invalidArguments, joinPath, type StandardIssue, wordErrors, wordIssue } from "./validation-text.js";

/** Why arguments were refused, for the model to read. */
export class InvalidArguments {
  readonly error: string;

  constructor(error: string) {
    this.error = error;
  }
}

export function isInvalid(validated: unknown): validated is InvalidArguments {
  return validated instanceof InvalidArguments;
}

/** What is worked out once for a tool's schema. */
export interface ToolSchema {
  /** What the model is shown, and what coercion follows: a JSON copy of the tool's own. */
  json: JsonSchema;
  coerce: Coerce;
  /** What the coerced arguments become, or InvalidArguments; a promise of either from an async schema. */
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

const schemas = new WeakMap<AgentTool, { parameters: unknown; schema: ToolSchema }>();

/** Throws `invalid_tool` for a tool whose parameters cannot be shown to a model. */
export function toolSchema(tool: AgentTool): ToolSchema {
  const known = schemas.get(tool);
  if (known && known.parameters === tool.parameters) return known.schema;
  const schema = isStandardSchema(tool.parameters) ? standardSchema(tool, tool.parameters) : jsonSchema(tool);
  schemas.set(tool, { parameters: tool.parameters, schema });
  return schema;
}

/** Coerces and validates a copy of the arguments; the given ones are not touched. Gives what `check` does, and may throw. */
export function validateArguments(tool: AgentTool, schema: ToolSchema, given: unknown): unknown {
  if (isThenable(given)) {
    Promise.resolve(given).catch(() => {});
    return new InvalidArguments(`prepareArguments of tool "${tool.name}" returned a promise; it must return the arguments themselves.`);
  }
  return schema.check(schema.coerce(copyJson(given, true)));
}

function jsonSchema(tool: AgentTool): ToolSchema {
  const given = tool.parameters as TSchema | undefined;
  const json = jsonCopy(tool, given ?? { type: "object", properties: {} });
  const quick = given !== undefined && Symbol.for("TypeBox.Kind") in given;
  let validator: Validator | undefined;
  return {
    json,
    coerce: compileCoercion(json),
    check(args) {
      if (quick && quickCheck(given, args)) return args;
      const nonFinite = findNonFinite(args, "");
      if (nonFinite) return new InvalidArguments(invalidArguments(tool, [nonFinite]));
      // the checker writes into the schema it is given, and cannot take ours while the model is shown it
      validator ??= new Validator(jsonCopy(tool, json), draftOf(json), false);
      const { valid, errors } = validator.validate(args);
      return valid ? args : new InvalidArguments(invalidArguments(tool, wordErrors(errors, args)));
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
  const shown = tool.jsonSchema ?? given["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  if (typeof shown !== "object" || shown === null) {
    throw new TurnLoopError(
      "invalid_tool",
      `The parameters of tool "${tool.name}" are a Standard Schema that cannot say its JSON Schema. Give the tool a jsonSchema for the model to see.`,
    );
  }
  const read = (result: StandardResult): unknown =>
    result.issues ? new InvalidArguments(invalidArguments(tool, result.issues.map(wordIssue))) : result.value;
  const json = jsonCopy(tool, shown);
  return {
    json,
    coerce: compileCoercion(json),
    check(args) {
      const result = given["~standard"].validate(args);
      return isThenable(result) ? (result as Promise<StandardResult>).then(read) : read(result as StandardResult);
    },
  };
}

function isStandardSchema(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return false;
  return typeof (schema as Partial<StandardSchema>)["~standard"]?.validate === "function";
}

function jsonCopy(tool: AgentTool, schema: unknown): JsonSchema {
  let copy: unknown;
  try {
    copy = JSON.parse(JSON.stringify(schema));
  } catch (error) {
    throw new TurnLoopError("invalid_tool", `The parameters of tool "${tool.name}" are not a JSON Schema: ${errorText(error)}`);
  }
  if (typeof copy === "object" && copy !== null && !Array.isArray(copy)) return copy as JsonSchema;
  throw new TurnLoopError("invalid_tool", `The parameters of tool "${tool.name}" must be a schema of an object; got ${describe(schema)}.`);
}

function draftOf(schema: JsonSchema): SchemaDraft {
  const uri = String(schema.$schema ?? "");
  if (uri.includes("draft-04")) return "4";
  return uri.includes("draft-07") ? "7" : "2020-12";
}

function findNonFinite(value: unknown, path: string): string | undefined {
  if (typeof value === "number")
    return Number.isFinite(value) ? undefined : `${path || "arguments"}: expected a finite number, received ${value}`;
  if (typeof value !== "object" || value === null) return undefined;
  for (const key of Object.keys(value)) {
    const found = findNonFinite((value as Record<string, unknown>)[key], joinPath(path, key));
    if (found) return found;
  }
  return undefined;
}
