/** Tools that look at the files of one folder, and a calculator. None of them changes anything. */
import { createReadStream } from "node:fs";
import { type AgentTool, defineTool } from "turnloop";
import { Type } from "turnloop/schema";
import { evaluate, formatNumber } from "./calculator.js";
import { counted, shortened } from "./wording.js";
import { fitLines, isBinary, splitLines, WorkspaceFiles } from "./workspace-files.js";

const MAX_FILES_SHOWN = 500;
const MAX_CHARACTERS_READ = 20_000;
const MAX_MATCHES_SHOWN = 100;
const MAX_MATCH_LENGTH = 200;
const MAX_BYTES_SEARCHED = 1_000_000;
const FILES_BETWEEN_UPDATES = 100;

/** The tools over `root`. A path outside of it is refused, whether it gets there by "..", as absolute path or by a symbolic link. */
export function workspaceTools(root: string): AgentTool[] {
  const workspace = new WorkspaceFiles(root);
  return [listFiles(workspace), readFile(workspace), searchText(workspace), countLines(workspace), calculate];
}

const Path = Type.String({ minLength: 1, description: "A file, relative to the workspace" });
const Folder = Type.String({ minLength: 1, default: ".", description: "A folder, relative to the workspace" });

function listFiles(workspace: WorkspaceFiles): AgentTool {
  return defineTool({
    name: "list_files",
    label: "List files",
    kind: "read",
    description: "Lists the files of a folder and of all folders in it, with their sizes in bytes.",
    parameters: Type.Object({
      folder: Type.Optional(Folder),
      order: Type.Optional(
        Type.Union([Type.Literal("path"), Type.Literal("largest"), Type.Literal("smallest")], {
          default: "path",
          description: "What comes first",
        }),
      ),
    }),
    async execute(_id, { folder = ".", order }, signal) {
      const { files, notices } = await workspace.list(folder, signal);
      if (order === "largest") files.sort((one, other) => other.bytes - one.bytes);
      if (order === "smallest") files.sort((one, other) => one.bytes - other.bytes);
      const allBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
      const hidden = files.length - MAX_FILES_SHOWN;
      if (hidden > 0) notices.unshift(`${counted(hidden, "more file")} not shown; list a folder further down.`);
      return [
        `${folder}: ${counted(files.length, "file")}, ${counted(allBytes, "byte")}`,
        ...files.slice(0, MAX_FILES_SHOWN).map(({ path, bytes }) => `${path} (${counted(bytes, "byte")})`),
        ...notices.map((notice) => `[${notice}]`),
      ].join("\n");
    },
  });
}

function readFile(workspace: WorkspaceFiles): AgentTool {
  return defineTool({
    name: "read_file",
    label: "Read file",
    kind: "read",
    description: `Reads a text file, or lines of it, up to ${MAX_CHARACTERS_READ} characters.`,
    parameters: Type.Object({
      path: Path,
      firstLine: Type.Optional(Type.Integer({ minimum: 1, description: "Where to begin; the first line is 1" })),
      lineCount: Type.Optional(Type.Integer({ minimum: 1, description: "How many lines; default: all" })),
    }),
    async execute(_id, { path, firstLine = 1, lineCount = Number.POSITIVE_INFINITY }, signal) {
      const { text, bytes } = await workspace.readText(path, signal);
      const lines = splitLines(text);
      const size = `${path}: ${counted(lines.length, "line")}, ${counted(bytes, "byte")}`;
      if (lines.length === 0) return size;
      if (firstLine > lines.length) throw new Error(`"${path}" has ${counted(lines.length, "line")}; got ${firstLine} as firstLine.`);
      const wanted = lines.slice(firstLine - 1, firstLine - 1 + lineCount);
      const { shown, cutInside } = fitLines(wanted, MAX_CHARACTERS_READ);
      const lastLine = firstLine - 1 + shown.length;
      const output = [`${size}; lines ${firstLine}-${lastLine}:`, ...shown];
      if (cutInside) output.push(`[Line ${firstLine} is cut after ${MAX_CHARACTERS_READ} characters.]`);
      else if (shown.length < wanted.length) {
        output.push(`[Cut after ${MAX_CHARACTERS_READ} characters; go on with firstLine ${lastLine + 1}.]`);
      }
      return output.join("\n");
    },
  });
}

function searchText(workspace: WorkspaceFiles): AgentTool {
  return defineTool({
    name: "search_text",
    label: "Search text",
    kind: "search",
    description: `Finds the lines that contain a literal text. Skips binary files and files of more than ${MAX_BYTES_SEARCHED} bytes.`,
    parameters: Type.Object({
      text: Type.String({ minLength: 1, description: "What a line has to contain, word for word" }),
      folder: Type.Optional({ ...Folder, description: "A folder or a single file, relative to the workspace" }),
      matchCase: Type.Optional(Type.Boolean({ default: false, description: "Whether upper and lower case differ" })),
    }),
    async execute(_id, { text, folder = ".", matchCase = false }, signal, onUpdate) {
      const { files, notices } = await workspace.list(folder, signal);
      const normalized = (line: string): string => (matchCase ? line : line.toLowerCase());
      const wanted = normalized(text);
      const matches: string[] = [];
      const filesWithMatches = new Set<string>();
      const skipped: string[] = [];
      for (const [index, { path, bytes }] of files.entries()) {
        if (index % FILES_BETWEEN_UPDATES === 0) onUpdate(progress(index, files.length, matches.length));
        const content = bytes > MAX_BYTES_SEARCHED ? undefined : await textOrNothing(workspace, path, signal);
        if (content === undefined) skipped.push(path);
        for (const [line, lineText] of splitLines(content ?? "").entries()) {
          if (!normalized(lineText).includes(wanted)) continue;
          filesWithMatches.add(path);
          matches.push(`${path}:${line + 1}: ${shortened(lineText.trim(), MAX_MATCH_LENGTH)}`);
        }
      }
      if (skipped.length > 0) notices.unshift(`${counted(skipped.length, "file")} skipped: binary, too large or unreadable.`);
      const hidden = matches.length - MAX_MATCHES_SHOWN;
      if (hidden > 0) notices.unshift(`${counted(hidden, "more line")} not shown; search a folder further down.`);
      const searched = counted(files.length - skipped.length, "file");
      return [
        `${folder}: ${counted(matches.length, "line")} in ${counted(filesWithMatches.size, "file")} of ${searched} searched`,
        ...matches.slice(0, MAX_MATCHES_SHOWN),
        ...notices.map((notice) => `[${notice}]`),
      ].join("\n");
    },
  });
}

function progress(searched: number, files: number, matches: number): { content: { type: "text"; text: string }[] } {
  return { content: [{ type: "text", text: `${searched} of ${counted(files, "file")} searched, ${counted(matches, "line")} found` }] };
}

/** Undefined for a file that is not text or cannot be read: a search goes on without it. */
async function textOrNothing(workspace: WorkspaceFiles, path: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return (await workspace.readText(path, signal)).text;
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

function countLines(workspace: WorkspaceFiles): AgentTool {
  return defineTool({
    name: "count_lines",
    label: "Count lines",
    kind: "read",
    description: "Counts the lines of a text file of any size.",
    parameters: Type.Object({ path: Path }),
    async execute(_id, { path }, signal) {
      const { absolute, bytes } = await workspace.locateFile(path);
      if (await isBinary(absolute)) throw new Error(`"${path}" is a binary file; expected text.`);
      let lines = 0;
      let lineOpen = false;
      for await (const chunk of createReadStream(absolute, { signal })) {
        for (const byte of chunk as Buffer) if (byte === LINE_FEED) lines++;
        lineOpen = (chunk as Buffer).at(-1) !== LINE_FEED;
      }
      return `${path}: ${counted(lineOpen ? lines + 1 : lines, "line")}, ${counted(bytes, "byte")}`;
    },
  });
}

const LINE_FEED = 10;

const calculate = defineTool({
  name: "calculate",
  label: "Calculate",
  kind: "think",
  description: "Works out arithmetic with + - * / % ^, parentheses and decimals.",
  parameters: Type.Object({ expression: Type.String({ description: "For example 12 * (3 + 4)" }) }),
  execute: (_id, { expression }) => `${expression.trim()} = ${formatNumber(evaluate(expression))}`,
});
