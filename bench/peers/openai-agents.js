/** The OpenAI Agents SDK, its core. */
import { Agent, Runner, tool } from "@openai/agents-core";
import { nextTick } from "../work.js";
import { parametersOf } from "./zod.js";

const usage = { requests: 1, inputTokens: 0, outputTokens: 0, totalTokens: 0 };

function lastText(input) {
  if (typeof input === "string") return input;
  const last = input[input.length - 1];
  if (last.type !== "function_call_result") return last.content;
  return typeof last.output === "string" ? last.output : last.output.text;
}

async function* streamOf(work, { calls, text, deltas, paced }) {
  yield { type: "response_started" };
  if (calls) {
    const output = calls.map(({ id, name, json }) => ({
      type: "function_call",
      callId: id,
      name,
      arguments: json,
      status: "completed",
    }));
    yield { type: "response_done", response: { id: "bench", usage, output } };
    return;
  }
  work.sending();
  for (let i = 0; i < deltas; i++) {
    if (paced) await nextTick();
    yield { type: "output_text_delta", delta: text };
  }
  const content = [{ type: "output_text", text: text.repeat(deltas) }];
  const output = [{ type: "message", role: "assistant", status: "completed", content }];
  yield { type: "response_done", response: { id: "bench", usage, output } };
}

export default {
  name: "openai-agents",
  how: "`Runner.run` with `stream: true`, every event read, tracing off, a `tool` of Zod parameters; it ships no fake model, so a `Model` of the documented shape.",
  module: "@openai/agents-core",
  uses: ["Agent", "Runner", "tool"],
  prepare(work) {
    const model = {
      getResponse: () => Promise.reject(new Error("not streamed")),
      getStreamedResponse: ({ input }) => streamOf(work, work.answer(lastText(input))),
    };
    const add = tool({
      name: "add",
      description: "Adds one",
      parameters: parametersOf(work),
      execute: async (args) => work.execute(args),
    });
    const agent = new Agent({ name: "bench", model, tools: [add] });
    const runner = new Runner({ tracingDisabled: true });
    return async () => {
      const result = await runner.run(agent, "go", { stream: true, maxTurns: work.units + 2 });
      for await (const event of result) {
        if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") work.seen(event.data.delta);
      }
      await result.completed;
      work.ended(result.finalOutput);
    };
  },
};
