/** One run with the three kinds of tool schema, on the built package as it is: for places where little is permitted. */
import { runAgentLoop, ThinkingCard, userMessage } from "../../dist/index.js";
import { Type } from "../../dist/schema.js";
import { scriptedModel } from "../../dist/testing.js";

const tool = (name, parameters) => ({ name, description: name, parameters, execute: (_id, args) => JSON.stringify(args) });
const city = { type: "string", pattern: "^[A-Z]", maxLength: 20 };

const tools = [
  tool("typebox", Type.Object({ city: Type.String({ minLength: 2 }), days: Type.Integer({ minimum: 1, default: 7 }) })),
  tool("plain", { type: "object", properties: { city, on: { type: "string", format: "date" } }, required: ["city"] }),
];

const calls = [
  { toolCall: "typebox", args: { city: "Paris", days: 2 } },
  { toolCall: "plain", args: { city: "Paris", on: "2024-02-29" } },
  // what models get wrong: put right where there is one way to, refused otherwise
  { toolCall: "typebox", args: { city: "Paris", days: "2" } },
  { toolCall: "plain", args: { city: "paris" } },
];

/** What each result says, and how the run ended. */
export async function toolCalls() {
  const outcomes = [];
  const card = new ThinkingCard({ heartbeatMs: 60_000, onProgress: ({ state }) => void outcomes.push(state) });
  card.start();
  const messages = await runAgentLoop(
    [userMessage("go")],
    { systemPrompt: "", messages: [], tools },
    { model: { id: "test", provider: "test", api: "test" } },
    (event) => void (event.type === "agent_end" && outcomes.push(event.outcome)),
    undefined,
    scriptedModel([calls, "done"]),
  );
  card.complete();
  const lines = messages.map(({ role, isError, content }) => `${role}${isError ? " (error)" : ""}: ${text(content)}`);
  return [...lines, ...outcomes];
}

const text = (content) =>
  typeof content === "string" ? content : content.map((block) => (block.type === "toolCall" ? `<${block.name}>` : block.text)).join("");

/** What it has to say, the words of the refusal aside. */
export const expected = [
  "user: go",
  "assistant: <typebox><plain><typebox><plain>",
  'toolResult: {"city":"Paris","days":2}',
  'toolResult: {"city":"Paris","on":"2024-02-29"}',
  'toolResult: {"city":"Paris","days":2}',
  /^toolResult \(error\): .*city/s,
  "assistant: done",
  "start",
  "completed",
  "complete",
];

/** The first line that is not as expected. */
export const wrong = (lines) =>
  lines.length === expected.length
    ? lines.find((line, i) => (typeof expected[i] === "string" ? line !== expected[i] : !expected[i].test(line)))
    : `${lines.length} lines: ${lines.join("\n")}`;
