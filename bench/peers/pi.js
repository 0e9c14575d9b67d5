/** pi-agent-core's bare loop. */
import { runAgentLoop } from "@mariozechner/pi-agent-core";
import { createAssistantMessageEventStream, fauxAssistantMessage, Type } from "@mariozechner/pi-ai";
import { lastText, model, toolCall, toolOf } from "../stream-fn.js";
import { nextTick } from "../work.js";

export const parametersOf = ({ name }) =>
  Type.Object(name === "bigArguments" ? { x: Type.Number(), lines: Type.Array(Type.String()) } : { x: Type.Number() });

export const piModel = { ...model, name: "bench", api: "bench", baseUrl: "", reasoning: false, input: ["text"] };

/** As its faux provider streams: events pushed one by one, a microtask between two. */
export const piStreamFn =
  (work) =>
  (_model, { messages }) => {
    const stream = createAssistantMessageEventStream();
    void play(stream, work, work.answer(lastText(messages)));
    return stream;
  };

async function play(stream, work, { calls, text, deltas, paced }) {
  stream.push({ type: "start", partial: fauxAssistantMessage([]) });
  if (calls) {
    const message = fauxAssistantMessage(calls.map(toolCall), { stopReason: "toolUse" });
    stream.push({ type: "done", reason: "toolUse", message });
    return;
  }
  const partial = fauxAssistantMessage([{ type: "text", text: "" }]);
  stream.push({ type: "text_start", contentIndex: 0, partial: { ...partial } });
  work.sending();
  for (let i = 0; i < deltas; i++) {
    await (paced ? nextTick() : undefined);
    partial.content[0].text += text;
    stream.push({ type: "text_delta", contentIndex: 0, delta: text, partial: { ...partial } });
  }
  stream.push({ type: "done", reason: "stop", message: partial });
}

export default {
  name: "pi-agent-core",
  how: "`runAgentLoop` with pi-ai's own event stream and message constructors. Its faux provider is not used: at each call it estimates tokens by writing the whole history to a text, which would count against the loop.",
  module: "@mariozechner/pi-agent-core",
  uses: ["runAgentLoop"],
  prepare(work) {
    const streamFn = piStreamFn(work);
    const tools = [{ ...toolOf(work), label: "Add", parameters: parametersOf(work) }];
    const config = { model: piModel, convertToLlm: (messages) => messages };
    const listener = ({ type, assistantMessageEvent: event }) => {
      if (type === "message_update" && event.type === "text_delta") work.seen(event.delta);
    };
    return async () => {
      const prompts = [{ role: "user", content: "go", timestamp: 1 }];
      const messages = await runAgentLoop(prompts, { systemPrompt: "", messages: [], tools }, config, listener, undefined, streamFn);
      work.ended(lastText(messages));
    };
  },
};
