/** TanStack AI. */
import { chat, maxIterations, toolDefinition } from "@tanstack/ai";
import { BaseTextAdapter } from "@tanstack/ai/adapters";
import { nextTick } from "../work.js";
import { parametersOf } from "./zod.js";

function lastText(messages) {
  const { content } = messages[messages.length - 1];
  if (typeof content !== "string") return content[0].content;
  return content.startsWith('"') ? JSON.parse(content) : content;
}

class BenchAdapter extends BaseTextAdapter {
  name = "bench";

  constructor(work) {
    super({}, "bench");
    this.work = work;
  }

  structuredOutput() {
    return Promise.reject(new Error("not asked for"));
  }

  async *chatStream({ messages }) {
    const { work } = this;
    const { calls, text, deltas, paced } = work.answer(lastText(messages));
    const run = { runId: "run", threadId: "thread", model: "bench", timestamp: 1 };
    yield { type: "RUN_STARTED", ...run };
    if (calls) {
      for (const { id, name, json } of calls) {
        yield { type: "TOOL_CALL_START", toolCallId: id, toolCallName: name, toolName: name, timestamp: 1 };
        yield { type: "TOOL_CALL_ARGS", toolCallId: id, delta: json, timestamp: 1 };
        yield { type: "TOOL_CALL_END", toolCallId: id, toolCallName: name, toolName: name, timestamp: 1 };
      }
      yield { type: "RUN_FINISHED", ...run, finishReason: "tool_calls" };
      return;
    }
    yield { type: "TEXT_MESSAGE_START", messageId: "message", role: "assistant", timestamp: 1 };
    work.sending();
    for (let i = 0; i < deltas; i++) {
      if (paced) await nextTick();
      yield { type: "TEXT_MESSAGE_CONTENT", messageId: "message", delta: text, timestamp: 1 };
    }
    yield { type: "TEXT_MESSAGE_END", messageId: "message", timestamp: 1 };
    yield { type: "RUN_FINISHED", ...run, finishReason: "stop" };
  }
}

export default {
  name: "tanstack",
  how: "`chat`, every chunk read, a `toolDefinition` of Zod parameters; it ships no fake adapter, so a `BaseTextAdapter` of the documented shape.",
  module: "@tanstack/ai",
  uses: ["chat", "maxIterations", "toolDefinition"],
  prepare(work) {
    const add = toolDefinition({
      name: "add",
      description: "Adds one",
      inputSchema: parametersOf(work),
    }).server(async (args) => work.execute(args));
    const adapter = new BenchAdapter(work);
    return async () => {
      let text = "";
      const messages = [{ role: "user", content: "go" }];
      for await (const chunk of chat({ adapter, messages, tools: [add], agentLoopStrategy: maxIterations(work.units + 2) })) {
        if (chunk.type === "RUN_ERROR") throw new Error(chunk.message);
        if (chunk.type !== "TEXT_MESSAGE_CONTENT") continue;
        text += chunk.delta;
        work.seen(chunk.delta);
      }
      work.ended(text);
    };
  },
};
