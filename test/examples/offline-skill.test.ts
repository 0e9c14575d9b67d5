import { defineTool, runAgentLoop, userMessage } from "turnloop";
import { Type } from "turnloop/schema";
import { expect, test } from "vitest";
import { evaluate } from "../../examples/calculator.js";
import { offlineModel } from "../../examples/offline-model.js";
import type { Skill } from "../../examples/offline-skill.js";
import { MODEL } from "./helpers.js";

const greet: Skill = {
  verbs: ["greet"],
  pattern: /^greet (.+)$/i,
  describe: ([name]) => `greet ${name}`,
  *work([name = ""]) {
    const [looked] = yield [{ name: "look_up", args: { name } }];
    const [said] = yield [{ name: "say", args: { text: `Hello, ${looked?.text}` } }];
    return `I said: ${said?.text}`;
  },
};

const tools = [
  defineTool({
    name: "look_up",
    description: "",
    parameters: Type.Object({ name: Type.String() }),
    execute: (_id, { name }) => name.toUpperCase(),
  }),
  defineTool({ name: "say", description: "", parameters: Type.Object({ text: Type.String() }), execute: (_id, { text }) => text }),
  defineTool({
    name: "calculate",
    description: "",
    parameters: Type.Object({ expression: Type.String() }),
    execute: (_id, { expression }) => `${expression} = ${evaluate(expression)}`,
  }),
];

async function ask(question: string): Promise<string[]> {
  const model = offlineModel({ chunkDelayMs: 0, skills: [greet] });
  const messages = await runAgentLoop(
    [userMessage(question)],
    { systemPrompt: "", messages: [], tools },
    { model: MODEL },
    () => {},
    undefined,
    model,
  );
  return messages.flatMap((message) => {
    if (message.role !== "assistant") return [];
    return message.content.map((block) => {
      if (block.type === "toolCall") return `${block.name} ${JSON.stringify(block.arguments)}`;
      return block.type === "text" ? block.text : block.thinking;
    });
  });
}

test("a skill is worked on step by step, beside what the model knows; what was quoted is taken word for word", async () => {
  expect(await ask('greet "Ann, and greet Bob", and what is 1 + 1?')).toEqual([
    "Plan: greet Ann, and greet Bob; calculate 1 + 1. Next: look_up, calculate.",
    'look_up {"name":"Ann, and greet Bob"}',
    'calculate {"expression":"1 + 1"}',
    "Next: say.",
    'say {"text":"Hello, ANN, AND GREET BOB"}',
    "Now I can answer.",
    "I said: Hello, ANN, AND GREET BOB\n\n1 + 1 = 2",
  ]);
});

test("its verbs begin a request of their own", async () => {
  expect((await ask("what is 2 + 2 and greet Bob")).at(-1)).toBe("2 + 2 = 4\n\nI said: Hello, BOB");
});
