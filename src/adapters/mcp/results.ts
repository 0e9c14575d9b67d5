/** From what a server answers to what the model and the host get (SPEC 12.3). */
import { describe } from "../../errors.js";
import type { ImageContent, TextContent } from "../../messages.js";
import type { AgentToolResult } from "../../tool.js";
import type { McpProgress } from "./client.js";

type Shown = TextContent | ImageContent;

/** `details` of a result: what the server sent, whole. */
export interface McpDetails {
  content: unknown[];
  structuredContent?: unknown;
  _meta?: unknown;
}

/** The result of a call. Content that says nothing is replaced by the structured content, as JSON. */
export function toolResult(tool: string, answer: unknown): AgentToolResult<McpDetails> {
  // toolResult: how servers of the protocol's first version answer
  const { content: given, structuredContent, toolResult, isError, _meta } = Object(answer) as Record<string, unknown>;
  const content: unknown[] = Array.isArray(given) ? given : [];
  let shown = content.map(show);
  const structured = structuredContent ?? toolResult;
  if (shown.every(saysNothing)) {
    if (structured !== undefined) shown = [text(JSON.stringify(structured))];
    else if (isError === true) shown = [text(`Tool "${tool}" failed and gave no reason.`)];
  }
  const details: McpDetails = { content };
  if (structured !== undefined) details.structuredContent = structured;
  if (_meta !== undefined) details._meta = _meta;
  return isError === true ? { content: shown, details, isError } : { content: shown, details };
}

/** A partial result: the server's message, or else the numbers. */
export function progressResult({ progress, total, message }: McpProgress): AgentToolResult<McpProgress> {
  const details: McpProgress = { progress };
  if (total !== undefined) details.total = total;
  if (message !== undefined) details.message = message;
  return { content: [text(message ?? (total === undefined ? `${progress}` : `${progress}/${total}`))], details };
}

function show(block: unknown): Shown {
  const fields = Object(block) as Record<string, unknown>;
  if (fields["type"] === "text" && typeof fields["text"] === "string") return text(fields["text"]);
  if (fields["type"] === "image") return asImage(fields["data"], fields["mimeType"], ["image"]) ?? unknownContent(block);
  if (fields["type"] === "audio" && typeof fields["data"] === "string") return notShown(["audio", fields["mimeType"]], fields["data"]);
  if (fields["type"] === "resource_link" && typeof fields["uri"] === "string") return link(fields);
  if (fields["type"] === "resource") return resource(Object(fields["resource"])) ?? unknownContent(block);
  return unknownContent(block);
}

/** An embedded resource: text with its address above it, images as images. */
function resource({ uri, mimeType, text: words, blob }: Record<string, unknown>): Shown | undefined {
  if (typeof words === "string") return text(`${label([`resource ${uri}`, mimeType])}\n${words}`);
  if (typeof blob !== "string") return undefined;
  return asImage(blob, mimeType ?? "", [`resource ${uri}`]);
}

function link({ uri, name, title, mimeType, size, description }: Record<string, unknown>): TextContent {
  const head = label([`resource link ${uri}`, title ?? name, mimeType, typeof size === "number" ? `${size} bytes` : undefined]);
  return text(typeof description === "string" ? `${head}\n${description}` : head);
}

/** No provider takes drawings or nothing: a transcript that held them would fail with each request from then on. */
function asImage(data: unknown, mimeType: unknown, facts: string[]): Shown | undefined {
  if (typeof data !== "string" || typeof mimeType !== "string") return undefined;
  const takes = data !== "" && /^image\/(?!svg)/i.test(mimeType);
  return takes ? { type: "image", data, mimeType } : notShown([...facts, mimeType], data);
}

/** In place of bytes that a model cannot read. */
function notShown(facts: unknown[], base64: string): TextContent {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  const bytes = Math.floor(((base64.length - padding) * 3) / 4);
  return text(label([...facts, `${bytes} bytes, not shown`]));
}

function unknownContent(block: unknown): TextContent {
  return text(`[content of a kind that cannot be shown: ${describe(block)}]`);
}

function label(facts: unknown[]): string {
  return `[${facts.filter((fact) => typeof fact === "string" && fact !== "").join(", ")}]`;
}

function text(words: string): TextContent {
  return { type: "text", text: words };
}

function saysNothing(block: Shown): boolean {
  return block.type === "text" && block.text.trim() === "";
}
