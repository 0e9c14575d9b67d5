/** LangChain's createAgent, which runs on LangGraph. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { createAgent, tool } from "langchain";
import { nextTick } from "../work.js";
import { parametersOf } from "./zod.js";

const toolCalls = (calls) => calls.map(({ id, name, args, json }) => ({ type: "tool_call", id, name, args: args ?? JSON.parse(json) }));

class BenchModel extends BaseChatModel {
  constructor(work) {
    super({});
    this.work = work;
  }

  _llmType() {
    return "bench";
  }

  bindTools() {
    return this;
  }

  #answer(messages) {
    return this.work.answer(messages[messages.length - 1].content);
  }

  async _generate(messages) {
    const { calls, text } = this.#answer(messages);
    const message = calls ? new AIMessage({ content: "", tool_calls: toolCalls(calls) }) : new AIMessage(text);
    return { generations: [{ text: message.content, message }] };
  }

  async *_streamResponseChunks(messages, _options, runManager) {
    const { calls, text, deltas, paced } = this.#answer(messages);
    if (calls) {
      yield new ChatGenerationChunk({ text: "", message: new AIMessageChunk({ content: "", tool_calls: toolCalls(calls) }) });
      return;
    }
    this.work.sending();
    for (let i = 0; i < deltas; i++) {
      if (paced) await nextTick();
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) });
      yield chunk;
      await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

export default {
  name: "langchain",
  how: "`createAgent`, a `tool` of Zod parameters. `invoke` where nothing is streamed, which is faster than its `stream`; `stream` in the mode `messages` for deltas. A `BaseChatModel` of the documented shape: its `fakeModel` does not stream and wants a queued response for each call.",
  module: "langchain",
  uses: ["createAgent", "tool"],
  prepare(work) {
    const add = tool(async (args) => work.execute(args), {
      name: "add",
      description: "Adds one",
      schema: parametersOf(work),
    });
    const agent = createAgent({ model: new BenchModel(work), tools: [add] });
    const input = { messages: [{ role: "user", content: "go" }] };
    const options = { recursionLimit: 2 * work.units + 10 };
    if (work.name !== "deltas" && work.name !== "latencies") {
      return async () => work.ended((await agent.invoke(input, options)).messages.at(-1).content);
    }
    return async () => {
      let text = "";
      for await (const [message] of await agent.stream(input, { ...options, streamMode: "messages" })) {
        if (!AIMessageChunk.isInstance(message) || message.content === "") continue;
        text += message.content;
        work.seen(message.content);
      }
      work.ended(text);
    };
  },
};
