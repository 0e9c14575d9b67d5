/** Checked by `npm run check:types`; nothing here runs. */
import {
  Agent,
  type AgentEvent,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentOptions,
  type AgentRunResult,
  type AgentTool,
  anyOf,
  keepLast,
  limitToolOutput,
  type MessageQueue,
  type Model,
  type ModelErrorInfo,
  parseTranscript,
  type RunOutcome,
  rawTextChannel,
  routeProgress,
  type StreamFn,
  stopAfterTurns,
  type ThinkingEvent,
  type ThinkingOptions,
  type ToolRegistry,
  type ToolResultMessage,
  type Usage,
  withFallback,
  withRetry,
  withStallTimeout,
  withThinkingCard,
} from "turnloop";
import { expectTypeOf } from "vitest";

declare const model: Model;
declare const streamFn: StreamFn;
declare const message: AgentMessage;
const agent = new Agent({ model, streamFn });

// SPEC 8.4: `on` infers the event from its name, and takes no other name
agent.on("turn_end", (event) => {
  expectTypeOf(event).toEqualTypeOf<Extract<AgentEvent, { type: "turn_end" }>>();
  expectTypeOf(event.toolResults).toEqualTypeOf<ToolResultMessage[]>();
});
agent.once("agent_end", ({ outcome }) => expectTypeOf(outcome).toEqualTypeOf<RunOutcome>());
agent.addListener("tool_execution_end", ({ toolName, isError }) => {
  expectTypeOf(toolName).toEqualTypeOf<string>();
  expectTypeOf(isError).toEqualTypeOf<boolean>();
});
agent.on("queue_change", (change) => expectTypeOf(change).toEqualTypeOf<{ steering: AgentMessage[]; followUp: AgentMessage[] }>());
agent.on("agent_start", async () => {});
expectTypeOf(agent.on("agent_start", () => {})).toEqualTypeOf<Agent<Model>>();
const onStart = (event: { type: "turn_start" }): void => void event;
agent.on("turn_start", onStart).off("turn_start", onStart).removeListener("turn_start", onStart);
// @ts-expect-error no such event
agent.on("turn_ended", () => {});
// @ts-expect-error no such event
agent.once("*", () => {});
// @ts-expect-error no such event
agent.off("data");
// @ts-expect-error a turn_start has no message
agent.on("turn_start", ({ message }) => message);
// @ts-expect-error a listener of another event
agent.on("agent_end", (event: { type: "turn_start" }) => event);
const stop = agent.subscribe((event) => {
  expectTypeOf(event).toEqualTypeOf<AgentEvent>();
});
agent.subscribe(async () => {});
expectTypeOf(stop).toEqualTypeOf<() => void>();

// SPEC 8: options are those of the loop and the Agent's own; only the model and the StreamFn are needed
expectTypeOf<AgentOptions>().toExtend<AgentLoopConfig>();
new Agent({
  model,
  streamFn,
  systemPrompt: "",
  messages: [],
  tools: new Set<AgentTool>(),
  steeringMode: "all",
  followUpMode: "one-at-a-time",
  onListenerError: (error) => {
    expectTypeOf(error).toEqualTypeOf<unknown>();
  },
  transformContext: keepLast(20),
  afterToolCall: limitToolOutput(10_000),
  shouldStopAfterTurn: anyOf(stopAfterTurns(3), ({ turn }) => turn > 2),
});
// @ts-expect-error no StreamFn
new Agent({ model });
// @ts-expect-error no model
new Agent({ streamFn });
// @ts-expect-error no such mode
new Agent({ model, streamFn, steeringMode: "some" });
// @ts-expect-error no such option
new Agent({ model, streamFn, steringMode: "all" });
interface HostModel extends Model {
  region: string;
}
declare const hostModel: HostModel;
const hosted = new Agent({ model: hostModel, streamFn });
expectTypeOf(hosted.model).toEqualTypeOf<HostModel>();

// SPEC 8.1
expectTypeOf(agent.prompt("text", { images: [], signal: new AbortController().signal })).toEqualTypeOf<Promise<AgentRunResult>>();
expectTypeOf(agent.continue()).toEqualTypeOf<Promise<AgentRunResult>>();
expectTypeOf(agent.retry()).toEqualTypeOf<Promise<AgentRunResult>>();
expectTypeOf(agent.waitForIdle()).toEqualTypeOf<Promise<void>>();
expectTypeOf<AgentRunResult>().toExtend<{ messages: AgentMessage[]; outcome: RunOutcome; usage: Usage }>();
expectTypeOf<AgentRunResult["error"]>().toEqualTypeOf<{ message: string; info?: ModelErrorInfo } | undefined>();
agent.prompt(message);
agent.prompt([message]);
agent.steer(message);
agent.followUp("text");
agent.abort(new Error("why"));
// @ts-expect-error one message at a time
agent.steer([message]);
// @ts-expect-error no prompt
agent.prompt();

// SPEC 9.1, 9.2
const quiet: ThinkingOptions = {};
const shown = new Agent({ model, streamFn, thinking: quiet });
shown.on("thinking", (event) => {
  expectTypeOf(event).toEqualTypeOf<ThinkingEvent>();
  expectTypeOf(event.outcome).toEqualTypeOf<"delta" | "done" | "error" | "aborted" | undefined>();
});
new Agent({ model, streamFn, thinking: true });
// @ts-expect-error no run's event
shown.subscribe((event: ThinkingEvent) => void event);
expectTypeOf(withThinkingCard(streamFn, { onProgress: routeProgress([rawTextChannel()]) })).toEqualTypeOf<StreamFn>();
// @ts-expect-error no such option
withThinkingCard(streamFn, { heartbeat: 3 });

// SPEC 8.2: what may be set and what may only be read
expectTypeOf(agent.messages).toEqualTypeOf<readonly AgentMessage[]>();
expectTypeOf(agent.pendingToolCalls).toEqualTypeOf<ReadonlySet<string>>();
expectTypeOf(agent.tools).toEqualTypeOf<ToolRegistry>();
expectTypeOf(agent.steeringQueue).toEqualTypeOf<MessageQueue>();
expectTypeOf(agent.followUpQueue.peek()).toEqualTypeOf<AgentMessage[]>();
expectTypeOf(agent.followUpQueue.remove(message)).toEqualTypeOf<boolean>();
agent.systemPrompt = "new";
agent.model = model;
agent.steeringQueue.mode = "all";
// @ts-expect-error read only
agent.messages.push(message);
// @ts-expect-error replaceMessages does this
agent.messages = [];
// @ts-expect-error read only
agent.isRunning = false;
// @ts-expect-error read only
agent.steeringQueue.size = 0;

// SPEC 11: decorators take and give a StreamFn
expectTypeOf(withRetry).returns.toEqualTypeOf<StreamFn>();
expectTypeOf(
  withFallback([{ streamFn }, { streamFn: withRetry(withStallTimeout(streamFn, { idleMs: 1 })), model }]),
).toEqualTypeOf<StreamFn>();
withRetry(streamFn, {
  maxRetries: 1,
  shouldRetry: (info, attempt) => {
    expectTypeOf(info).toEqualTypeOf<ModelErrorInfo>();
    return attempt < 2;
  },
  onRetry: ({ attempt, delayMs, info }) => {
    expectTypeOf([attempt, delayMs]).toEqualTypeOf<number[]>();
    expectTypeOf(info.kind).toExtend<string>();
  },
});
// @ts-expect-error no such option
withRetry(streamFn, { retries: 3 });
// @ts-expect-error a candidate is an object
withFallback([streamFn]);

// SPEC 6.6
expectTypeOf(parseTranscript("[]")).toEqualTypeOf<AgentMessage[]>();
