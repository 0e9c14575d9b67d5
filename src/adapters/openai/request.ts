/** What requests of both APIs have in common (SPEC 12.2). */
import type { AssistantMessage, ImageContent, ToolResultMessage } from "../../messages.js";
import { parseObject } from "../../partial-json.js";
import type { LlmTool, Model, StreamOptions } from "../../stream.js";
import { wellFormedDeep } from "../../transcript.js";

type ToolChoice = NonNullable<StreamOptions["toolChoice"]>;

/** The declared tools, behind those that the host put into the body itself; a choice makes sense with tools only. */
export function addTools(
  body: Record<string, unknown>,
  declared: LlmTool[] = [],
  toTool: (tool: LlmTool) => object,
  toolChoice: ToolChoice | undefined,
  toChoice: (choice: ToolChoice) => unknown,
): void {
  const { tools: given } = body;
  const tools = [...(Array.isArray(given) ? given : []), ...wellFormedDeep(declared).map(toTool)];
  if (tools.length === 0) return;
  body["tools"] = tools;
  if (toolChoice) body["tool_choice"] = toChoice(toolChoice);
}

/** Whether what a message holds for replay may be sent: only to the api and provider that wrote it. */
export function isOwn(message: AssistantMessage, model: Model): boolean {
  return message.api === model.api && message.provider === model.provider;
}

export function dataUrl({ data, mimeType }: ImageContent): string {
  return `data:${mimeType};base64,${data}`;
}

export function resultText(message: ToolResultMessage): string {
  const texts = message.content.map((block) => (block.type === "text" ? block.text : "")).filter((text) => text !== "");
  return texts.join("\n");
}

/** What a signature holds, if it is the JSON text of an object. */
export function parsedObject(signature: string | undefined): Record<string, unknown> | undefined {
  return signature === undefined ? undefined : parseObject(signature);
}
