/** How a tool call looks in a client (SPEC 10.2). */
import { resolve } from "node:path";
import type { Diff, ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk";
import type { AgentTool } from "../../tool.js";

/** What kind a tool is by its name, if it does not say so itself. The first match counts. */
const KINDS: readonly [ToolKind, RegExp][] = [
  ["delete", /delete|remove|unlink|\brm\b/],
  ["move", /move|rename|\bmv\b/],
  ["edit", /edit|write|patch|replace|insert|create|append|update/],
  ["search", /search|grep|find|glob|lookup|query/],
  ["fetch", /fetch|http|url|web|browse|download/],
  ["execute", /execute|exec|run|bash|shell|command|terminal|eval|calculate/],
  ["think", /think|plan|reason/],
  ["read", /read|view|open|list|show|cat\b|get|count|\bls\b/],
];

const PATHS = ["path", "folder", "file_path", "filePath", "file", "filename", "directory", "dir"];
const OLD_TEXTS = ["oldText", "old_text", "oldString", "old_string"];
const NEW_TEXTS = ["newText", "new_text", "newString", "new_string"];

/** So many characters of a text are shown: the model reads the whole of it, a client need not. */
const MAX_SHOWN_TEXT = 100_000;

export interface CardLook {
  title: string;
  kind: ToolKind;
}

export function lookOf(toolName: string, tools: Iterable<AgentTool> | undefined): CardLook {
  const tool = toolNamed(toolName, tools);
  const words = toolName
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(/[_-]/g, " ")
    .toLowerCase();
  return {
    title: tool?.label || toolName || "(unnamed tool)",
    kind: tool?.kind ?? KINDS.find(([, name]) => name.test(words))?.[0] ?? "other",
  };
}

function toolNamed(name: string, tools: Iterable<AgentTool> = []): AgentTool | undefined {
  for (const tool of tools) if (tool.name === name) return tool;
  return undefined;
}

/** The files the arguments name, as absolute paths. Without `cwd` relative ones are left out. */
export function locationsOf(args: unknown, cwd: string | undefined): ToolCallLocation[] {
  const { line } = Object(args) as { line?: unknown };
  const path = absolute(firstText(args, PATHS), cwd);
  if (path === undefined) return [];
  return [{ path, ...(Number.isInteger(line) && (line as number) >= 0 ? { line: line as number } : {}) }];
}

/** The change that arguments or details speak of: a path with a new and perhaps an old text. */
export function diffsOf(value: unknown, cwd: string | undefined): (Diff & { type: "diff" })[] {
  const { diff, diffs } = Object(value) as { diff?: unknown; diffs?: unknown };
  const candidates = Array.isArray(diffs) ? diffs : [typeof diff === "object" && diff !== null ? diff : value];
  return candidates.flatMap((candidate) => {
    const path = absolute(firstText(candidate, PATHS), cwd);
    const newText = firstText(candidate, NEW_TEXTS, true);
    if (path === undefined || newText === undefined) return [];
    return [{ type: "diff" as const, path, oldText: firstText(candidate, OLD_TEXTS, true) ?? null, newText }];
  });
}

/** A result's blocks; whatever else a progress report holds is left out. */
export function contentOf(result: unknown): ToolCallContent[] {
  const blocks: unknown = (Object(result) as { content?: unknown }).content;
  if (typeof blocks === "string") return textContent(blocks);
  return Array.isArray(blocks) ? blocks.flatMap(blockContent) : [];
}

export function textContent(text: string): ToolCallContent[] {
  const cut = text.length - MAX_SHOWN_TEXT;
  const shown = cut > 0 ? `${text.slice(0, MAX_SHOWN_TEXT)}\n[${cut} more characters are not shown]` : text;
  return shown === "" ? [] : [{ type: "content", content: { type: "text", text: shown } }];
}

function blockContent(block: unknown): ToolCallContent[] {
  const { type, text, data, mimeType } = Object(block) as Record<string, unknown>;
  if (type === "text" && typeof text === "string") return textContent(text);
  if (type !== "image" || typeof data !== "string" || typeof mimeType !== "string") return [];
  return [{ type: "content", content: { type: "image", data, mimeType } }];
}

/** A copy that can be sent; undefined when JSON cannot hold the value. */
export function jsonCopy(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch {
    return undefined;
  }
}

function firstText(value: unknown, keys: readonly string[], allowEmpty = false): string | undefined {
  for (const key of keys) {
    const text = (Object(value) as Record<string, unknown>)[key];
    if (typeof text === "string" && (allowEmpty || text !== "")) return text;
  }
  return undefined;
}

function absolute(path: string | undefined, cwd: string | undefined): string | undefined {
  if (path === undefined || /^[a-z][\w+.-]+:\/\//i.test(path)) return undefined;
  if (cwd === undefined) return resolve(path) === path ? path : undefined;
  return resolve(cwd, path);
}
