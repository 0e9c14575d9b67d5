/** Small pieces of text that the tools, the offline model and the renderer share. Runs in a browser. */

/** Back to the beginning of the terminal's line, which is empty then. */
export const ERASE_LINE = "\r\x1b[K";

/** "1 line", "2 lines", "3 matches". */
export function counted(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`;
  return `${count} ${noun}${noun.endsWith("ch") ? "es" : "s"}`;
}

/** At most `length` characters, the last one an ellipsis when something was cut; never half a surrogate pair. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${cutAt(text, length - 1)}…`;
}

/** The first `length` characters, one less where that would halve a surrogate pair. */
export function cutAt(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, "");
}
