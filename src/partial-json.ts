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

const [QUOTE, BACKSLASH, COMMA, COLON, U] = [0x22, 0x5c, 0x2c, 0x3a, 0x75];
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * A JSON object that comes in pieces, each character looked at once. Its value so far: open strings and brackets are
 * closed, a key without a complete value is left out.
 */
export class PartialObject {
  #text = "";
  /** What closes the open brackets, the innermost last. */
  readonly #open: string[] = [];
  #inString = false;
  #inKey = false;
  #inScalar = false;
  /** Of an escape: how many characters are missing, -1 while its kind is not known, and where it began. */
  #escape = 0;
  #escapeAt = 0;
  /** Up to here the text is valid JSON once the open brackets are closed. */
  #end = 0;
  /** The length of the text that was last read. */
  #readAt = 0;

  get text(): string {
    return this.#text;
  }

  add(piece: string): void {
    const start = this.#text.length;
    this.#text += piece;
    for (let i = 0; i < piece.length; i++) {
      const code = piece.charCodeAt(i);
      if (!this.#inString) this.#structure(code, start + i);
      else if (this.#escape !== 0) this.#escape = this.#escape < 0 ? (code === U ? 4 : 0) : this.#escape - 1;
      else if (code === BACKSLASH) [this.#escape, this.#escapeAt] = [-1, start + i];
      else if (code === QUOTE) {
        this.#inString = false;
        if (!this.#inKey) this.#end = start + i + 1;
      }
    }
  }

  /**
   * The value so far; undefined before the first bracket, for broken text, and while there is little new: it is read again
   * only after the text has grown by a quarter, which costs amortised linear time.
   */
  read(): Record<string, unknown> | undefined {
    const { length } = this.#text;
    if (length > 64 && length - this.#readAt < length >> 2) return undefined;
    this.#readAt = length;
    const open = this.#inString && !this.#inKey;
    const end = !open ? this.#end : this.#escape === 0 ? length : this.#escapeAt;
    if (end === 0) return undefined;
    return parseObject(this.#text.slice(0, end) + (open ? '"' : "") + [...this.#open].reverse().join(""));
  }

  #structure(code: number, at: number): void {
    if (code === QUOTE) this.#inString = true;
    else if (code === BRACE || code === BRACKET) {
      this.#open.push(code === BRACE ? "}" : "]");
      this.#inKey = code === BRACE;
      this.#end = at + 1;
    } else if (code === BRACE_END || code === BRACKET_END) {
      this.#open.pop();
      this.#inKey = this.#inScalar = false;
      this.#end = at + 1;
    } else if (code === COLON) this.#inKey = false;
    else if (code === COMMA) {
      if (this.#inScalar) this.#end = at;
      this.#inScalar = false;
      this.#inKey = this.#open[this.#open.length - 1] === "}";
    } else if (code > 0x20) this.#inScalar = true;
  }
}
