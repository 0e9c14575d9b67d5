/**
 * Reads a JSON object that is still arriving. Each character is scanned once; the value so far is parsed again only after
 * the text has grown by a quarter, so the whole costs amortised linear time (SPEC 3.2).
 */
export class PartialJson {
  #text = "";
  /** Brackets that are open at the end of the text: "{" or "[". */
  readonly #open: string[] = [];
  #inString = false;
  /** Characters of an escape sequence still to come, or AFTER_BACKSLASH when the next one decides. */
  #escape = 0;
  /** In an object: the string being read, or the last one read, is a key that has no complete value yet. */
  #inKey = false;
  #scalar = false;
  /** The text up to here is valid JSON once an open string and the open brackets are closed. */
  #safeEnd = 0;
  #safeInString = false;
  #value: Record<string, unknown> = {};
  #parsedAt = 0;

  get text(): string {
    return this.#text;
  }

  push(delta: string): void {
    const base = this.#text.length;
    this.#text += delta;
    for (let i = 0; i < delta.length; i++) this.#scan(delta.charCodeAt(i), base + i + 1);
    if (this.#inString && !this.#inKey && this.#escape === 0) this.#markSafe(this.#text.length, true);
  }

  /** The value so far: `{}` before anything can be read. The same object until it is parsed again; never changed later. */
  value(): Record<string, unknown> {
    const length = this.#text.length;
    if (length - this.#parsedAt >= length >> 2 || length < 64) {
      this.#parsedAt = length;
      if (this.#safeEnd > 0) this.#value = parseObject(this.#text.slice(0, this.#safeEnd) + this.#closers()) ?? this.#value;
    }
    return this.#value;
  }

  #scan(unit: number, end: number): void {
    if (this.#inString) {
      if (this.#escape === AFTER_BACKSLASH) this.#escape = unit === LETTER_U ? 4 : 0;
      else if (this.#escape > 0) this.#escape--;
      else if (unit === BACKSLASH) {
        if (!this.#inKey) this.#markSafe(end - 1, true);
        this.#escape = AFTER_BACKSLASH;
      } else if (unit === QUOTE) {
        this.#inString = false;
        if (!this.#inKey) this.#markSafe(end, false);
      }
      return;
    }
    switch (unit) {
      case QUOTE:
        this.#inString = true;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        this.#open.push(unit === OPEN_BRACE ? "{" : "[");
        this.#inKey = unit === OPEN_BRACE;
        this.#markSafe(end, false);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        this.#open.pop();
        this.#inKey = false;
        this.#scalar = false;
        this.#markSafe(end, false);
        break;
      case COLON:
        this.#inKey = false;
        break;
      case COMMA:
        if (this.#scalar) this.#markSafe(end - 1, false);
        this.#scalar = false;
        this.#inKey = this.#open[this.#open.length - 1] === "{";
        break;
      default:
        if (unit > SPACE) this.#scalar = true;
    }
  }

  #markSafe(end: number, inString: boolean): void {
    this.#safeEnd = end;
    this.#safeInString = inString;
  }

  /** What closes the text at the safe end. Every bracket moves the safe end, so the open ones now are those open there. */
  #closers(): string {
    let closers = this.#safeInString ? '"' : "";
    for (let i = this.#open.length - 1; i >= 0; i--) closers += this.#open[i] === "{" ? "}" : "]";
    return closers;
  }
}

const AFTER_BACKSLASH = 5;
const BACKSLASH = 0x5c;
const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;
const SPACE = 0x20;
const LETTER_U = 0x75;

/** The object that a JSON text says; undefined when the text is broken or says something else. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
