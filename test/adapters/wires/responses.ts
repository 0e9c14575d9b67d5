import { added, delta, ends, events, itemDone } from "../openai-wires.js";
import { openaiError } from "./chat.js";
import { Calls, filled, type Heard, parametersOf, refuse, type Said, type Tokens, type Wire } from "./wire.js";

/** OpenAI's Responses API. */
export const responsesWire: Wire = {
  begins: () => {
    const response = { id: "resp_1", object: "response", created_at: 1, model: "m", status: "in_progress" };
    return events({ type: "response.created", response }, { type: "response.in_progress", response });
  },
  says: (blocks, proof, open) =>
    blocks.map((block, index) => say(block, index, proof, open === true && index === blocks.length - 1)).join(""),
  ends: (how, after, tokens) => {
    const refusal = typeof how === "string" ? "" : refused(after, how.refusal);
    const cut = how === "length" ? "max_output_tokens" : how === "filtered" ? "content_filter" : undefined;
    const details = cut === undefined ? {} : { incomplete_details: { reason: cut } };
    return refusal + ends(cut === undefined ? "completed" : "incomplete", { ...details, usage: usageOf(tokens) });
  },
  broken: 'event: response.output_text.delta\ndata: {"type":"response.outp\n\n',
  refuses: openaiError,
  hears,
  resultImages: "inside",
};

function usageOf({ input, cacheRead, output }: Tokens = { input: 0, cacheRead: 0, output: 0 }): object {
  const details = { input_tokens_details: { cached_tokens: cacheRead }, output_tokens_details: { reasoning_tokens: 0 } };
  return { input_tokens: input + cacheRead, output_tokens: output, total_tokens: input + cacheRead + output, ...details };
}

function refused(index: number, refusal: string): string {
  const item = { type: "message", id: `msg_${index}`, role: "assistant", content: [{ type: "refusal", refusal }] };
  const where = { item_id: item.id, output_index: index, content_index: 0 };
  const words = delta("refusal", index, refusal, where) + events({ type: "response.refusal.done", refusal, ...where });
  return added(index, { ...item, content: [] }) + words + itemDone(index, item);
}

function say(block: Said, index: number, proof: string, open: boolean): string {
  if ("text" in block) {
    const item = { type: "message", id: `msg_${index}_${proof}`, role: "assistant" };
    const pieces = block.text.map((piece) => delta("output_text", index, piece, { item_id: item.id }));
    const content = [{ type: "output_text", text: block.text.join(""), annotations: [] }];
    return added(index, { ...item, content: [] }) + pieces.join("") + (open ? "" : itemDone(index, { ...item, content }));
  }
  if ("thinking" in block) {
    const item = { type: "reasoning", id: `rs_${index}_${proof}` };
    const summary = [{ type: "summary_text", text: block.thinking.join("") }];
    const where = { item_id: item.id, output_index: index, summary_index: 0 };
    const pieces = block.thinking.map((piece) => delta("reasoning_summary_text", index, piece, { ...where, content_index: undefined }));
    const begun = added(index, { ...item, summary: [] }) + events({ type: "response.reasoning_summary_part.added", ...where });
    const over = events({ type: "response.reasoning_summary_part.done", ...where });
    return begun + pieces.join("") + (open ? "" : over + itemDone(index, { ...item, summary, encrypted_content: proof }));
  }
  const item = { type: "function_call", id: `fc_${index}_${proof}`, call_id: block.id, name: block.name };
  const pieces = block.json.map((piece) => delta("function_call_arguments", index, piece, { item_id: item.id }));
  const whole = { ...item, arguments: block.json.join(""), status: "completed" };
  return added(index, { ...item, arguments: "" }) + pieces.join("") + (open ? "" : itemDone(index, whole));
}

function hears({ input, store, tools = [] }: any, proof: string): Heard[] {
  tools.forEach(parametersOf);
  refuse(store === false, "a request whose items would be stored");
  const made = new Calls(64);
  const heard = input.flatMap((item: any, index: number): Heard[] => {
    refuse(item.id === undefined || item.id.endsWith(proof), "an item of another provider", item);
    if (item.type === "function_call_output") return [result(item, made.answered(item.call_id))];
    if (item.type === "function_call") return [made.made(item.call_id, item.name, JSON.parse(item.arguments))];
    made.over();
    if (item.type === "reasoning") return [reasoned(item, input[index + 1], proof)];
    if (item.role === "system" || item.role === "developer") return [];
    refuse(item.role === "user" || item.role === "assistant", "an item", item);
    const content = typeof item.content === "string" ? [{ text: item.content }] : item.content;
    refuse(content.length > 0, "an empty message");
    return content.map((part: any) => (part.type === "input_image" ? { image: image(part) } : { [item.role]: filled(part.text) }));
  });
  made.over();
  return heard;
}

function reasoned(item: any, next: any, proof: string): Heard {
  refuse(item.encrypted_content === proof, "a signature of another provider", item);
  refuse(next && (next.role === "assistant" || ["function_call", "reasoning"].includes(next.type)), "reasoning that nothing follows");
  return { thinking: item.summary.map(({ text }: any) => text).join("") };
}

function result({ output }: any, of: number): Heard {
  if (typeof output === "string") return { result: filled(output), of, images: [] };
  refuse(output.length > 0, "an empty result");
  const texts = output.filter(({ type }: any) => type === "input_text").map(({ text }: any) => filled(text));
  return { result: texts.join("\n"), of, images: output.filter(({ type }: any) => type === "input_image").map(image) };
}

function image({ image_url }: any): string {
  refuse(image_url?.startsWith("data:image/"), "an image", image_url);
  return image_url;
}
