/** Fills the defaults of a JSON Schema into arguments of the loop's own (SPEC 5.7). */
import { copyJson, isPlainObject, type Json } from "./snapshot.js";

export function fillDefaults(schema: unknown, value: unknown, root: Json): void {
  if (!isPlainObject(schema)) return;
  if (typeof schema.$ref === "string") fillDefaults(resolve(schema.$ref, root), value, root);
  const { allOf, properties, items } = schema;
  if (Array.isArray(allOf)) for (const part of allOf) fillDefaults(part, value, root);
  if (Array.isArray(value)) for (const item of value) fillDefaults(items, item, root);
  if (!isPlainObject(value)) return;
  const branches = ([schema.anyOf ?? schema.oneOf].flat() as (Json | undefined)[]).filter((branch) => branch?.properties);
  if (branches.length === 1) fillDefaults(branches[0], value, root);
  for (const key of isPlainObject(properties) ? Object.keys(properties) : []) {
    const property = (properties as Json)[key];
    if (!Object.hasOwn(value, key) && isPlainObject(property) && property.default !== undefined && key !== "__proto__") {
      value[key] = copyJson(property.default);
    }
    if (Object.hasOwn(value, key)) fillDefaults(property, value[key], root);
  }
}

/** A reference by pointer or by `$id`. A pointer to nowhere is for the checker to complain about. */
function resolve(reference: string, root: Json): unknown {
  if (reference === "#" || reference === root.$id) return root;
  if (!reference.startsWith("#/")) return findById(root, reference);
  return reference
    .slice(2)
    .split("/")
    .reduce<unknown>((target, key) => (target as Json | undefined)?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], root);
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
