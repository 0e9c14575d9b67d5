import { Agent, defineTool } from "turnloop";
import { Type } from "turnloop/schema";
import { scriptedModel } from "turnloop/testing";

const weather = defineTool({
  name: "weather",
  description: "The weather in a city",
  parameters: Type.Object({ city: Type.String() }),
  execute: async (_id, { city }) => ({ content: [{ type: "text", text: `Sunny in ${city}.` }], details: { city } }),
});
const agent = new Agent({
  model: { id: "scripted", provider: "none" }, // getModel("openai", "gpt-4.1-mini")
  streamFn: scriptedModel([[{ toolCall: "weather", args: { city: "Oslo" } }], "Sunny, 20 °C."]), // streamSimple of pi-ai
  systemPrompt: "Be brief.",
  tools: [weather],
  streamOptions: { reasoning: "low" },
  beforeToolCall: ({ toolCall }) => (toolCall.name === "weather" ? undefined : { block: true, reason: "Not here." }),
});
let shown = "";
agent.on("message_update", ({ assistantMessageEvent: update }) => {
  if (update.type === "text_delta") shown += update.delta;
});
agent.steer("In Celsius.");
const { outcome, error } = await agent.prompt("What is the weather in Oslo?");
if (error) console.error(error.message);
console.log(outcome, shown);
