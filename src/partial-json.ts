/** JSON objects that are still arriving (SPEC 3.2). */

/** The object that a JSON text says; undefined when the text is broken or says something else. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The object that the beginning of a JSON text says so far: open strings and brackets are closed, a key without a
 * complete value is left out. Undefined before the first bracket and for broken text.
 */
export function parsePartialObject(beginning: string): Record<string, unknown> | undefined {
  let text = beginning;
  const open: string[] = [];
  let inString = false;
  let inKey = false;
  let inScalar = false;
  /** Up to here the text is valid JSON once the open string and the open brackets are closed. */
  let end = 0;
  let closeString = "";
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (inString) {
      if (character === "\\") {
        const last = i + (text[i + 1] === "u" ? 5 : 1);
        if (last >= text.length) {
          text = text.slice(0, i);
          break;
        }
        i = last;
      } else if (character === '"') {
        inString = false;
        if (!inKey) [end, closeString] = [i + 1, ""];
      }
    } else if (character === '"') {
      inString = true;
    } else if (character === "{" || character === "[") {
      open.push(character === "{" ? "}" : "]");
      inKey = character === "{";
      [end, closeString] = [i + 1, ""];
    } else if (character === "}" || character === "]") {
      open.pop();
      inKey = inScalar = false;
      [end, closeString] = [i + 1, ""];
    } else if (character === ":") {
      inKey = false;
    } else if (character === ",") {
      if (inScalar) [end, closeString] = [i, ""];
      inScalar = false;
      inKey = open[open.length - 1] === "}";
    } else if (character > " ") inScalar = true;
  }
  if (inString && !inKey) [end, closeString] = [text.length, '"'];
  return end === 0 ? undefined : parseObject(text.slice(0, end) + closeString + open.reverse().join(""));
}
