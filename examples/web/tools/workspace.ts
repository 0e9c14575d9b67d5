/** Files that live in the page: what a conversation changes is gone with a reload. */
import { counted, shortened } from "../../wording.js";

export interface ListedFile {
  path: string;
  bytes: number;
}

export class Workspace {
  readonly #files: Map<string, string>;

  constructor(files: Readonly<Record<string, string>>) {
    this.#files = new Map(Object.entries(files).map(([path, text]) => [normalized(path), text]));
  }

  /** The files of a folder and of all folders in it, by path; a file is a folder of one. Throws if there is no such folder. */
  list(folder: string): ListedFile[] {
    const root = normalized(folder);
    const paths = [...this.#files.keys()].filter((path) => root === "" || path === root || path.startsWith(`${root}/`)).sort();
    if (paths.length === 0 && root !== "") throw missing(folder);
    return paths.map((path) => ({ path, bytes: bytesOf(this.#files.get(path) as string) }));
  }

  /** Throws if there is no such file. */
  read(path: string): { text: string; lines: string[]; bytes: number } {
    const wanted = normalized(path);
    const text = this.#files.get(wanted);
    if (text !== undefined) return { text, lines: linesOf(text), bytes: bytesOf(text) };
    if ([...this.#files.keys()].some((other) => other.startsWith(`${wanted}/`))) throw new Error(`"${path}" is a folder; expected a file.`);
    throw missing(path);
  }

  /** True if the file is new. */
  write(path: string, text: string): boolean {
    const wanted = normalized(path);
    if (wanted === "") throw new Error(`"${path}" is a folder; expected a file.`);
    const isNew = !this.#files.has(wanted);
    this.#files.set(wanted, text);
    return isNew;
  }

  /** Throws if there is no such file. */
  delete(path: string): void {
    this.read(path);
    this.#files.delete(normalized(path));
  }

  /** The lines that hold the text, as `path:line: text`. */
  search(text: string, folder: string, matchCase: boolean): { matches: string[]; searched: number; found: number } {
    const plain = (line: string): string => (matchCase ? line : line.toLowerCase());
    const files = this.list(folder);
    const hits = files.map(({ path }) =>
      this.read(path).lines.flatMap((line, index) =>
        plain(line).includes(plain(text)) ? [`${path}:${index + 1}: ${shortened(line.trim(), 200)}`] : [],
      ),
    );
    return { matches: hits.flat(), searched: files.length, found: hits.filter((lines) => lines.length > 0).length };
  }
}

/** "12 lines, 340 bytes" */
export function sizeOf({ lines, bytes }: { lines: string[]; bytes: number }): string {
  return `${counted(lines.length, "line")}, ${counted(bytes, "byte")}`;
}

function normalized(path: string): string {
  return path
    .split("/")
    .filter((part) => part !== "" && part !== ".")
    .join("/");
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

function missing(path: string): Error {
  return new Error(`"${path}" does not exist in the workspace.`);
}
