/**
 * Lossless coercion of arguments towards their JSON Schema (SPEC 5.7): a text becomes the number, boolean, array or object
 * it spells where the schema wants one, defaults are filled, a null for an optional property that takes none is left
 * out. What cannot be converted without loss stays as it is, for validation to refuse.
 *
 * A schema is compiled once into small functions, so that a call pays for its own values only.
 */
import { copyJson } from "./snapshot.js";

export type JsonSchema = Record<string, unknown>;
type Json = Record<string, unknown>;

/** Coerces a value of the loop's own in place. Returns what takes its place. */
export type Coerce = (value: unknown) => unknown;

interface Property {
  key: string;
  schema: unknown;
  /** A null is left out: the property is optional and takes none. */
  dropNull: boolean;
  coerce: Coerce | undefined;
}

export function compileCoercion(schema: JsonSchema): Coerce {
  return new Compiler(schema).compile(schema) ?? ((value) => value);
}

class Compiler {
  readonly #root: JsonSchema;
  readonly #compiled = new Map<object, Coerce | undefined>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** Undefined when there is nothing to coerce. */
  compile(given: unknown): Coerce | undefined {
    if (!isObject(given)) return undefined;
    if (this.#compiled.has(given)) return this.#compiled.get(given);
    // a schema that contains itself finds this entry, which follows the finished one
    let finished: Coerce | undefined;
    this.#compiled.set(given, (value) => (finished ? finished(value) : value));
    const steps = this.#steps(given);
    finished = steps.length <= 1 ? steps[0] : (value) => steps.reduce((coerced, step) => step(coerced), value);
    this.#compiled.set(given, finished);
    return finished;
  }

  #steps(given: JsonSchema): Coerce[] {
    const steps: (Coerce | undefined)[] = [];
    const target = typeof given.$ref === "string" ? resolve(given.$ref, this.#root) : undefined;
    if (target !== given) steps.push(this.compile(target));
    if (Array.isArray(given.allOf)) for (const part of given.allOf) steps.push(this.compile(part));
    for (const branches of [given.anyOf, given.oneOf]) if (Array.isArray(branches)) steps.push(this.#branches(branches));
    const types = typesOf(given);
    if (types && !types.includes("string")) steps.push((value) => (typeof value === "string" ? coerceText(types, value) : value));
    steps.push(this.#items(given), this.#properties(given));
    return steps.filter((step) => step !== undefined);
  }

  /** The first branch the value fits as it is; else the first one that a coerced value fits. */
  #branches(branches: unknown[]): Coerce | undefined {
    const compiled = branches.map((branch) => ({ branch, coerce: this.compile(branch) }));
    if (compiled.every(({ coerce }) => coerce === undefined)) return undefined;
    return (value) => {
      const fitting = compiled.find(({ branch }) => fits(branch, value, this.#root));
      if (fitting) return fitting.coerce ? fitting.coerce(value) : value;
      for (const { branch, coerce } of compiled) {
        const coerced = coerce ? coerce(value) : value;
        if (coerced !== value && fits(branch, coerced, this.#root)) return coerced;
      }
      return value;
    };
  }

  #items(given: JsonSchema): Coerce | undefined {
    const tuple = [given.prefixItems, given.items].find(Array.isArray) ?? [];
    const prefix = tuple.map((item) => this.compile(item));
    const rest = this.compile(Array.isArray(given.items) ? given.additionalItems : given.items);
    if (!rest && prefix.every((coerce) => coerce === undefined)) return undefined;
    return (value) => {
      if (!Array.isArray(value)) return value;
      for (let i = 0; i < value.length; i++) {
        const coerce = i < prefix.length ? prefix[i] : rest;
        if (coerce) value[i] = coerce(value[i]);
      }
      return value;
    };
  }

  #properties(given: JsonSchema): Coerce | undefined {
    const schemas = isObject(given.properties) ? given.properties : {};
    const required: unknown[] = Array.isArray(given.required) ? given.required : [];
    const properties: Property[] = [];
    for (const key of Object.keys(schemas)) {
      const schema = schemas[key];
      const dropNull = !required.includes(key) && !fits(schema, null, this.#root);
      const property = { key, schema, dropNull, coerce: this.compile(schema) };
      if (key !== "__proto__" && (dropNull || property.coerce || hasDefault(schema))) properties.push(property);
    }
    const others = this.#otherProperties(given, schemas);
    if (properties.length === 0 && !others) return undefined;
    return (value) => {
      if (!isObject(value)) return value;
      for (const property of properties) coerceProperty(property, value);
      others?.(value);
      return value;
    };
  }

  /** Properties that only patternProperties and additionalProperties speak about. */
  #otherProperties(given: JsonSchema, named: Json): ((value: Json) => void) | undefined {
    const patterns = isObject(given.patternProperties) ? Object.entries(given.patternProperties) : [];
    const matchers = patterns.map(([pattern, schema]) => ({ pattern: new RegExp(pattern, "u"), coerce: this.compile(schema) }));
    const additional = this.compile(given.additionalProperties);
    if (!additional && matchers.every(({ coerce }) => coerce === undefined)) return undefined;
    return (value) => {
      for (const key of Object.keys(value)) {
        if (Object.hasOwn(named, key)) continue;
        const matching = matchers.filter(({ pattern }) => pattern.test(key));
        for (const { coerce } of matching) if (coerce) value[key] = coerce(value[key]);
        if (matching.length === 0 && additional) value[key] = additional(value[key]);
      }
    };
  }
}

function coerceProperty({ key, schema, dropNull, coerce }: Property, value: Json): void {
  if (dropNull && value[key] === null && Object.hasOwn(value, key)) delete value[key];
  if (!Object.hasOwn(value, key)) {
    if (!hasDefault(schema)) return;
    value[key] = copyJson(schema.default, true);
  }
  if (coerce) value[key] = coerce(value[key]);
}

function hasDefault(schema: unknown): schema is { default: unknown } {
  return isObject(schema) && schema.default !== undefined;
}

/** A schema that refers to itself without consuming any of the value would never end. */
const MAX_REFERENCES = 50;

/** Whether the value looks like what the schema is about: type, const, enum, and an object's required and constant properties. */
function fits(given: unknown, value: unknown, root: JsonSchema, references = 0): boolean {
  if (!isObject(given)) return given !== false;
  if (references > MAX_REFERENCES) return true;
  if (typeof given.$ref === "string" && !fits(resolve(given.$ref, root), value, root, references + 1)) return false;
  const types = typesOf(given);
  if (types && !types.includes(typeOf(value)) && !(types.includes("integer") && Number.isInteger(value))) return false;
  if ("const" in given && typeof given.const !== "object" && given.const !== value) return false;
  if (Array.isArray(given.enum) && typeof value !== "object" && !given.enum.includes(value)) return false;
  if (Array.isArray(given.allOf) && !given.allOf.every((part) => fits(part, value, root, references + 1))) return false;
  for (const branches of [given.anyOf, given.oneOf]) {
    if (Array.isArray(branches) && !branches.some((branch) => fits(branch, value, root, references + 1))) return false;
  }
  if (!isObject(value)) return true;
  const properties = isObject(given.properties) ? given.properties : {};
  if (Array.isArray(given.required) && !given.required.every((key) => Object.hasOwn(value, key))) return false;
  return Object.keys(properties).every((key) => {
    const property = properties[key];
    return !isObject(property) || !("const" in property) || !Object.hasOwn(value, key) || property.const === value[key];
  });
}

/** What the text spells in the first of the types it spells something in; else the text. */
function coerceText(types: unknown[], text: string): unknown {
  for (const type of types) {
    if (type === "number" || type === "integer") {
      const number = losslessNumber(text);
      if (number !== undefined && (type === "number" || Number.isInteger(number))) return number;
    } else if (type === "boolean") {
      if (text === "true" || text === "false") return text === "true";
    } else if (type === "array" || type === "object") {
      const parsed = parseAs(type, text);
      if (parsed !== undefined) return parsed;
    }
  }
  return text;
}

/** The number a JSON number literal spells, if a double holds all of its digits. */
function losslessNumber(text: string): number | undefined {
  const literal = /^-?(0|[1-9]\d*)(?:\.(\d+))?(?:[eE][+-]?\d+)?$/.exec(text);
  if (!literal) return undefined;
  const number = Number(text);
  if (!Number.isFinite(number)) return undefined;
  const [, whole = "", fraction = ""] = literal;
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  if (digits === "") return number;
  if (number === 0) return undefined;
  if (digits.replace(/0+$/, "").length <= 15) return number;
  const exact = fraction === "" && !/[eE]/.test(text) && BigInt(text) === BigInt(number);
  return exact || String(number) === text ? number : undefined;
}

function parseAs(type: "array" | "object", text: string): unknown {
  const open = type === "array" ? "[" : "{";
  if (!text.trimStart().startsWith(open)) return undefined;
  try {
    return copyJson(JSON.parse(text), true);
  } catch {
    return undefined;
  }
}

function resolve(reference: string, root: JsonSchema): unknown {
  if (reference === "#" || reference === root.$id) return root;
  if (!reference.startsWith("#/")) return findById(root, reference);
  let target: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof target !== "object" || target === null || !Object.hasOwn(target, key)) return undefined;
    target = (target as Json)[key];
  }
  return target;
}

function findById(schema: unknown, id: string): unknown {
  if (typeof schema !== "object" || schema === null) return undefined;
  if ((schema as Json).$id === id) return schema;
  for (const part of Object.values(schema)) {
    const found = findById(part, id);
    if (found !== undefined) return found;
  }
  return undefined;
}

function typesOf(schema: JsonSchema): unknown[] | undefined {
  if (typeof schema.type === "string") return [schema.type];
  return Array.isArray(schema.type) ? schema.type : undefined;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
