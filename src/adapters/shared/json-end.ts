/** Tells when a JSON object that comes in pieces is complete, looking at each character once. */
export class JsonEnd {
  complete = false;
  #depth = 0;
  #inString = false;
  #escaped = false;

  read(text: string): void {
    for (const char of text) {
      if (this.#escaped) this.#escaped = false;
      else if (this.#inString) {
        if (char === "\\") this.#escaped = true;
        else if (char === '"') this.#inString = false;
      } else if (char === '"') this.#inString = true;
      else if (char === "{" || char === "[") this.#depth++;
      else if ((char === "}" || char === "]") && --this.#depth <= 0) this.complete = true;
    }
  }
}
