import { unusedName } from "./unused-name.js";

/** Ids as they are sent: valid, unique in the request, and the same in every request of a growing transcript (SPEC 12.2). */
export class CallIds {
  readonly #maxLength: number;
  readonly #alphanumeric: boolean;
  readonly #used = new Set<string>();
  /** The sent ids of the current message's calls, by their own id: it may occur twice. */
  #open = new Map<string, string[]>();

  /**
   * `maxLength`: the longest id the provider accepts. Ids hold letters, digits, `_` and `-` only; if `alphanumeric`, letters
   * and digits only, and they have that length.
   */
  constructor(maxLength: number, alphanumeric = false) {
    this.#maxLength = maxLength;
    this.#alphanumeric = alphanumeric;
  }

  /** An assistant message begins: results that follow belong to its calls. */
  nextMessage(): void {
    this.#open = new Map();
  }

  /** The id to send for a call. */
  called(id: string): string {
    const sent = this.#alphanumeric ? this.#numbered(id) : this.#similar(id);
    this.#used.add(sent);
    this.#open.set(id, [...(this.#open.get(id) ?? []), sent]);
    return sent;
  }

  #similar(id: string): string {
    const base = id.replace(/[^\w-]/g, "_").slice(0, this.#maxLength) || "call";
    return unusedName(base, this.#maxLength, (name) => this.#used.has(name));
  }

  /** The id itself if it can be sent, else a number. */
  #numbered(id: string): string {
    const isFree = (sent: string): boolean => /^[a-z\d]+$/i.test(sent) && sent.length === this.#maxLength && !this.#used.has(sent);
    let sent = id;
    for (let n = this.#used.size; !isFree(sent); n++) sent = String(n).padStart(this.#maxLength, "0");
    return sent;
  }

  /** The id to send for the result of a call of the current message. */
  answered(id: string): string {
    return this.#open.get(id)?.shift() ?? id;
  }
}
