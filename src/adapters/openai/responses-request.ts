/** From a request of the loop to the body of a Responses request (SPEC 12.2). */
import type OpenAI from "openai";
import type { AssistantMessage, ImageContent, TextContent, ThinkingContent, ToolResultMessage } from "../../messages.js";
import type { LlmContext, LlmTool, Model, StreamOptions } from "../../stream.js";
import { wellFormedDeep } from "../../transcript.js";
import { CallIds } from "../shared/call-ids.js";
import { inputSchema } from "../shared/input-schema.js";
import { sendable } from "../shared/sendable.js";
import { addTools, dataUrl, isOwn, parsedObject, resultText } from "./request.js";

type ResponsesBody = OpenAI.Responses.ResponseCreateParamsStreaming;
type InputItem = OpenAI.Responses.ResponseInputItem;
type InputPart = OpenAI.Responses.ResponseInputText | OpenAI.Responses.ResponseInputImage;

/** The longest id of a call that OpenAI accepts. */
const MAX_ID = 64;

/** OpenAI's models that do not reason: they refuse a request for encrypted reasoning. */
const DOES_NOT_REASON = /(^|\/)(gpt-[34]|chatgpt-4|gpt-5[\w.]*-chat)/;

/** The body of the request. Options that are not those of every StreamFn go into it as they are. */
export function responsesBody(model: Model, context: LlmContext, options: StreamOptions): ResponsesBody {
  const { apiKey, signal, temperature, maxTokens, reasoning, sessionId, toolChoice, headers, ...providerOptions } = options;
  const body: Record<string, unknown> = {
    store: false,
    ...(DOES_NOT_REASON.test(model.id) ? {} : { include: ["reasoning.encrypted_content"] }),
    ...providerOptions,
    model: model.id,
    input: inputItems(model, context),
    stream: true,
  };
  if (context.systemPrompt) body["instructions"] = wellFormedDeep(context.systemPrompt);
  addTools(body, context.tools, functionTool, toolChoice, functionChoice);
  if (maxTokens !== undefined) body["max_output_tokens"] = maxTokens;
  if (temperature !== undefined) body["temperature"] = temperature;
  if (reasoning) body["reasoning"] = { effort: reasoning, summary: "auto" };
  return body as unknown as ResponsesBody;
}

/** Without `strict: false` the API would rewrite the schema, or refuse it. */
function functionTool({ name, description, parameters }: LlmTool): OpenAI.Responses.FunctionTool {
  return { type: "function", name, description, parameters: inputSchema(parameters), strict: false };
}

function functionChoice(choice: NonNullable<StreamOptions["toolChoice"]>): unknown {
  return typeof choice === "string" ? choice : { type: "function", name: choice.name };
}

function inputItems(model: Model, context: LlmContext): InputItem[] {
  const ids = new CallIds(MAX_ID);
  return sendable(context).flatMap((message): InputItem[] => {
    if (message.role === "user") return userItems(message.content);
    if (message.role === "assistant") return assistantItems(message, model, ids);
    return [{ type: "function_call_output", call_id: ids.answered(message.toolCallId), output: outputOf(message) }];
  });
}

function userItems(content: string | (TextContent | ImageContent)[]): InputItem[] {
  if (typeof content === "string") return content === "" ? [] : [{ role: "user", content }];
  const parts = content.filter((block) => block.type === "image" || block.text !== "").map(inputPart);
  return parts.length === 0 ? [] : [{ role: "user", content: parts }];
}

function inputPart(block: TextContent | ImageContent): InputPart {
  if (block.type === "text") return { type: "input_text", text: block.text };
  return { type: "input_image", detail: "auto", image_url: dataUrl(block) };
}

/** A string where one will do: not every compatible server takes a list. */
function outputOf(message: ToolResultMessage): string | InputPart[] {
  if (!message.content.some((block) => block.type === "image")) return resultText(message) || "(no output)";
  return message.content.filter((block) => block.type === "image" || block.text !== "").map(inputPart);
}

/** The blocks in their order. Reasoning that nothing follows is refused by the API, so it is not sent. */
function assistantItems(message: AssistantMessage, model: Model, ids: CallIds): InputItem[] {
  const own = isOwn(message, model);
  const items: InputItem[] = [];
  let sent = 0;
  ids.nextMessage();
  for (const block of message.content) {
    if (block.type === "thinking") {
      const item = own ? reasoningItem(block) : undefined;
      if (item) items.push(item);
      continue;
    }
    if (block.type === "toolCall") {
      const { name, arguments: args = {} } = block;
      items.push({ type: "function_call", call_id: ids.called(block.id), name, arguments: JSON.stringify(args) });
    } else if (block.text !== "") {
      items.push({ role: "assistant", content: block.text, ...(own && phaseOf(block)) });
    } else continue;
    sent = items.length;
  }
  return items.slice(0, sent);
}

/** The reasoning as it was written. Without its content, encrypted or open, nobody could read it again: nothing is stored. */
function reasoningItem({ thinkingSignature }: ThinkingContent): InputItem | undefined {
  const { id, summary, content, encrypted_content, type = "reasoning" } = parsedObject(thinkingSignature) ?? {};
  const open = Array.isArray(content) && content.length > 0;
  if (type !== "reasoning" || typeof id !== "string" || (!encrypted_content && !open)) return undefined;
  const item = { type, id, summary: summary ?? [], ...(open && { content }), ...(encrypted_content ? { encrypted_content } : {}) };
  return item as unknown as InputItem;
}

/** Some models want to be told which of their texts were comments on the way and which the answer. */
function phaseOf({ textSignature }: TextContent): { phase?: "commentary" | "final_answer" } {
  const phase = parsedObject(textSignature)?.["phase"];
  return phase === "commentary" || phase === "final_answer" ? { phase } : {};
}
