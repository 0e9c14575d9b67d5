/** How a provider's API says things, and what it makes of a request: the shared table knows nothing else of a provider. */

/** What a model says, in the pieces in which the server sends it. */
export type Said = { text: string[] } | { thinking: string[] } | { id: string; name: string; json: string[] };

/** How an answer ends; a refusal in words has these words. */
type Ending = "stop" | "length" | "calls" | "filtered" | { refusal: string };

export interface Tokens {
  input: number;
  cacheRead: number;
  output: number;
}

export type Refusal = "no key" | "too many requests" | "overloaded" | "too long" | "unknown model" | "bad schema";

/** The words of a refused request, the same for every provider. */
export const REASONS: Record<Refusal, string> = {
  "no key": "This key is not valid.",
  "too many requests": "Slow down.",
  overloaded: "Overloaded.",
  "too long": "prompt is too long: 210000 tokens > 200000 maximum",
  "unknown model": "The model `nobody` does not exist.",
  "bad schema": "Invalid schema for function 'add': 'nubmer' is not valid.",
};

export interface Wire {
  /** What every answer begins with. */
  begins(tokens?: Tokens): string;
  /** These blocks; `open`: the last one is not over. `proof` is what the provider signs its thinking with. */
  says(blocks: readonly Said[], proof: string, open?: boolean): string;
  /** Its last words. `after` is the number of blocks before them. */
  ends(how: Ending, after: number, tokens?: Tokens): string;
  /** A line that was damaged on its way. */
  broken: string;
  /** Status and body of a refused request. */
  refuses(why: Refusal): { status: number; body: object };
  /** What the provider reads in a request. It refuses, by throwing, what its API refuses; `proof` is its own signature. */
  hears(body: any, proof: string): Heard[];
  /** Where the API wants the images of a tool's result. */
  resultImages: "inside" | "behind";
}

/** A request as a conversation, in which one provider's is like another's. Ids are left out: they were checked. */
export type Heard =
  | { user: string }
  | { image: string }
  | { assistant: string }
  | { thinking: string }
  | { call: string; with: unknown }
  /** `of`: the place of its call among all calls. */
  | { result: string; of: number; images: string[] };

/** Refuses a request, as a provider does. */
export function refuse(unless: unknown, why: string, what?: unknown): asserts unless {
  if (!unless) throw new Error(`refused: ${why}${what === undefined ? "" : `: ${JSON.stringify(what)}`}`);
}

/** Which calls were made, and which are not answered yet. */
export class Calls {
  readonly #ids: string[] = [];
  #open: string[] = [];
  readonly #maxLength: number;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  made(id: unknown, name: unknown, input: unknown): Heard {
    refuse(typeof id === "string" && /^[\w-]+$/.test(id) && id.length <= this.#maxLength, "the id of a call", id);
    refuse(!this.#ids.includes(id), "an id used twice", id);
    refuse(typeof name === "string" && /^[\w-]{1,64}$/.test(name), "the name of a call", name);
    refuse(typeof input === "object" && input !== null && !Array.isArray(input), "arguments that are no object", input);
    this.#ids.push(id);
    this.#open.push(id);
    return { call: name, with: input };
  }

  /** The place of the call that is answered. */
  answered(id: string): number {
    refuse(this.#open.includes(id), "a result without a call", id);
    this.#open = this.#open.filter((open) => open !== id);
    return this.#ids.indexOf(id);
  }

  /** Something else than a result follows. */
  over(): void {
    refuse(this.#open.length === 0, "calls without a result", this.#open);
  }
}

/** OpenAI's rules for the schema of a function's parameters. */
export function parametersOf(tool: any): void {
  const { parameters } = tool.function ?? tool;
  refuse(parameters?.type === "object" && "properties" in parameters, "a schema that is no object with properties", parameters);
}

export function filled(text: unknown): string {
  refuse(typeof text === "string" && text.trim() !== "", "an empty text", text);
  return text;
}
