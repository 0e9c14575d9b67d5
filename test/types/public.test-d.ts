/** Checked by `npm run check:types`; nothing here runs. */
import {
  type AgentEvent,
  type AgentMessage,
  type AgentToolResult,
  type AssistantMessage,
  type AssistantMessageEvent,
  defineTool,
  type Message,
  type StopReason,
  type StreamFn,
  type TurnLoopError,
} from "turnloop";
import { Type } from "turnloop/schema";
import { expectTypeOf } from "vitest";
import { z } from "zod";

declare module "turnloop" {
  interface CustomAgentMessages {
    note: { role: "note"; text: string; timestamp: number };
  }
}

// SPEC 2: hosts extend the messages by declaration merging
expectTypeOf<{ role: "note"; text: string; timestamp: number }>().toExtend<AgentMessage>();
expectTypeOf<{ role: "other" }>().not.toExtend<AgentMessage>();

// SPEC 8.6: params and details are inferred from TypeBox, Zod and plain JSON Schema
defineTool({
  name: "typebox",
  description: "",
  parameters: Type.Object({ path: Type.String(), limit: Type.Optional(Type.Number()) }),
  execute: (_id, params, signal, onUpdate, call) => {
    expectTypeOf(params).toEqualTypeOf<{ path: string; limit?: number }>();
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
    expectTypeOf(call.turn).toEqualTypeOf<number>();
    onUpdate({ content: [] });
    return "text";
  },
});
defineTool({
  name: "zod",
  description: "",
  parameters: z.object({ count: z.string().transform(Number) }),
  execute: async (_id, params) => {
    expectTypeOf(params).toEqualTypeOf<{ count: number }>();
    return { content: [], details: { lines: 3 } };
  },
});
defineTool({
  name: "json",
  description: "",
  parameters: { type: "object", properties: {} },
  execute: (_id, params) => String(params.anything),
});
const detailed = defineTool({
  name: "details",
  description: "",
  parameters: Type.Object({}),
  execute: (): AgentToolResult<{ lines: number }> => ({ content: [], details: { lines: 1 } }),
});
expectTypeOf(detailed.execute).returns.toExtend<
  Promise<AgentToolResult<{ lines: number }> | string> | AgentToolResult<{ lines: number }> | string
>();

// SPEC 4: events narrow by type
declare const event: AgentEvent;
if (event.type === "message_update") expectTypeOf(event.assistantMessageEvent).toEqualTypeOf<AssistantMessageEvent>();
if (event.type === "turn_end") expectTypeOf(event.message.stopReason).toEqualTypeOf<StopReason>();

// SPEC 14.4: codes are a union
declare const error: TurnLoopError;
expectTypeOf(error.code).toExtend<string>();
// @ts-expect-error no such code
error.code === "unheard_of";

// SPEC 2.3: a StreamFn written for richer model, context and options types is accepted with no cast, also when its
// messages carry stop reasons of its own
interface RicherModel {
  id: string;
  provider: string;
  api: "their-api";
  baseUrl: string;
  input: ("text" | "image")[];
  cost: { input: number; output: number; cacheRead: number; cacheWrite: number };
  contextWindow: number;
  maxTokens: number;
}
interface TheirOptions {
  apiKey?: string;
  signal?: AbortSignal;
  reasoning?: "minimal" | "low" | "medium" | "high" | "xhigh";
  onPayload?: (payload: unknown) => void;
}
type TheirAnswer = Omit<AssistantMessage, "stopReason"> & { stopReason: "stop" | "toolUse" | "paused"; responseId?: string };
declare class TheirStream
  implements
    AsyncIterable<{ type: "start"; partial: TheirAnswer } | { type: "done"; reason: "stop" | "toolUse" | "paused"; message: TheirAnswer }>
{
  [Symbol.asyncIterator](): AsyncIterator<
    { type: "start"; partial: TheirAnswer } | { type: "done"; reason: "stop" | "toolUse" | "paused"; message: TheirAnswer }
  >;
  push(): void;
  result(): Promise<TheirAnswer>;
}
declare function streamSimple(
  model: RicherModel,
  context: { systemPrompt?: string; messages: Message[]; tools?: { name: string; description: string; parameters: object }[] },
  options?: TheirOptions,
): TheirStream;
export const theirs: StreamFn = streamSimple;

// SPEC 3.1: an async generator is a StreamFn
export const generator: StreamFn = async function* (model) {
  yield { type: "start", partial: {} as AssistantMessage };
  yield { type: "done", reason: "stop", message: { model: model.id } as AssistantMessage };
};
