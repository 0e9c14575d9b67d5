/** From a request of the loop to the body of a Chat Completions request (SPEC 12.2). */
import type OpenAI from "openai";
import type { AssistantMessage, ImageContent, TextContent, ToolCall } from "../../messages.js";
import type { LlmContext, LlmTool, Model, StreamOptions } from "../../stream.js";
import { wellFormedDeep } from "../../transcript.js";
import { CallIds } from "../shared/call-ids.js";
import { inputSchema } from "../shared/input-schema.js";
import { sendable } from "../shared/sendable.js";
import { addTools, dataUrl, isOwn, parsedObject, resultText } from "./request.js";

type ChatBody = OpenAI.ChatCompletionCreateParamsStreaming;
type ChatMessage = OpenAI.ChatCompletionMessageParam;
type ChatPart = OpenAI.ChatCompletionContentPart;

/** Fields of compatible servers that carry reasoning. The one it came in is its signature, and where it goes back to. */
export const REASONING_FIELDS = ["reasoning_content", "reasoning"] as const;

/** The longest id of a tool call that OpenAI accepts, and the length of Mistral's. */
const MAX_ID = 40;
const MISTRAL_ID = 9;

/** The body of the request. Options that are not those of every StreamFn go into it as they are. */
export function chatBody(model: Model, context: LlmContext, options: StreamOptions, baseURL: string | undefined): ChatBody {
  const { apiKey, signal, temperature, maxTokens, reasoning, sessionId, toolChoice, headers, ...providerOptions } = options;
  const body: Record<string, unknown> = {
    stream_options: { include_usage: true },
    ...providerOptions,
    model: model.id,
    messages: chatMessages(model, context, callIds(model, baseURL)),
    stream: true,
  };
  addTools(body, context.tools, chatTool, toolChoice, chatToolChoice);
  if (maxTokens !== undefined) body[maxTokensField(baseURL)] = maxTokens;
  if (temperature !== undefined) body["temperature"] = temperature;
  if (reasoning) body["reasoning_effort"] = reasoning;
  return body as unknown as ChatBody;
}

/** OpenAI's newer models refuse `max_tokens`; several compatible servers know nothing else. */
function maxTokensField(baseURL: string | undefined): "max_completion_tokens" | "max_tokens" {
  return /^https?:\/\/([^/]*\.)?(openai\.com|azure\.com)([:/]|$)/i.test(baseURL ?? "") ? "max_completion_tokens" : "max_tokens";
}

function callIds({ provider }: Model, baseURL: string | undefined): CallIds {
  const isMistral = provider === "mistral" || /^https?:\/\/([^/]*\.)?mistral\.ai([:/]|$)/i.test(baseURL ?? "");
  return isMistral ? new CallIds(MISTRAL_ID, true) : new CallIds(MAX_ID);
}

function chatTool({ name, description, parameters }: LlmTool): OpenAI.ChatCompletionTool {
  return { type: "function", function: { name, description, parameters: inputSchema(parameters) } };
}

function chatToolChoice(choice: NonNullable<StreamOptions["toolChoice"]>): OpenAI.ChatCompletionToolChoiceOption {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

function chatMessages(model: Model, context: LlmContext, ids: CallIds): ChatMessage[] {
  const out: ChatMessage[] = [];
  /** Images of tool results: a tool message cannot hold them, so they follow when the batch's results are complete. */
  let images: ChatPart[] = [];
  const flushImages = (): void => {
    if (images.length > 0) out.push({ role: "user", content: images });
    images = [];
  };
  if (context.systemPrompt) out.push({ role: "system", content: wellFormedDeep(context.systemPrompt) });
  for (const message of sendable(context)) {
    if (message.role === "toolResult") {
      const pictures = message.content.filter((block) => block.type === "image");
      const text = resultText(message) || (pictures.length > 0 ? "(The images follow in the next message.)" : "(no output)");
      out.push({ role: "tool", tool_call_id: ids.answered(message.toolCallId), content: text });
      if (pictures.length > 0)
        images.push({ type: "text", text: `Images in the result of ${message.toolName}:` }, ...pictures.map(imagePart));
      continue;
    }
    flushImages();
    const converted = message.role === "user" ? userMessage(message.content) : assistantMessage(message, model, ids);
    if (converted) out.push(converted);
  }
  flushImages();
  return out;
}

function userMessage(content: string | (TextContent | ImageContent)[]): ChatMessage | undefined {
  if (typeof content === "string") return content === "" ? undefined : { role: "user", content };
  const parts: ChatPart[] = [];
  for (const block of content) {
    if (block.type === "image") parts.push(imagePart(block));
    else if (block.text !== "") parts.push({ type: "text", text: block.text });
  }
  const [first] = parts;
  if (!first) return undefined;
  // some compatible servers take a string only
  return { role: "user", content: parts.length === 1 && first.type === "text" ? first.text : parts };
}

function imagePart(image: ImageContent): ChatPart {
  return { type: "image_url", image_url: { url: dataUrl(image) } };
}

function assistantMessage(message: AssistantMessage, model: Model, ids: CallIds): ChatMessage | undefined {
  const text = message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const calls = message.content.filter((block) => block.type === "toolCall");
  if (text === "" && calls.length === 0) return undefined;
  ids.nextMessage();
  return {
    role: "assistant",
    ...(text === "" ? {} : { content: text }),
    ...replayedReasoning(message, model),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => chatCall(call, ids, isOwn(message, model))) }),
  };
}

/** `extra_content` is where Google keeps the proof of what was thought before the call, which it asks for again. */
function chatCall(call: ToolCall, ids: CallIds, own: boolean): OpenAI.ChatCompletionMessageFunctionToolCall {
  const extra_content = own ? parsedObject(call.thoughtSignature) : undefined;
  const sent = { name: call.name, arguments: JSON.stringify(call.arguments ?? {}) };
  return { id: ids.called(call.id), type: "function", function: sent, ...(extra_content && { extra_content }) };
}

/** Reasoning goes back only to the api and provider that wrote it, in the field it came in. */
function replayedReasoning(message: AssistantMessage, model: Model): Record<string, string> {
  if (!isOwn(message, model)) return {};
  const replayed: Record<string, string> = {};
  for (const block of message.content) {
    if (block.type !== "thinking") continue;
    const field = REASONING_FIELDS.find((name) => name === block.thinkingSignature);
    if (field) replayed[field] = (replayed[field] ?? "") + block.thinking;
  }
  return replayed;
}
