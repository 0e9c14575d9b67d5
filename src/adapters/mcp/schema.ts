/** A server's schema as the loop can check it (SPEC 5.7, 12.3). */

/** Keywords whose value is data, not a schema. */
const DATA: readonly string[] = ["default", "const", "enum", "examples"];
/** Keywords whose value has schemas by name. */
const NAMED: readonly string[] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/** What lies deeper stays as it is. */
const MAX_DEPTH = 100;

/**
 * The schema without patterns that are no regular expression in JavaScript's Unicode mode, such as Python's, or `a\-b`. With
 * one of them every call would fail before it reaches the server, which can read them and checks again. The given object
 * when there is none.
 */
export function readableSchema(schema: object): object {
  const text = JSON.stringify(schema);
  if (!text.includes('"pattern')) return schema;
  const copy: object = JSON.parse(text);
  return dropPatterns(copy, 0) ? copy : schema;
}

/** True when there were any. */
function dropPatterns(given: unknown, depth: number): boolean {
  if (typeof given !== "object" || given === null || depth > MAX_DEPTH) return false;
  const schema = given as Record<string, unknown>;
  let dropped = false;
  for (const [key, part] of Object.entries(schema)) {
    if (DATA.includes(key)) continue;
    if (key === "pattern" && !isReadable(part)) {
      delete schema[key];
      dropped = true;
    }
    if (key === "patternProperties") {
      const named = Object(part) as Record<string, unknown>;
      for (const pattern of Object.keys(named).filter((name) => !isReadable(name))) {
        delete named[pattern];
        // what the pattern would have let in
        delete schema["additionalProperties"];
        delete schema["unevaluatedProperties"];
        dropped = true;
      }
    }
    const parts = NAMED.includes(key) ? Object.values(Object(part)) : [part];
    for (const inner of parts) dropped = dropPatterns(inner, depth + 1) || dropped;
  }
  return dropped;
}

function isReadable(pattern: unknown): boolean {
  if (typeof pattern !== "string") return true;
  try {
    return Boolean(new RegExp(pattern, "u"));
  } catch {
    return false;
  }
}
