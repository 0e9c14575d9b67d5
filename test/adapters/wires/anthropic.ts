import { begin, call, deltas, end, openText, start, text, thinking } from "../anthropic-helpers.js";
import { Calls, filled, type Heard, REASONS, type Refusal, refuse, type Said, type Wire } from "./wire.js";

const errors: Record<Refusal, [number, string]> = {
  "no key": [401, "authentication_error"],
  "too many requests": [429, "rate_limit_error"],
  overloaded: [529, "overloaded_error"],
  "too long": [400, "invalid_request_error"],
  "unknown model": [404, "not_found_error"],
  "bad schema": [400, "invalid_request_error"],
};

/** Anthropic's Messages API. */
export const anthropicWire: Wire = {
  begins: ({ input, cacheRead } = { input: 0, cacheRead: 0, output: 0 }) =>
    begin({ input_tokens: input, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: 0, output_tokens: 0 }),
  says: (blocks, proof, open) =>
    blocks.map((block, index) => say(block, index, proof, open === true && index === blocks.length - 1)).join(""),
  ends: (how, _, tokens) => {
    const usage = { output_tokens: tokens?.output ?? 0 };
    if (typeof how !== "string") return end("refusal", usage, { stop_details: { type: "refusal", explanation: how.refusal } });
    return end({ stop: "end_turn", length: "max_tokens", calls: "tool_use", filtered: "refusal" }[how], usage);
  },
  broken: 'event: content_block_delta\ndata: {"type":"content_bl\n\n',
  refuses: (why) => {
    const [status, type] = errors[why];
    return { status, body: { type: "error", error: { type, message: REASONS[why] }, request_id: "req_1" } };
  },
  hears,
  resultImages: "inside",
};

function say(block: Said, index: number, proof: string, open: boolean): string {
  if ("text" in block) return (open ? openText : text)(index, ...block.text);
  if ("thinking" in block) return thinking(index, proof, ...block.thinking);
  if (!open) return call(index, block.id, block.name, ...block.json);
  const begun = start(index, { type: "tool_use", id: block.id, name: block.name, input: {} });
  return begun + block.json.map((piece) => deltas.inputs(index, piece)).join("");
}

function hears({ messages, max_tokens, tools = [] }: any, proof: string): Heard[] {
  refuse(max_tokens > 0, "a request without max_tokens");
  for (const { input_schema } of tools) refuse(input_schema.type === "object", "a schema without a type", input_schema);
  refuse(messages[0]?.role === "user" && messages.at(-1).role === "user", "a conversation that does not begin and end with the user");
  const made = new Calls(64);
  return messages.flatMap(({ role, content }: any, index: number): Heard[] => {
    refuse(role === (index % 2 === 0 ? "user" : "assistant"), "two messages of one role in a row", index);
    refuse(content.length > 0, "an empty message");
    if (role === "assistant") inOrder(content);
    const heard = content.map((block: any): Heard => (role === "user" ? ofUser(block, made) : ofAssistant(block, made, proof)));
    if (role === "user") made.over();
    return heard;
  });
}

/** The API's own rules for an answer's blocks. */
function inOrder(content: any[]): void {
  refuse(!/thinking$/.test(content.at(-1).type), "an answer that ends in thinking", content);
  const first = content.findIndex(({ type }) => type === "tool_use");
  refuse(first < 0 || content.slice(first).every(({ type }) => type === "tool_use"), "something behind a call", content);
}

function ofUser(block: any, made: Calls): Heard {
  if (block.type === "tool_result") {
    refuse(block.content.length > 0, "an empty result");
    refuse(!block.is_error || block.content.every(({ type }: any) => type === "text"), "an error that is not all text", block);
    const parts = block.content.map((part: any) => ofUser(part, new Calls(0)));
    const texts = parts.flatMap((part: any) => part.user ?? []);
    return { result: texts.join("\n"), of: made.answered(block.tool_use_id), images: parts.flatMap((part: any) => part.image ?? []) };
  }
  made.over(); // results come first
  if (block.type === "text") return { user: filled(block.text) };
  refuse(block.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(block.source.media_type), "a block", block);
  return { image: `data:${block.source.media_type};base64,${block.source.data}` };
}

function ofAssistant(block: any, made: Calls, proof: string): Heard {
  if (block.type === "text") return { assistant: filled(block.text) };
  if (block.type === "tool_use") return made.made(block.id, block.name, block.input);
  refuse(block.type === "thinking" && block.signature === proof, "a signature of another provider", block);
  return { thinking: block.thinking };
}
