/** Arithmetic without eval: + - * / % ^, parentheses, signs, decimals. Runs in a browser. */

const MAX_LENGTH = 1000;
const MAX_NESTING = 100;

/** The value of the expression. Throws an Error saying what is wrong and where. */
export function evaluate(expression: string): number {
  if (expression.trim() === "") throw new Error("The expression is empty; expected arithmetic such as 12 * (3 + 4).");
  if (expression.length > MAX_LENGTH) {
    throw new Error(`The expression has ${expression.length} characters; at most ${MAX_LENGTH} are allowed.`);
  }
  return new ExpressionReader(expression).read();
}

/** The value as people write it: 0.1 + 0.2 is 0.3. */
export function formatNumber(value: number): string {
  if (value === 0) return "0";
  return String(Number.isInteger(value) ? value : Number(value.toPrecision(15)));
}

/** Recursive descent, one method for each level of precedence, the weakest first. */
class ExpressionReader {
  readonly #text: string;
  #at = 0;
  #nesting = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): number {
    const value = this.#sum();
    if (this.#peek() !== "") this.#fail("an operator or the end");
    return value;
  }

  #sum(): number {
    let value = this.#product();
    for (;;) {
      if (this.#take("+")) value = finite(value + this.#product());
      else if (this.#take("-")) value = finite(value - this.#product());
      else return value;
    }
  }

  #product(): number {
    let value = this.#signed();
    for (;;) {
      if (this.#take("*")) value = finite(value * this.#signed());
      else if (this.#take("/")) value = finite(value / this.#divisor("Division"));
      else if (this.#take("%")) value = finite(value % this.#divisor("The remainder of a division"));
      else return value;
    }
  }

  #divisor(operation: string): number {
    const start = this.#at;
    const value = this.#signed();
    if (value === 0) throw new Error(`${operation} by zero: "${this.#text.slice(start, this.#at).trim()}" is 0.`);
    return value;
  }

  /** A sign is weaker than ^, so -2^2 is -4; to the right of ^ it is allowed, so 2^-1 is 0.5. */
  #signed(): number {
    if (this.#take("-")) return -this.#nested(() => this.#signed());
    if (this.#take("+")) return this.#nested(() => this.#signed());
    return this.#power();
  }

  /** Groups to the right: 2^3^2 is 2^9. */
  #power(): number {
    const base = this.#atom();
    if (!this.#take("^")) return base;
    const exponent = this.#nested(() => this.#signed());
    if (base === 0 && exponent < 0) throw new Error(`Division by zero: 0 to the power of ${exponent}.`);
    const value = base ** exponent;
    if (Number.isNaN(value)) throw new Error(`${base} to the power of ${exponent} is not a real number.`);
    return finite(value);
  }

  #atom(): number {
    if (this.#take("(")) {
      const value = this.#nested(() => this.#sum());
      if (!this.#take(")")) this.#fail('an operator or ")"');
      return value;
    }
    this.#skipSpace();
    const digits = /^(?:\d+(?:\.\d+)?|\.\d+)/.exec(this.#text.slice(this.#at))?.[0];
    if (digits === undefined) this.#fail('a number or "("');
    this.#at += digits.length;
    return finite(Number(digits));
  }

  #nested(read: () => number): number {
    if (++this.#nesting > MAX_NESTING) throw new Error(`The expression is nested deeper than ${MAX_NESTING} levels.`);
    const value = read();
    this.#nesting--;
    return value;
  }

  #take(symbol: string): boolean {
    if (this.#peek() !== symbol) return false;
    this.#at++;
    return true;
  }

  /** The next character that is not a space; "" at the end. */
  #peek(): string {
    this.#skipSpace();
    return this.#text.charAt(this.#at);
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text.charAt(this.#at))) this.#at++;
  }

  #fail(expected: string): never {
    const found = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    const got = this.#peek() === "" ? "the end of the expression" : `"${found}"`;
    throw new Error(`Expected ${expected} at position ${this.#at + 1}, got ${got}.`);
  }
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new Error("The result is too large to be represented.");
}
