/** Files below one root folder, and nothing outside of it. */
import { realpathSync, type Stats } from "node:fs";
import { lstat, open, readdir, readFile, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { cutAt } from "./wording.js";

const IGNORED_FOLDERS: ReadonlySet<string> = new Set(["node_modules", ".git", "dist", "coverage"]);
const MAX_FILES = 20_000;
const MAX_TEXT_BYTES = 5_000_000;
const BYTES_CHECKED_FOR_BINARY = 8192;

interface WorkspaceFile {
  /** Relative to the root, with forward slashes. */
  path: string;
  bytes: number;
}

export interface FileListing {
  files: WorkspaceFile[];
  /** What is missing from the list, and why. */
  notices: string[];
}

export class WorkspaceFiles {
  readonly #root: string;

  /** Throws if there is no such folder. */
  constructor(root: string) {
    this.#root = realpathSync(root);
  }

  /** The absolute path of an existing file or folder inside the root, symbolic links resolved. */
  async locate(path: string): Promise<{ absolute: string; stats: Stats }> {
    const wanted = resolve(this.#root, path);
    if (!this.#isInside(wanted)) throw new Error(`"${path}" is outside the workspace; expected a path inside ${this.#root}.`);
    const absolute = await realpath(wanted).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT" || error.code === "ENOTDIR") throw new Error(`"${path}" does not exist in the workspace.`);
      throw error;
    });
    if (!this.#isInside(absolute)) {
      throw new Error(`"${path}" leads outside the workspace through a symbolic link; expected a path inside ${this.#root}.`);
    }
    return { absolute, stats: await stat(absolute) };
  }

  /** The absolute path of a regular file. */
  async locateFile(path: string): Promise<{ absolute: string; bytes: number }> {
    const { absolute, stats } = await this.locate(path);
    if (stats.isDirectory()) throw new Error(`"${path}" is a folder; expected a file.`);
    if (!stats.isFile()) throw new Error(`"${path}" is not a regular file.`);
    return { absolute, bytes: stats.size };
  }

  /** The text of a file that is not binary and not huge. */
  async readText(path: string, signal: AbortSignal, maxBytes = MAX_TEXT_BYTES): Promise<{ text: string; bytes: number }> {
    const { absolute, bytes } = await this.locateFile(path);
    if (bytes > maxBytes) throw new Error(`"${path}" has ${bytes} bytes; at most ${maxBytes} can be read.`);
    if (await isBinary(absolute)) throw new Error(`"${path}" is a binary file; expected text.`);
    return { text: await readFile(absolute, { encoding: "utf8", signal }), bytes };
  }

  /** All regular files below a folder, by path. Symbolic links are not followed. A file gives itself. */
  async list(folder: string, signal: AbortSignal): Promise<FileListing> {
    const { absolute, stats } = await this.locate(folder);
    if (stats.isFile()) return { files: [{ path: this.#relative(absolute), bytes: stats.size }], notices: [] };
    const listing: FileListing = { files: [], notices: [] };
    await this.#collect(absolute, listing, signal);
    if (listing.files.length === MAX_FILES) listing.notices.push(`The search stopped after ${MAX_FILES} files.`);
    return listing;
  }

  async #collect(folder: string, listing: FileListing, signal: AbortSignal): Promise<void> {
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      listing.notices.push(`The folder ${this.#relative(folder)} could not be read (${error.code}).`);
      return [];
    });
    entries.sort((one, other) => (one.name < other.name ? -1 : 1));
    for (const entry of entries) {
      signal.throwIfAborted();
      if (listing.files.length === MAX_FILES) return;
      const absolute = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!IGNORED_FOLDERS.has(entry.name)) await this.#collect(absolute, listing, signal);
      } else if (entry.isFile()) {
        const bytes = await lstat(absolute).then(
          ({ size }) => size,
          () => undefined,
        );
        if (bytes !== undefined) listing.files.push({ path: this.#relative(absolute), bytes });
      }
    }
  }

  #isInside(absolute: string): boolean {
    const path = relative(this.#root, absolute);
    return path !== ".." && !path.startsWith(`..${sep}`) && !isAbsolute(path);
  }

  #relative(absolute: string): string {
    return relative(this.#root, absolute).split(sep).join("/") || ".";
  }
}

/** A NUL byte near the beginning is what text files do not have. */
export async function isBinary(absolute: string): Promise<boolean> {
  const file = await open(absolute);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(BYTES_CHECKED_FOR_BINARY), 0, BYTES_CHECKED_FOR_BINARY, 0);
    return buffer.subarray(0, bytesRead).includes(0);
  } finally {
    await file.close();
  }
}

/** A final line break ends the last line, it does not begin another one. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** As many whole lines as fit into `maxCharacters`; a first line that is too long by itself is cut. */
export function fitLines(lines: string[], maxCharacters: number): { shown: string[]; cutInside: boolean } {
  let characters = 0;
  for (let count = 0; count < lines.length; count++) {
    characters += (lines[count] as string).length + 1;
    if (characters <= maxCharacters) continue;
    if (count > 0) return { shown: lines.slice(0, count), cutInside: false };
    return { shown: [cutAt(lines[0] as string, maxCharacters)], cutInside: true };
  }
  return { shown: lines, cutInside: false };
}
