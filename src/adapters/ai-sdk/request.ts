/** From a request of the loop to the options of a model's `doStream` (SPEC 12.2). */
import type { AssistantMessage, ImageContent, TextContent, ToolResultMessage } from "../../messages.js";
import type { LlmContext, LlmTool, Model, StreamOptions } from "../../stream.js";
import { CallIds } from "../shared/call-ids.js";
import { inputSchema } from "../shared/input-schema.js";
import { sendable } from "../shared/sendable.js";
import type { AiSdkLanguageModel, Metadata, PromptMessage, PromptPart } from "./language-model.js";
import { replay } from "./signature.js";

/** The shortest of the providers' limits for the id of a tool call. */
const MAX_ID = 40;

/** Options that are not those of every StreamFn go to the model as they are. */
export function callOptions(
  languageModel: AiSdkLanguageModel,
  model: Model,
  context: LlmContext,
  options: StreamOptions,
  signal: AbortSignal,
): Record<string, unknown> {
  const { apiKey, signal: _, temperature, maxTokens, reasoning, sessionId, toolChoice, headers, tools: ofProvider, ...others } = options;
  const tools = [...(context.tools ?? []).map(functionTool), ...(Array.isArray(ofProvider) ? ofProvider : [])];
  const call: Record<string, unknown> = { ...others, prompt: new Prompt(languageModel, model).of(context), abortSignal: signal };
  if (tools.length > 0) {
    call["tools"] = tools;
    if (toolChoice !== undefined) call["toolChoice"] = choice(toolChoice);
  }
  if (maxTokens !== undefined) call["maxOutputTokens"] = maxTokens;
  if (temperature !== undefined) call["temperature"] = temperature;
  if (headers !== undefined) call["headers"] = headers;
  // v2 and v3 have provider options only
  if (reasoning !== undefined && languageModel.specificationVersion === "v4") call["reasoning"] = reasoning;
  return call;
}

function functionTool({ name, description, parameters }: LlmTool): object {
  return { type: "function", name, description, inputSchema: inputSchema(parameters) };
}

/** One in the AI SDK's own words, `{ type: "tool", toolName }`, goes on as it is. */
function choice(given: NonNullable<StreamOptions["toolChoice"]>): object {
  if (typeof given === "string") return { type: given };
  return "name" in given ? { type: "tool", toolName: given.name } : given;
}

class Prompt {
  readonly #languageModel: AiSdkLanguageModel;
  readonly #model: Model;
  readonly #ids = new CallIds(MAX_ID);
  readonly #messages: PromptMessage[] = [];
  /** What goes with the results of the current message's calls, by their sent ids. */
  #ofCalls = new Map<string, { providerOptions?: Metadata }>();
  /** Images of tool results that cannot hold them. */
  #images: PromptPart[] = [];

  constructor(languageModel: AiSdkLanguageModel, model: Model) {
    this.#languageModel = languageModel;
    this.#model = model;
  }

  of(context: LlmContext): PromptMessage[] {
    if (context.systemPrompt) this.#messages.push({ role: "system", content: context.systemPrompt });
    for (const message of sendable(context)) {
      if (message.role === "toolResult") {
        this.#result(message);
        continue;
      }
      this.#flushImages();
      if (message.role === "user") this.#push("user", this.#userParts(message.content));
      else this.#push("assistant", this.#assistantParts(message));
    }
    this.#flushImages();
    return this.#messages;
  }

  #push(role: "user" | "assistant" | "tool", content: PromptPart[]): void {
    if (content.length > 0) this.#messages.push({ role, content });
  }

  #userParts(content: string | (TextContent | ImageContent)[]): PromptPart[] {
    const blocks: (TextContent | ImageContent)[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const parts = blocks.map((block) => (block.type === "image" ? this.#file(block) : { type: "text", text: block.text }));
    return parts.filter((part) => part["text"] !== "");
  }

  /** Nothing for an answer that was reasoning only: no provider takes that. */
  #assistantParts(message: AssistantMessage): PromptPart[] {
    const { api, provider } = this.#model;
    const own = message.api === api && message.provider === provider;
    const kept = (signature: string | undefined) => (own ? replay(signature, this.#languageModel.provider) : undefined);
    const parts: PromptPart[] = [];
    this.#ids.nextMessage();
    this.#ofCalls = new Map();
    for (const block of message.content) {
      if (block.type === "toolCall") {
        const { name: toolName, arguments: input = {} } = block;
        const toolCallId = this.#ids.called(block.id);
        const options = kept(block.thoughtSignature) ?? {};
        this.#ofCalls.set(toolCallId, options);
        parts.push({ type: "tool-call", toolCallId, toolName, input, ...options });
      } else if (block.type === "text") {
        if (block.text !== "") parts.push({ type: "text", text: block.text, ...kept(block.textSignature) });
      } else {
        const options = kept(block.thinkingSignature);
        if (options) parts.push({ type: "reasoning", text: block.thinking, ...options });
      }
    }
    return parts.some(({ type }) => type !== "reasoning") ? parts : [];
  }

  /** The results of one answer's calls are one message. */
  #result({ toolCallId: id, toolName, content, isError }: ToolResultMessage): void {
    const toolCallId = this.#ids.answered(id);
    const images = content.filter((block) => block.type === "image");
    const inside = images.length > 0 && this.#takesImages;
    const text = content.map((block) => (block.type === "text" ? block.text : "")).filter((part) => part !== "");
    const value = text.join("\n") || (images.length > 0 ? "(The images follow in the next message.)" : "(no output)");
    const output = inside
      ? { type: "content", value: content.flatMap((block) => this.#resultPart(block)) }
      : { type: isError ? "error-text" : "text", value };
    const part: PromptPart = { type: "tool-result", toolCallId, toolName, output, ...this.#ofCalls.get(toolCallId) };
    if (images.length > 0 && !inside) {
      this.#images.push({ type: "text", text: `Images in the result of ${toolName}:` }, ...images.map((image) => this.#file(image)));
    }
    const last = this.#messages[this.#messages.length - 1];
    if (last?.role === "tool") last.content.push(part);
    else this.#push("tool", [part]);
  }

  #flushImages(): void {
    this.#push("user", this.#images);
    this.#images = [];
  }

  /** The tool messages of Chat Completions hold text only: models that speak it would send an image as its base64 text. */
  get #takesImages(): boolean {
    return !/\.(chat|completion)$/.test(this.#languageModel.provider);
  }

  #resultPart(block: TextContent | ImageContent): PromptPart[] {
    if (block.type === "text") return block.text === "" ? [] : [{ type: "text", text: block.text }];
    const { data, mimeType: mediaType } = block;
    const version = this.#languageModel.specificationVersion;
    if (version === "v4") return [this.#file(block)];
    return [{ type: version === "v2" ? "media" : "image-data", data, mediaType }];
  }

  #file({ data, mimeType: mediaType }: ImageContent): PromptPart {
    const isV4 = this.#languageModel.specificationVersion === "v4";
    return { type: "file", mediaType, data: isV4 ? { type: "data", data } : data };
  }
}
