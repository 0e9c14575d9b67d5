/** What a tool returned or threw, as a well-formed result (SPEC 5.11). */
import { describe, errorText } from "../errors.js";
import type { ImageContent, TextContent, ToolCall, ToolResultMessage } from "../messages.js";
import type { AgentToolResult } from "../tool.js";
import { copyContent, copyUsage } from "./snapshot.js";

type Content = TextContent | ImageContent;

export function errorResult(text: string): AgentToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** A result of the loop's own, with `isError` only when it is one. Never throws: what cannot be read is an error result naming the tool. */
export function normalizeResult(toolName: string, value: unknown): AgentToolResult {
  try {
    if (typeof value === "string") return { content: [{ type: "text", text: value }] };
    if (value instanceof Error) return errorResult(errorText(value));
    if (typeof value !== "object" || value === null || Array.isArray(value)) return malformed(toolName, value);
    const { content, details, usage, terminate, isError } = value as Partial<AgentToolResult>;
    const blocks = normalizeContent(content);
    if (!blocks) return malformed(toolName, value);
    const result: AgentToolResult = { content: blocks };
    if (details !== undefined) result.details = details;
    if (typeof usage === "object" && usage !== null) result.usage = copyUsage(usage);
    if (terminate === true) result.terminate = true;
    if (isError === true) result.isError = true;
    return result;
  } catch (error) {
    return errorResult(`Tool "${toolName}" returned a value that cannot be read: ${errorText(error)}`);
  }
}

function malformed(toolName: string, given: unknown): AgentToolResult {
  // details are the host's own and not for the model to see
  const value = typeof given === "object" && given !== null && "details" in given ? { ...given, details: undefined } : given;
  return errorResult(
    `Tool "${toolName}" returned ${describe(value)}; expected a string or { content: [...] } with text and image blocks. The tool may have taken effect.`,
  );
}

function normalizeContent(content: unknown): Content[] | undefined {
  if (content === undefined || content === null) return [];
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return undefined;
  const blocks: Content[] = [];
  for (let i = 0; i < content.length; i++) blocks.push(normalizeBlock(content[i]));
  return blocks;
}

function normalizeBlock(block: unknown): Content {
  if (typeof block === "string") return { type: "text", text: block };
  const { type, text, data, mimeType } = (block ?? {}) as Record<string, unknown>;
  if (type === "text" && typeof text === "string") return { ...(block as TextContent) };
  if (type === "image" && typeof data === "string" && typeof mimeType === "string") return { ...(block as ImageContent) };
  return { type: "text", text: `[content that is neither text nor image: ${describe(block)}]` };
}

/** The result as it goes into the transcript, which stamps it. */
export function toolResultMessage(call: ToolCall, result: AgentToolResult): ToolResultMessage {
  const message: ToolResultMessage = {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: copyContent(result.content),
    isError: result.isError === true,
    timestamp: 0,
  };
  if (result.details !== undefined) message.details = result.details;
  if (result.usage !== undefined) message.usage = copyUsage(result.usage);
  return message;
}
