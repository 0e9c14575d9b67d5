/** From a request of the loop to the body of a Messages request (SPEC 12.2). */
import type Anthropic from "@anthropic-ai/sdk";
import type { AssistantMessage, ImageContent, Message, TextContent, ThinkingContent, ToolResultMessage } from "../../messages.js";
import type { LlmContext, LlmTool, Model, StreamOptions } from "../../stream.js";
import { CallIds } from "../shared/call-ids.js";
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
  const own = (context.tools ?? []).map(wireTool);
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
  const system = textBlock(context.systemPrompt ?? "");
  if (system.length > 0) body["system"] = system;
  if (tools.length > 0) body["tools"] = tools;
  if (tools.length > 0 && toolChoice !== undefined) body["tool_choice"] = wireToolChoice(toolChoice);
  body["thinking"] ??= thinkingFor(reasoning, body["max_tokens"], body["tool_choice"], messages);
  // the API refuses any other temperature than its own while the model thinks
  const { type = "disabled" } = Object(body["thinking"]) as { type?: unknown };
  if (temperature !== undefined && type === "disabled") body["temperature"] = temperature;
  if (cache) markForCache(system, own, messages);
  return body as unknown as MessagesBody;
}

function wireTool({ name, description, parameters }: LlmTool): object {
  // a schema without a type at its top is refused
  return { name, description, input_schema: { type: "object", ...parameters } };
}

function wireToolChoice(choice: NonNullable<StreamOptions["toolChoice"]>): Anthropic.ToolChoice {
  if (typeof choice !== "string") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}

/** Neighbours of one role become one message: the results of a batch and what the user said after it are one turn to the API. */
function turns(model: Model, context: LlmContext): Turn[] {
  const out: Turn[] = [];
  const ids = new CallIds(MAX_ID);
  for (const message of sendable(context.messages)) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = blocksOf(message, model, ids);
    const last = out[out.length - 1];
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) out.push({ role, content });
  }
  return out;
}

function blocksOf(message: Message, model: Model, ids: CallIds): Block[] {
  if (message.role === "assistant") return assistantBlocks(message, model, ids);
  return message.role === "user" ? userBlocks(message.content) : [resultBlock(message, ids)];
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

function imageBlock({ data, mimeType }: ImageContent): Anthropic.ImageBlockParam {
  return { type: "image", source: { type: "base64", media_type: mimeType as Anthropic.Base64ImageSource["media_type"], data } };
}

function assistantBlocks(message: AssistantMessage, model: Model, ids: CallIds): Block[] {
  ids.nextMessage();
  const own = message.api === model.api && message.provider === model.provider;
  return message.content.flatMap((block): Block[] => {
    if (block.type === "text") return textBlock(block.text);
    if (block.type === "thinking") return own ? replayedThinking(block) : [];
    return [{ type: "tool_use", id: ids.called(block.id), name: block.name, input: block.arguments ?? {} }];
  });
}

/** Thinking the provider cannot verify is of no use to it. */
function replayedThinking({ thinking, thinkingSignature, redacted }: ThinkingContent): Block[] {
  if (!thinkingSignature) return [];
  return [redacted ? { type: "redacted_thinking", data: thinkingSignature } : { type: "thinking", thinking, signature: thinkingSignature }];
}

function resultBlock({ toolCallId, content, isError }: ToolResultMessage, ids: CallIds): Anthropic.ToolResultBlockParam {
  const blocks = userBlocks(content);
  return {
    type: "tool_result",
    tool_use_id: ids.answered(toolCallId),
    content: blocks.length > 0 ? blocks : [{ type: "text", text: "(no output)" }],
    ...(isError ? { is_error: true } : {}),
  };
}
