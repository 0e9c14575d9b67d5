import { Agent, defineTool, stopAfterTurns, withRetry } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { z } from "zod";

const weather = defineTool({
  name: "weather",
  description: "The weather in a city",
  parameters: z.object({ city: z.string() }),
  async execute(_id, { city }, signal, onUpdate) {
    onUpdate({ content: [{ type: "text", text: "asking" }] });
    signal.throwIfAborted(); // what you await gets the signal
    const details = { city, celsius: 20 };
    return { content: [{ type: "text", text: JSON.stringify(details) }], details };
  },
});
const streamFn = scriptedModel([[{ toolCall: "weather", args: { city: "Oslo" } }], "20 °C."]); // aiSdk(openai("gpt-5-mini"))
const agent = new Agent({
  streamFn: withRetry(streamFn, { maxRetries: 2 }),
  model: { id: "gpt-5-mini", provider: "openai" },
  systemPrompt: "Be brief.",
  tools: [weather],
  shouldStopAfterTurn: stopAfterTurns(20),
});
let shown = "";
agent.on("message_update", ({ assistantMessageEvent: update }) => {
  if (update.type === "text_delta") shown += update.delta;
});
const { outcome, error, usage } = await agent.prompt("What is the weather in Oslo?");
if (error) console.error(error.message);
console.log(outcome, shown, usage.totalTokens);
