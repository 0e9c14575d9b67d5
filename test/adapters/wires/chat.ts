import { calls, chunk, sse, text } from "../helpers.js";
import { Calls, filled, type Heard, parametersOf, REASONS, type Refusal, refuse, type Said, type Wire } from "./wire.js";

const errors: Record<Refusal, { status: number; code: string | null; type?: string }> = {
  "no key": { status: 401, code: "invalid_api_key" },
  "too many requests": { status: 429, code: "rate_limit_exceeded" },
  overloaded: { status: 529, code: null },
  "too long": { status: 400, code: "context_length_exceeded" },
  "unknown model": { status: 404, code: "model_not_found" },
  "bad schema": { status: 400, code: "invalid_function_parameters" },
};

/** OpenAI's error, which both of its APIs send. */
export function openaiError(why: Refusal): { status: number; body: object } {
  const { status, code } = errors[why];
  return { status, body: { error: { message: REASONS[why], type: "invalid_request_error", param: null, code } } };
}

/** Chat Completions, with the reasoning of compatible servers. */
export const chatWire: Wire = {
  begins: () => sse(chunk({ role: "assistant", content: "" })),
  says: (blocks) => {
    let index = 0;
    return blocks.map((block) => say(block, "json" in block ? index++ : 0)).join("");
  },
  ends: (how, _, tokens) => {
    const reason = { stop: "stop", length: "length", calls: "tool_calls", filtered: "content_filter" };
    const last = typeof how === "string" ? sse(chunk({}, reason[how])) : sse(chunk({ refusal: how.refusal }), chunk({}, "stop"));
    const { input = 0, cacheRead = 0, output = 0 } = tokens ?? {};
    const prompt = { prompt_tokens: input + cacheRead, prompt_tokens_details: { cached_tokens: cacheRead } };
    const usage = { ...prompt, completion_tokens: output, total_tokens: input + cacheRead + output };
    return last + (tokens ? sse({ id: "chatcmpl-1", object: "chat.completion.chunk", choices: [], usage }) : "") + sse("[DONE]");
  },
  broken: 'data: {"choices":[{"del\n\n',
  refuses: openaiError,
  hears,
  resultImages: "behind",
};

function say(block: Said, index: number): string {
  if ("text" in block) return text(...block.text);
  if ("thinking" in block) return sse(...block.thinking.map((piece) => chunk({ reasoning_content: piece })));
  const start = calls({ index, id: block.id, type: "function", function: { name: block.name, arguments: "" } });
  return start + block.json.map((piece) => calls({ index, function: { arguments: piece } })).join("");
}

function hears({ messages, tools = [] }: any): Heard[] {
  tools.forEach(parametersOf);
  const made = new Calls(40);
  const heard = messages.flatMap((message: any): Heard[] => {
    const { role, content, tool_calls = [] } = message;
    if (role === "tool") return [{ result: filled(content), of: made.answered(message.tool_call_id), images: [] }];
    made.over();
    if (role === "system") return [];
    if (role === "user") return typeof content === "string" ? [{ user: filled(content) }] : parts(content);
    refuse(role === "assistant", "a role", role);
    refuse(content || tool_calls.length > 0, "an empty answer", message);
    return [
      ...(message.reasoning_content ? [{ thinking: message.reasoning_content }] : []),
      ...(content ? [{ assistant: filled(content) }] : []),
      ...tool_calls.map(({ id, function: { name, arguments: json } }: any) => made.made(id, name, JSON.parse(json))),
    ];
  });
  made.over();
  refuse(messages.at(-1).role !== "assistant", "an answer at the end");
  return heard;
}

function parts(content: any[]): Heard[] {
  refuse(content.length > 0, "an empty message");
  return content.map((part) => {
    if (part.type === "text") return { user: filled(part.text) };
    refuse(part.type === "image_url" && part.image_url.url.startsWith("data:image/"), "a part", part);
    return { image: part.image_url.url };
  });
}
