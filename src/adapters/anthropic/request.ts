/** From a request of the loop to the body of a Messages request (SPEC 12.2). */
import type Anthropic from "@anthropic-ai/sdk";
import type { AssistantMessage, ImageContent, TextContent, ThinkingContent, ToolResultMessage } from "../../messages.js";
import type { LlmContext, LlmTool, Model, StreamOptions } from "../../stream.js";
import { wellFormedDeep } from "../../transcript.js";
import { CallIds } from "../shared/call-ids.js";
import { inputSchema } from "../shared/input-schema.js";
import { sendable } from "../shared/sendable.js";
import { markForCache } from "./cache.js";
import { thinkingFor } from "./thinking.js";

export type MessagesBody = Anthropic.MessageCreateParamsStreaming & { messages: Turn[] };
export type Block = Anthropic.ContentBlockParam;
export type Turn = { role: "user" | "assistant"; content: Block[] };

/** What is written at most when neither the call nor the model says. */
const DEFAULT_MAX_TOKENS = 8192;

/** The longest id of a tool call that Anthropic accepts. */
const MAX_ID = 64;

/** The body of the request. Options that are not those of every StreamFn go into it as they are. */
export function messagesBody(model: Model, context: LlmContext, options: StreamOptions, cache: boolean): MessagesBody {
  const { apiKey, signal, temperature, maxTokens, reasoning, sessionId, toolChoice, headers, ...providerOptions } = options;
  const messages = turns(model, context);
  const own = wellFormedDeep(context.tools ?? []).map(wireTool);
  // a provider's tools that run on its side come as a provider option
  const given = providerOptions["tools"];
  const tools = Array.isArray(given) ? [...given, ...own] : own;
  const body: Record<string, unknown> = {
    max_tokens: model.maxTokens ?? DEFAULT_MAX_TOKENS,
    ...providerOptions,
    model: model.id,
    messages,
    stream: true,
  };
  if (maxTokens !== undefined) body["max_tokens"] = maxTokens;
  const system = textBlock(wellFormedDeep(context.systemPrompt ?? ""));
  if (system.length > 0) body["system"] = system;
  if (tools.length > 0) body["tools"] = tools;
  if (tools.length > 0 && toolChoice) body["tool_choice"] = wireToolChoice(toolChoice);
  body["thinking"] ??= thinkingFor(reasoning, body["max_tokens"], body["tool_choice"], messages);
  // the API refuses any other temperature than its own while the model thinks
  const { type = "disabled" } = Object(body["thinking"]) as { type?: unknown };
  if (temperature !== undefined && type === "disabled") body["temperature"] = temperature;
  if (cache) markForCache(system, own, messages);
  return body as unknown as MessagesBody;
}

function wireTool({ name, description, parameters }: LlmTool): object {
  return { name, description, input_schema: inputSchema(parameters) };
}

function wireToolChoice(choice: NonNullable<StreamOptions["toolChoice"]>): Anthropic.ToolChoice {
  if (typeof choice !== "string") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}

/** Neighbours of one role become one message: the results of a batch and what the user said after it are one turn to the API. */
function turns(model: Model, context: LlmContext): Turn[] {
  const out: Turn[] = [];
  const ids = new CallIds(MAX_ID);
  const push = (role: Turn["role"], content: Block[]): void => {
    const last = out[out.length - 1];
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) out.push({ role, content });
  };
  /** Images of failed results: the API takes nothing but text in them, so they follow when the batch's results are complete. */
  let images: Block[] = [];
  const flushImages = (): void => {
    push("user", images);
    images = [];
  };
  for (const message of sendable(context)) {
    if (message.role === "toolResult") {
      const content = userBlocks(message.content);
      const behind = message.isError ? content.filter(({ type }) => type === "image") : [];
      push("user", [resultBlock(message, content, behind.length > 0, ids)]);
      if (behind.length > 0) images.push({ type: "text", text: `Images in the result of ${message.toolName}:` }, ...behind);
      continue;
    }
    flushImages();
    if (message.role === "user") push("user", userBlocks(message.content));
    else push("assistant", assistantBlocks(message, model, ids));
  }
  flushImages();
  return out;
}

type Said = Anthropic.TextBlockParam | Anthropic.ImageBlockParam;

function userBlocks(content: string | (TextContent | ImageContent)[]): Said[] {
  if (typeof content === "string") return textBlock(content);
  return content.flatMap((block): Said[] => (block.type === "image" ? [imageBlock(block)] : textBlock(block.text)));
}

/** None for a text that the API would refuse. */
function textBlock(text: string): Anthropic.TextBlockParam[] {
  return text.trim() === "" ? [] : [{ type: "text", text }];
}

/** The API would refuse any other type, and with it all that is asked after it. */
function imageBlock({ data, mimeType }: ImageContent): Said {
  const [, subtype = ""] = /^image\/(png|jpe?g|gif|webp)\b/i.exec(mimeType) ?? [];
  if (subtype === "") return { type: "text", text: `(An image of type ${mimeType} was left out: it cannot be read.)` };
  const media_type = `image/${subtype.toLowerCase().replace("jpg", "jpeg")}` as Anthropic.Base64ImageSource["media_type"];
  return { type: "image", source: { type: "base64", media_type, data } };
}

/** Calls at the end, and no thinking there: the API refuses an answer in which anything follows a call, or nothing follows thinking. */
function assistantBlocks(message: AssistantMessage, model: Model, ids: CallIds): Block[] {
  ids.nextMessage();
  const own = message.api === model.api && message.provider === model.provider;
  const calls: Block[] = [];
  const said: Block[] = [];
  for (const block of message.content) {
    if (block.type === "thinking") said.push(...(own ? replayedThinking(block) : []));
    else if (block.type === "text") said.push(...textBlock(block.text));
    else calls.push({ type: "tool_use", id: ids.called(block.id), name: block.name, input: block.arguments ?? {} });
  }
  if (calls.length === 0) while (said.length > 0 && said[said.length - 1]?.type !== "text") said.pop();
  return [...said, ...calls];
}

/** Thinking the provider cannot verify is of no use to it. */
function replayedThinking({ thinking, thinkingSignature, redacted }: ThinkingContent): Block[] {
  if (!thinkingSignature) return [];
  return [redacted ? { type: "redacted_thinking", data: thinkingSignature } : { type: "thinking", thinking, signature: thinkingSignature }];
}

function resultBlock(message: ToolResultMessage, said: Said[], imagesFollow: boolean, ids: CallIds): Anthropic.ToolResultBlockParam {
  const content = imagesFollow ? said.filter(({ type }) => type === "text") : said;
  return {
    type: "tool_result",
    tool_use_id: ids.answered(message.toolCallId),
    content: content.length > 0 ? content : textBlock(imagesFollow ? "(The images follow the results.)" : "(no output)"),
    ...(message.isError ? { is_error: true } : {}),
  };
}
