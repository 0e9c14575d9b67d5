/** Checked by `npm run test:pi-ai`; nothing here runs. */
import * as pi074 from "@earendil-works/pi-ai";
import * as pi073 from "@mariozechner/pi-ai";
import * as pi1 from "pi-ai-1";
import {
  Agent,
  type AgentEventSink,
  type AssistantMessage,
  type LlmContext,
  type Message,
  type Model,
  runAgentLoop,
  type StreamFn,
} from "turnloop";
import { expectTypeOf } from "vitest";

declare const emit: AgentEventSink;
declare const transcript: Message[];
const context = { systemPrompt: "", messages: transcript };

// SPEC 2.3: their types are there at all; an import that could not be resolved would be any and fit everything
expectTypeOf<pi073.AssistantMessage["role"]>().toEqualTypeOf<"assistant">();
expectTypeOf<pi074.AssistantMessage["role"]>().toEqualTypeOf<"assistant">();
expectTypeOf<pi1.AssistantMessage["role"]>().toEqualTypeOf<"assistant">();
expectTypeOf(pi073.streamSimple).not.toBeAny();
expectTypeOf(pi074.streamSimple).not.toBeAny();
expectTypeOf(pi1.createModels).not.toBeAny();

// SPEC 2.3: their stream functions are StreamFns as they are
declare const models: pi1.Models;
export const streamFns: StreamFn[] = [pi073.streamSimple, pi073.stream, pi074.streamSimple, pi074.stream, models.streamSimple.bind(models)];
export const typed: StreamFn<pi073.Model<"openai-completions">> = pi073.streamOpenAICompletions;
// @ts-expect-error it gives a message, not a stream
export const noStreamFn: StreamFn = pi073.complete;

// SPEC 2.3: their models are models, their messages messages
declare const model073: pi073.Model<pi073.Api>;
declare const model074: pi074.Model<"anthropic-messages">;
declare const model1: pi1.Model<pi1.Api>;
export const fitting: Model[] = [model073, model074, model1];

// SPEC 2.3: the loop and Agent take both
await runAgentLoop([{ role: "user", content: "", timestamp: 0 }], context, { model: model073 }, emit, undefined, pi073.streamSimple);
await runAgentLoop([{ role: "user", content: "", timestamp: 0 }], context, { model: model074 }, emit, undefined, pi074.streamSimple);
await runAgentLoop(
  [{ role: "user", content: "", timestamp: 0 }],
  context,
  { model: model1 },
  emit,
  undefined,
  models.streamSimple.bind(models),
);
await runAgentLoop([], context, { model: pi073.getModel("openai", "gpt-4.1-mini") }, emit, undefined, pi073.streamSimple);
new Agent({ model: model073, streamFn: pi073.streamSimple });
new Agent({ model: model074, streamFn: pi074.streamSimple });
new Agent({ model: model1, streamFn: models.streamSimple.bind(models) });

// SPEC 2.3: messages go there and back. What comes out of 1.6 has stop reasons of its own; what the loop makes of them is one of five
expectTypeOf<pi073.Message>().toExtend<Message>();
expectTypeOf<pi074.Message>().toExtend<Message>();
expectTypeOf<Message>().toExtend<pi073.Message>();
expectTypeOf<Message>().toExtend<pi074.Message>();
expectTypeOf<Message>().toExtend<pi1.Message>();
expectTypeOf<pi1.AssistantMessage>().toExtend<AssistantMessage<string>>();
expectTypeOf<pi1.UserMessage | pi1.ToolResultMessage>().toExtend<Message>();
expectTypeOf<Omit<LlmContext, "tools">>().toExtend<pi073.Context>();
expectTypeOf<Omit<LlmContext, "tools">>().toExtend<pi1.Context>();
expectTypeOf<LlmContext>().toExtend<pi073.Context>();
expectTypeOf<LlmContext>().toExtend<pi074.Context>();
expectTypeOf<LlmContext>().toExtend<pi1.Context>();
