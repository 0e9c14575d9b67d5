/** How a tool call looks in a client (SPEC 10.2). What a host's values hold is never trusted to be readable. */
import { isAbsolute, resolve, win32 } from "node:path";
import type { Diff, ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import type { AgentTool } from "../../tool.js";

/** What kind a tool is by its name, if it does not say so itself. The first match counts. */
const KINDS: readonly [ToolKind, RegExp][] = [
  ["delete", /\b(delete|remove|unlink|rm\b)/],
  ["move", /\b(move|rename|mv\b)/],
  ["edit", /\b(edit|write|patch|replace|insert|create|append|update)/],
  ["search", /\b(grep|find|glob\b|lookup|query)|search/],
  ["fetch", /\b(http|url|web|brows|download)|fetch/],
  ["execute", /\b(exec|run|bash|shell|command|terminal|eval|calculate)/],
  ["think", /\b(think|plan\b|reason)/],
  ["read", /\b(read|view|open|list|show|cat\b|get|count|ls\b)/],
  ["other", /^/],
];

const PATHS = ["path", "folder", "file_path", "filePath", "file", "filename", "directory", "dir"];
const OLD_TEXTS = ["oldText", "old_text", "oldString", "old_string"];
const NEW_TEXTS = ["newText", "new_text", "newString", "new_string"];
/** What arguments call the whole text of a file. */
const CONTENTS = ["content", "contents"];

/** So many characters of an update's texts are shown: the model reads the whole of it, a client need not. */
const MAX_SHOWN_TEXT = 100_000;
/** So many characters of changes, of arguments and of images: a client ends the connection over a message of 32 MB. */
const MAX_SHOWN_DATA = 1_000_000;
const MAX_SHOWN_IMAGES = 10_000_000;
const MAX_LINE = 2 ** 32 - 1;

export interface CardLook {
  title: string;
  kind: ToolKind;
}

export function lookOf(toolName: string, tools: Iterable<AgentTool> | undefined): CardLook {
  const tool = toolNamed(toolName, tools);
  const words = toolName
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(/[^\p{L}\d]+/gu, " ")
    .toLowerCase();
  const own = KINDS.find(([kind]) => kind === tool?.kind);
  const [kind] = own ?? (KINDS.find(([, name]) => name.test(words)) as [ToolKind, RegExp]);
  return { title: firstText(tool, ["label"]) ?? (toolName || "(unnamed tool)"), kind };
}

function toolNamed(name: string, tools: Iterable<AgentTool> = []): AgentTool | undefined {
  for (const tool of tools) if (tool.name === name) return tool;
  return undefined;
}

/** The files the arguments name, as absolute paths. Without an absolute `cwd` relative ones are left out. */
export function locationsOf(args: unknown, cwd: string | undefined): ToolCallLocation[] {
  const path = absolute(firstText(args, PATHS), cwd);
  const line = read(args, "line");
  if (path === undefined) return [];
  return [{ path, ...(isLine(line) ? { line } : {}) }];
}

function isLine(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_LINE;
}

type DiffContent = Diff & { type: "diff" };

/** The changes that details speak of: paths, each with a new and perhaps an old text. */
export function diffsOf(value: unknown, cwd: string | undefined, newTexts: readonly string[] = NEW_TEXTS): DiffContent[] {
  let room = MAX_SHOWN_DATA;
  return parts(value).flatMap((part) => {
    const path = absolute(firstText(part, PATHS) ?? firstText(value, PATHS), cwd);
    const newText = firstText(part, newTexts, true);
    if (path === undefined || newText === undefined) return [];
    const oldText = firstText(part, OLD_TEXTS, true) ?? null;
    room -= newText.length + (oldText?.length ?? 0);
    return room < 0 ? [] : [{ type: "diff" as const, path, oldText, newText }];
  });
}

/** The changes that the arguments of an edit ask for. */
export function diffsOfArguments(args: unknown, cwd: string | undefined): DiffContent[] {
  return diffsOf(args, cwd, [...NEW_TEXTS, ...CONTENTS]);
}

/** The parts of a value that may each be a change. */
function parts(value: unknown): readonly unknown[] {
  for (const key of ["diffs", "edits"]) {
    const list = listOf(read(value, key));
    if (list) return list;
  }
  const diff = read(value, "diff");
  return [typeof diff === "object" && diff !== null ? diff : value];
}

/** A result's blocks, or a text; whatever else a progress report holds is left out. */
export function contentOf(result: unknown): ToolCallContent[] {
  const content = typeof result === "string" ? result : read(result, "content");
  if (typeof content === "string") return textContent(content);
  const room = { text: MAX_SHOWN_TEXT, images: MAX_SHOWN_IMAGES };
  return (listOf(content) ?? []).flatMap((block) => blockContent(block, room));
}

interface Room {
  text: number;
  images: number;
}

export function textContent(text: string, room: Pick<Room, "text"> = { text: MAX_SHOWN_TEXT }): ToolCallContent[] {
  if (text === "") return [];
  // never inside a surrogate pair
  const shown = text.length > room.text ? text.slice(0, room.text).replace(/[\ud800-\udbff]$/, "") : text;
  const cut = text.length - shown.length;
  room.text = cut > 0 ? 0 : room.text - shown.length;
  const note = cut > 0 ? `${shown && "\n"}[${cut} more characters are not shown]` : "";
  return [{ type: "content", content: { type: "text", text: shown + note } }];
}

function blockContent(block: unknown, room: Room): ToolCallContent[] {
  const type = read(block, "type");
  const text = read(block, "text");
  if (type === "text" && typeof text === "string") return textContent(text, room);
  const data = read(block, "data");
  const mimeType = read(block, "mimeType");
  if (type !== "image" || typeof data !== "string" || typeof mimeType !== "string") return [];
  if (data.length > room.images) return textContent("[an image is too large to be shown]");
  room.images -= data.length;
  return [{ type: "content", content: { type: "image", data, mimeType } }];
}

/** A copy that can be sent; undefined when JSON cannot hold the value, or it is too large. */
export function jsonCopy(value: unknown): unknown {
  try {
    const json = JSON.stringify(value);
    return json.length > MAX_SHOWN_DATA ? undefined : JSON.parse(json);
  } catch {
    return undefined;
  }
}

function firstText(value: unknown, keys: readonly string[], allowEmpty = false): string | undefined {
  for (const key of keys) {
    const text = read(value, key);
    if (typeof text === "string" && (allowEmpty || text !== "")) return text;
  }
  return undefined;
}

/** A property of a host's value, whose getter may throw. */
export function read(value: unknown, key: string): unknown {
  try {
    return (Object(value) as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

function listOf(value: unknown): unknown[] | undefined {
  try {
    return Array.isArray(value) ? [...value] : undefined;
  } catch {
    return undefined;
  }
}

/** On this system or another: a client's files may be elsewhere. */
export function isAbsoluteAnywhere(path: string): boolean {
  return win32.isAbsolute(path); // "/a" too
}

function absolute(path: string | undefined, cwd = ""): string | undefined {
  if (path === undefined || /^[a-z][\w+.-]+:\/\//i.test(path)) return undefined;
  return isAbsolute(path) || isAbsolute(cwd) ? resolve(cwd, path) : undefined;
}
