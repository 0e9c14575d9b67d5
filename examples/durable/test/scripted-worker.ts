/** A worker whose model and tools do as the test's folder says: what they did is one line each, what holds them up a file. */
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { AssistantMessageBuilder, type Message, type StreamFn } from "turnloop";
import { startWorker } from "../start-worker.js";
import { plans, textOf } from "./plans.js";

const folder = process.env["TEST_FOLDER"] as string;
const note = (file: string, line: string): void => appendFileSync(join(folder, file), `${line}\n`);

async function passGate(name: string, signal: AbortSignal | undefined): Promise<void> {
  while (existsSync(join(folder, `hold ${name}`))) {
    signal?.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const scripted: StreamFn = async function* (model, context, options) {
  const asked = context.messages.map((message) => message.role === "user" && textOf(message).startsWith("do "));
  const since: Message[] = context.messages.slice(asked.lastIndexOf(true));
  const [, plan = "", key = ""] = textOf(since[0]).split(" ");
  const turn = since.filter(({ role }) => role === "assistant").length;
  const answer = plans[plan]?.[turn] ?? { text: "There is no plan for this.", calls: [] };
  const builder = new AssistantMessageBuilder(model);
  const name = `${key} model ${turn + 1}`;
  note("effects", name);
  try {
    yield* builder.text(answer.text.slice(0, 4));
    await passGate(name, options?.signal);
    yield* builder.text(answer.text.slice(4));
    for (const id of answer.calls) {
      yield* builder.toolCallStart(`call-${id}`, id.startsWith("deploy") ? "deploy" : "work");
      yield* builder.toolCallDelta(JSON.stringify({ name: `${key} ${id}` }));
      yield* builder.toolCallEnd();
    }
    yield* builder.done();
  } catch (error) {
    yield* builder.fail(error);
  }
};

const work = (name: string) => ({
  name,
  description: "leaves a line in the folder",
  parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  execute: async (_id: string, { name }: { name: string }, signal: AbortSignal, _onUpdate: unknown, { idempotencyKey = "" }) => {
    note("effects", name);
    note("keys", `${name} ${idempotencyKey}`);
    await passGate(name, signal);
    await new Promise((resolve) => setTimeout(resolve, 5));
    return { content: [{ type: "text" as const, text: `did ${name}` }], details: { key: idempotencyKey } };
  },
});

await startWorker({
  model: { id: "scripted", provider: "test" },
  streamFn: scripted,
  tools: [work("work"), work("deploy")],
  systemPrompt: "",
  config: {
    maxParallelToolCalls: 2,
    beforeToolCall: ({ toolCall }) => (toolCall.name === "deploy" ? { suspend: true, reason: "production" } : undefined),
    afterToolCall: async ({ toolCall }) => {
      if (toolCall.id === "call-mistake") await new Promise((resolve) => setTimeout(resolve, 50));
    },
  },
  emit: (conversation, event) => {
    if (event.type === "tool_execution_end") note(`events ${conversation}`, `end ${event.toolCallId}`);
    else if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta")
      note(`events ${conversation}`, `delta ${event.assistantMessageEvent.delta}`);
  },
});
