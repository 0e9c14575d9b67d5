import { Agent, type AgentOptions, defineTool, parseTranscript } from "turnloop";
import { Type } from "turnloop/schema";
import { scriptedModel } from "turnloop/testing";

const parameters = Type.Object({ euros: Type.Number() });
const pay = defineTool({ name: "pay", description: "Pays a bill", parameters, execute: (_id, { euros }) => `Paid ${euros} euros.` });
const options: AgentOptions = {
  model: { id: "scripted", provider: "none" },
  streamFn: scriptedModel([[{ toolCall: "pay", args: { euros: 40 } }], "The bill is paid."]),
  tools: [pay],
  beforeToolCall: ({ toolCall }) => (toolCall.name === "pay" ? { suspend: true, reason: "It costs money." } : undefined),
};
const monday = new Agent(options);
const { outcome, pending } = await monday.prompt("Pay the bill."); // "suspended", and what to ask the user
const stored = JSON.stringify(monday.messages); // this process may end here

const tuesday = new Agent({ ...options, messages: parseTranscript(stored) });
const decisions = tuesday.pendingApprovals.map(({ toolCall }) => ({ toolCallId: toolCall.id, action: "approve" as const }));
const { messages } = await tuesday.resume(decisions);
console.log(outcome, pending?.[0]?.args, messages.at(-1)?.content);
