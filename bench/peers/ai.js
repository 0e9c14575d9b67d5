/** The AI SDK. */
import { stepCountIs, streamText, tool } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV3 } from "ai/test";
import { nextTick } from "../work.js";
import { parametersOf } from "./zod.js";

globalThis.AI_SDK_LOG_WARNINGS = false;

const usage = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };
const finish = (unified) => ({ type: "finish", finishReason: { unified, raw: unified }, usage });

function lastText(prompt) {
  const [part] = prompt[prompt.length - 1].content;
  return part.type === "text" ? part.text : part.output.value;
}

function streamOf(work, { calls, text, deltas, paced }) {
  const start = { type: "stream-start", warnings: [] };
  if (calls) {
    const parts = calls.map(({ id, name, json }) => ({ type: "tool-call", toolCallId: id, toolName: name, input: json }));
    return convertArrayToReadableStream([start, ...parts, finish("tool-calls")]);
  }
  const delta = { type: "text-delta", id: "0", delta: text };
  const parts = [start, { type: "text-start", id: "0" }, ...Array(deltas).fill(delta), { type: "text-end", id: "0" }, finish("stop")];
  work.sending();
  if (!paced) return convertArrayToReadableStream(parts);
  let next = 0;
  return new ReadableStream({
    async pull(controller) {
      if (parts[next] === delta) await nextTick();
      controller.enqueue(parts[next++]);
      if (next === parts.length) controller.close();
    },
  });
}

export default {
  name: "ai",
  how: "`streamText` with a tool of Zod parameters, every part of `fullStream` read; `MockLanguageModelV3` and `convertArrayToReadableStream` of `ai/test`. The mock's record of requests is emptied at each call.",
  module: "ai",
  uses: ["streamText", "tool", "stepCountIs"],
  prepare(work) {
    const model = new MockLanguageModelV3({
      doStream: async ({ prompt }) => {
        model.doStreamCalls.length = 0;
        return { stream: streamOf(work, work.answer(lastText(prompt))) };
      },
    });
    const add = tool({
      description: "Adds one",
      inputSchema: parametersOf(work),
      execute: async (args) => work.execute(args),
    });
    return async () => {
      const result = streamText({ model, tools: { add }, stopWhen: stepCountIs(work.units + 2), prompt: "go" });
      for await (const part of result.fullStream) {
        if (part.type === "text-delta") work.seen(part.text);
        if (part.type === "error") throw part.error;
      }
      work.ended(await result.text);
    };
  },
};
