/** Tools over the workspace. Their words are those of ../../workspace-tools.ts, which the offline model reads. */
import { type AgentTool, defineTool } from "turnloop";
import { Type } from "turnloop/schema";
import { counted } from "../../wording.js";
import { sizeOf, type Workspace } from "./workspace.js";

const Path = Type.String({ minLength: 1, description: "A file of the workspace" });
const Folder = Type.String({ minLength: 1, default: ".", description: "A folder of the workspace" });

export function readingTools(workspace: Workspace): AgentTool[] {
  return [listFiles(workspace), readFile(workspace), searchText(workspace), countLines(workspace)];
}

export function writingTools(workspace: Workspace): AgentTool[] {
  return [writeFile(workspace), deleteFile(workspace)];
}

function listFiles(workspace: Workspace): AgentTool {
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
    execute(_id, { folder = ".", order }) {
      const files = workspace.list(folder);
      if (order === "largest") files.sort((one, other) => other.bytes - one.bytes);
      if (order === "smallest") files.sort((one, other) => one.bytes - other.bytes);
      const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
      const rows = files.map((file) => `${file.path} (${counted(file.bytes, "byte")})`);
      return [`${folder}: ${counted(files.length, "file")}, ${counted(bytes, "byte")}`, ...rows].join("\n");
    },
  });
}

function readFile(workspace: Workspace): AgentTool {
  return defineTool({
    name: "read_file",
    label: "Read file",
    kind: "read",
    description: "Reads a text file, or lines of it.",
    parameters: Type.Object({
      path: Path,
      firstLine: Type.Optional(Type.Integer({ minimum: 1, description: "Where to begin; the first line is 1" })),
      lineCount: Type.Optional(Type.Integer({ minimum: 1, description: "How many lines; default: all" })),
    }),
    execute(_id, { path, firstLine = 1, lineCount = Number.POSITIVE_INFINITY }) {
      const file = workspace.read(path);
      const { length } = file.lines;
      if (length === 0) return `${path}: ${sizeOf(file)}`;
      if (firstLine > length) throw new Error(`"${path}" has ${counted(length, "line")}; got ${firstLine} as firstLine.`);
      const shown = file.lines.slice(firstLine - 1, firstLine - 1 + lineCount);
      return [`${path}: ${sizeOf(file)}; lines ${firstLine}-${firstLine - 1 + shown.length}:`, ...shown].join("\n");
    },
  });
}

function searchText(workspace: Workspace): AgentTool {
  return defineTool({
    name: "search_text",
    label: "Search text",
    kind: "search",
    description: "Finds the lines that contain a literal text.",
    parameters: Type.Object({
      text: Type.String({ minLength: 1, description: "What a line has to contain, word for word" }),
      folder: Type.Optional({ ...Folder, description: "A folder or a single file of the workspace" }),
      matchCase: Type.Optional(Type.Boolean({ default: false, description: "Whether upper and lower case differ" })),
    }),
    execute(_id, { text, folder = ".", matchCase = false }) {
      const { matches, found, searched } = workspace.search(text, folder, matchCase);
      const where = `${counted(matches.length, "line")} in ${counted(found, "file")} of ${counted(searched, "file")} searched`;
      return [`${folder}: ${where}`, ...matches].join("\n");
    },
  });
}

function countLines(workspace: Workspace): AgentTool {
  return defineTool({
    name: "count_lines",
    label: "Count lines",
    kind: "read",
    description: "Counts the lines of a text file.",
    parameters: Type.Object({ path: Path }),
    execute: (_id, { path }) => `${path}: ${sizeOf(workspace.read(path))}`,
  });
}

function writeFile(workspace: Workspace): AgentTool {
  return defineTool({
    name: "write_file",
    label: "Write file",
    kind: "edit",
    description: "Writes a text file; one of the same name is replaced. The user is asked first.",
    parameters: Type.Object({ path: Path, text: Type.String({ description: "All of the file's text" }) }),
    execute(_id, { path, text }) {
      const isNew = workspace.write(path, text);
      return `${isNew ? "Created" : "Replaced"} ${path}: ${sizeOf(workspace.read(path))}`;
    },
  });
}

function deleteFile(workspace: Workspace): AgentTool {
  return defineTool({
    name: "delete_file",
    label: "Delete file",
    kind: "delete",
    description: "Deletes a file. The user is asked first.",
    parameters: Type.Object({ path: Path }),
    execute(_id, { path }) {
      workspace.delete(path);
      return `Deleted ${path}`;
    },
  });
}
