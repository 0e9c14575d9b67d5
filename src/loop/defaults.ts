/** Fills the defaults of a JSON Schema into arguments of the loop's own (SPEC 5.7). */
import { copyJson, isPlainObject, type Json } from "./snapshot.js";

export interface SchemaAccess {
  /** The schema that a `$ref` means; a reference to nowhere is for the checker to complain about. */
  target(reference: Json): unknown;
  /** Whether the value is right for a branch of a union. */
  accepts(branch: Json, value: unknown): boolean;
}

export function fillDefaults(schema: unknown, value: unknown, access: SchemaAccess): void {
  if (!isPlainObject(schema)) return;
  const fill = (part: unknown, into: unknown): void => fillDefaults(part, into, access);
  const { $ref, allOf, anyOf, oneOf, items, prefixItems } = schema;
  if ($ref) fill(access.target(schema), value);
  for (const part of listOf(allOf)) fill(part, value);
  if (Array.isArray(value)) {
    const tuple = listOf(prefixItems ?? items);
    value.forEach((item, i) => {
      fill(i < tuple.length ? tuple[i] : items, item);
    });
  }
  if (isPlainObject(value)) fillProperties(value, schema, fill);
  else if (!Array.isArray(value)) return;
  for (const branch of [...listOf(anyOf), ...listOf(oneOf)]) {
    if (!isPlainObject(branch)) continue;
    const trial = copyJson(value);
    fill(branch, trial);
    if (!access.accepts(branch, trial)) continue;
    Object.assign(value, trial);
    break;
  }
}

function fillProperties(
  value: Json,
  { properties, patternProperties, additionalProperties }: Json,
  fill: (part: unknown, into: unknown) => void,
): void {
  for (const [key, property] of entriesOf(properties)) {
    if (!Object.hasOwn(value, key) && isPlainObject(property) && property.default !== undefined) value[key] = copyJson(property.default);
    if (Object.hasOwn(value, key)) fill(property, value[key]);
  }
  const patterns = entriesOf(patternProperties).map(([pattern, part]) => [new RegExp(pattern, "u"), part] as const);
  for (const key of Object.keys(value)) {
    if (isPlainObject(properties) && Object.hasOwn(properties, key)) continue;
    const matching = patterns.filter(([pattern]) => pattern.test(key));
    for (const [, part] of matching) fill(part, value[key]);
    if (matching.length === 0) fill(additionalProperties, value[key]);
  }
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function entriesOf(value: unknown): [string, unknown][] {
  return isPlainObject(value) ? Object.entries(value).filter(([key]) => key !== "__proto__") : [];
}
