import { defineTool, runAgentLoop, userMessage } from "turnloop";
import { Type } from "turnloop/schema";
import { scriptedModel } from "turnloop/testing";

const add = defineTool({
  name: "add",
  description: "Adds two numbers",
  parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
  execute: (_id, { a, b }) => `${a + b}`,
});
const model = scriptedModel([[{ toolCall: "add", args: { a: 2, b: 3 } }], "2 + 3 is 5."]); // stands in for a real one
const context = { systemPrompt: "Be brief.", messages: [], tools: [add] };
const config = { model: { id: "scripted", provider: "none" } };
const messages = await runAgentLoop([userMessage("2 + 3?")], context, config, (event) => console.log(event.type), undefined, model);
console.log(messages.at(-1)?.content);
