/** The line the user types on, below an output that goes on. */
import { createInterface, type Interface, type Key } from "node:readline";
import { Writable } from "node:stream";
import { ERASE_LINE } from "./wording.js";

const PROMPT = "> ";
/** These do something, but put nothing on the line. */
const SILENT_KEYS = new Set(["return", "enter", "backspace", "delete", "escape", "c", "d", "z", "l"]);

interface TerminalLineOptions {
  onLine(line: string): void;
  onInterrupt(): void;
  /** Nothing more can be typed. */
  onEnd(): void;
}

/** What is written to `output` while somebody types waits until the line is complete or erased: neither tears the other apart. */
export class TerminalLine {
  readonly output: Writable;
  readonly #reader: Interface;
  #isWaiting = false;
  #isTyping = false;
  #held: string[] = [];
  /** Where the output stands when nobody types. */
  #isMidLine = false;
  /** That line is one that is written over again and again: typing takes its place. */
  #isPassing = false;
  /** The output's line was ended for the sake of the typing; its writer does not know. */
  #isBroken = false;

  constructor({ onLine, onInterrupt, onEnd }: TerminalLineOptions) {
    this.output = new Writable({
      decodeStrings: false,
      write: (chunk, _encoding, done) => {
        this.#write(String(chunk));
        done();
      },
    });
    this.#reader = createInterface({ input: process.stdin, output: process.stdout, prompt: PROMPT });
    this.#reader.on("line", (line) => {
      this.#isMidLine = false;
      this.#isWaiting = false;
      this.#release();
      onLine(line);
    });
    this.#reader.on("SIGINT", onInterrupt);
    this.#reader.on("close", () => {
      if (this.#isWaiting || this.#isTyping) process.stdout.write("\n");
      this.#release();
      onEnd();
    });
    process.stdin.prependListener("keypress", this.#beforeKey);
    process.stdin.on("keypress", this.#afterKey);
  }

  /** Shows that a line is expected; one can be typed at any time. */
  prompt(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    if (this.#isTyping) return;
    process.stdout.write(this.#isMidLine ? "\n\n" : "\n");
    this.#isMidLine = false;
    this.#reader.prompt();
  }

  close(): void {
    process.stdin.off("keypress", this.#beforeKey);
    process.stdin.off("keypress", this.#afterKey);
    this.#reader.close();
  }

  #write(text: string): void {
    if (this.#isTyping) {
      this.#held.push(text);
      return;
    }
    if (text === "") return;
    const rest = this.#isBroken && text.startsWith("\n") ? text.slice(1) : text;
    process.stdout.write(rest);
    this.#isBroken = false;
    this.#isMidLine = !text.endsWith("\n");
    this.#isPassing = text.startsWith(ERASE_LINE);
  }

  readonly #beforeKey = (_text: string | undefined, { name, ctrl }: Key): void => {
    if (this.#isTyping || (SILENT_KEYS.has(name ?? "") && (ctrl || (name ?? "").length > 1))) return;
    this.#isTyping = true;
    if (this.#isWaiting) return;
    this.#isBroken = this.#isMidLine && !this.#isPassing;
    if (this.#isMidLine) process.stdout.write(this.#isPassing ? ERASE_LINE : "\n");
    this.#isMidLine = false;
    this.#reader.prompt();
  };

  readonly #afterKey = (): void => {
    if (!this.#isTyping || this.#reader.line !== "") return;
    const mustShow = this.#held.length > 0 || !this.#isWaiting;
    if (mustShow) process.stdout.write(process.env.TERM === "dumb" ? "\n" : ERASE_LINE);
    this.#release();
    if (!mustShow || !this.#isWaiting) return;
    this.#isWaiting = false;
    this.prompt();
  };

  #release(): void {
    this.#isTyping = false;
    for (const text of this.#held.splice(0)) this.#write(text);
  }
}
