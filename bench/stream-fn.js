/** The work's model as the StreamFn of the floor and of turnloop. */
import { nextTick } from "./work.js";

const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const shell = (content, stopReason) => ({
  role: "assistant",
  content,
  api: "bench",
  provider: "bench",
  model: "bench",
  usage,
  stopReason,
  timestamp: 1,
});
const empty = shell([], "stop");

export const model = { id: "bench", provider: "bench" };

export const toolCall = ({ id, name, args, json }) => ({ type: "toolCall", id, name, arguments: args ?? JSON.parse(json) });

/** The text of the last message, whose content is a text or one text block. */
export function lastText(messages) {
  const { content } = messages[messages.length - 1];
  return typeof content === "string" ? content : content[0].text;
}

export const streamFnOf = (work) =>
  async function* streamFn(_model, { messages }) {
    const { calls, text, deltas, paced } = work.answer(lastText(messages));
    yield { type: "start", partial: empty };
    if (calls) {
      yield { type: "done", reason: "toolUse", message: shell(calls.map(toolCall), "toolUse") };
      return;
    }
    let whole = "";
    yield { type: "text_start", contentIndex: 0, partial: shell([{ type: "text", text: whole }], "stop") };
    work.sending();
    for (let i = 0; i < deltas; i++) {
      if (paced) await nextTick();
      whole += text;
      yield { type: "text_delta", contentIndex: 0, delta: text, partial: shell([{ type: "text", text: whole }], "stop") };
    }
    yield { type: "done", reason: "stop", message: shell([{ type: "text", text: whole }], "stop") };
  };

/** The tool of both, as a plain object; turnloop's has parameters too. */
export const toolOf = (work) => ({
  name: "add",
  description: "Adds one",
  execute: async (_id, args) => ({ content: [{ type: "text", text: work.execute(args) }] }),
});
