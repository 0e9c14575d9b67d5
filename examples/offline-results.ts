/** How the offline model reads what the tools of workspace-tools.ts wrote. Runs in a browser. */

export interface ListedFile {
  path: string;
  bytes: number;
}

/** What read_file or count_lines said about a file. */
export interface FileContent {
  /** "12 lines, 340 bytes" */
  size: string;
  allLines: number;
  /** The lines that were read. */
  lines: string[];
  /** The lines were too long to be read to their end. */
  cut: boolean;
}

export interface SearchResult {
  lines: number;
  files: number;
  searchedFiles: number;
  matches: string[];
}

/** The entries of list_files, in its order. */
export function listedFiles(output: string): ListedFile[] {
  const entries = output.split("\n").map((line) => /^(.+) \((\d+) bytes?\)$/.exec(line));
  return entries.flatMap((entry) => (entry ? [{ path: entry[1] as string, bytes: Number(entry[2]) }] : []));
}

/** "3 files, 120 bytes", if list_files said so. */
export function listedTotal(output: string): { files: number; size: string } | undefined {
  const [, size, files] = /^.*: ((\d+) files?, \d+ bytes?)$/m.exec(output) ?? [];
  return size === undefined ? undefined : { files: Number(files), size };
}

export function fileContent(output: string): FileContent {
  const [summary = "", ...rest] = output.split("\n");
  const [, size, allLines, first, last] = /^.*: ((\d+) lines?, \d+ bytes?)(?:; lines (\d+)-(\d+):)?$/.exec(summary) ?? [];
  if (size === undefined) return { size: "an unknown size", allLines: rest.length + 1, lines: [summary, ...rest], cut: false };
  const lines = first === undefined ? [] : rest.slice(0, Number(last) - Number(first) + 1);
  return { size, allLines: Number(allLines), lines, cut: rest.length > lines.length };
}

export function searchResult(output: string): SearchResult | undefined {
  const [summary = "", ...rest] = output.split("\n");
  const numbers = /: (\d+) lines? in (\d+) files? of (\d+) files? searched$/.exec(summary)?.slice(1).map(Number);
  if (!numbers) return undefined;
  const [lines, files, searchedFiles] = numbers as [number, number, number];
  return { lines, files, searchedFiles, matches: rest.filter((line) => /^.+?:\d+: /.test(line)) };
}

/** What a tool says is missing from its output, except for entries that were counted but not shown. */
export function noticesIn(output: string): string[] {
  return output.split("\n").filter((line) => /^\[[^\]]*\]$/.test(line) && !line.includes("not shown"));
}
