/** What a user interface shows, worked out from events, and the events as they go over a wire (SPEC 15.1). */
import type { AgentEvent, PendingToolCall, RunOutcome } from "./events.js";
import type { AgentMessage, AssistantMessage, ModelErrorInfo, ToolCall } from "./messages.js";
import type { ThinkingEvent } from "./thinking/thinking-card.js";
import { pendingCalls } from "./transcript.js";

type Block = AssistantMessage["content"][number];
/** @inline */
type Update = Extract<AgentEvent, { type: "message_update" }>;

/** One tool call, for a card. Times are those given to `reduceEvents`. */
export interface ToolCallView {
  toolCallId: string;
  toolName: string;
  args: any;
  /** `failed` also when it waited for a decision and the conversation went on without one. */
  status: "running" | "suspended" | "completed" | "failed";
  /** The last partial result. The result itself is in `messages`. */
  progress?: any;
  startedAt?: number;
  endedAt?: number;
}

/**
 * Everything there is to show of a conversation: plain JSON as far as the host's `details` are, and what a schema makes of
 * `pending` arguments. An Agent's state is the same after each event of its runs; `retry`, `replaceMessages` and `reset` change its
 * messages without one, so begin a new view then.
 */
export interface ViewState {
  messages: readonly AgentMessage[];
  /** The answer that is streaming. Of wire events, a call's arguments come with its end. */
  streamingMessage?: AssistantMessage;
  /** In the order they started; an id may come again in a later turn. */
  toolCalls: readonly ToolCallView[];
  /** The open thinking card. */
  thinking?: ThinkingEvent;
  queues: { steering: readonly AgentMessage[]; followUp: readonly AgentMessage[] };
  /** How the last run ended; undefined while one is on. */
  outcome?: RunOutcome;
  error?: { message: string; info?: ModelErrorInfo };
  /** The calls that wait for a decision. */
  pending?: PendingToolCall[];
}

/** What an Agent tells beside the events of its runs. @inline */
type HostEvent =
  | { type: "thinking"; event: ThinkingEvent }
  | { type: "queue_change"; steering: readonly AgentMessage[]; followUp: readonly AgentMessage[] };

/** An update of an answer without the answer: a `start` (it begins anew) has what it begins with, the start of a call its id and name. */
export type WireUpdate =
  | { type: "start"; message: AssistantMessage }
  | { type: "text_start" | "thinking_start"; contentIndex: number }
  | { type: "toolcall_start"; contentIndex: number; id: string; name: string }
  | { type: "text_delta" | "thinking_delta" | "toolcall_delta"; contentIndex: number; delta: string }
  | { type: "text_end" | "thinking_end"; contentIndex: number; content: string }
  | { type: "toolcall_end"; contentIndex: number; toolCall: ToolCall };

/** An event as it goes over a wire: what it adds, so that a stream of them grows with the answer and not with its square. */
export type WireEvent = Exclude<AgentEvent, Update> | { type: "message_update"; assistantMessageEvent: WireUpdate } | HostEvent;

/**
 * The view of a transcript, or of nothing. To attach to an Agent in the middle, add what it holds beside its messages:
 * `{ ...initialView(agent.messages), pending: agent.pendingApprovals }`, `streamingMessage`, `queues`.
 */
export function initialView(messages: readonly AgentMessage[] = []): ViewState {
  return { messages: [...messages], toolCalls: [], queues: { steering: [], followUp: [] } };
}

/**
 * The view after one more event: of a live run, of a recorded log, or from a wire. Pure; what an event does not change is the
 * same object as before. `at` stamps tool calls (Unix milliseconds).
 *
 * @example
 * let view = initialView(agent.messages);
 * agent.subscribe((event) => render((view = reduceEvents(view, event, Date.now()))));
 */
export function reduceEvents(view: ViewState, event: AgentEvent | WireEvent, at?: number): ViewState {
  switch (event.type) {
    case "agent_start": {
      const { outcome, error, pending, ...rest } = view;
      return rest;
    }
    case "agent_end":
      return endRun(view, event);
    case "turn_start":
      return resumeCalls(view);
    case "message_start": {
      const known = event.message.role === "toolResult" ? view : leaveCalls(view, "failed", at);
      return event.message.role === "assistant" ? { ...known, streamingMessage: event.message as AssistantMessage } : known;
    }
    case "message_update":
      return updateAnswer(view, event);
    case "message_end": {
      const { streamingMessage, ...rest } = view;
      return { ...rest, messages: [...view.messages, event.message] };
    }
    case "tool_execution_start": {
      const { toolCallId, toolName, args } = event;
      const started: ToolCallView = { toolCallId, toolName, args, status: "running", ...(at !== undefined && { startedAt: at }) };
      return { ...view, toolCalls: [...view.toolCalls, started] };
    }
    case "tool_execution_update":
      return changeCall(view, event, { progress: event.partialResult });
    case "tool_execution_end":
      return changeCall(view, event, { status: event.isError ? "failed" : "completed", ...(at !== undefined && { endedAt: at }) });
    case "thinking": {
      const { thinking, ...rest } = view;
      if (event.event.state !== "complete") return { ...rest, thinking: event.event };
      return thinking?.cardId === event.event.cardId ? rest : view;
    }
    case "queue_change":
      return { ...view, queues: { steering: event.steering, followUp: event.followUp } };
    default:
      return view;
  }
}

/**
 * The event as it goes over a wire. Everything but the start and the updates of an answer stays as it is: what the answer
 * has at its start comes again with its updates.
 */
export function toWireEvent(event: AgentEvent | HostEvent): WireEvent {
  if (event.type === "message_start" && event.message.role === "assistant")
    return { type: "message_start", message: { ...(event.message as AssistantMessage), content: [] } };
  if (event.type !== "message_update") return event;
  return { type: "message_update", assistantMessageEvent: toWireUpdate(event) };
}

function toWireUpdate({ assistantMessageEvent: update, message }: Update): WireUpdate {
  if (update.type === "start") return { type: "start", message };
  if (update.type === "toolcall_start") {
    const { id = "", name = "" } = (message.content[update.contentIndex] ?? {}) as Partial<ToolCall>;
    return { type: update.type, contentIndex: update.contentIndex, id, name };
  }
  const { partial, ...rest } = update as typeof update & { partial: unknown };
  return rest as WireUpdate;
}

function endRun(view: ViewState, { outcome, error, pending }: Extract<AgentEvent, { type: "agent_end" }>): ViewState {
  const { streamingMessage, thinking, ...rest } = view;
  const waiting = pending ?? pendingCalls(view.messages)?.calls.map((call) => ({ toolCall: call, args: call.arguments }));
  const ended: ViewState = { ...rest, outcome, ...(error && { error }), ...(waiting && { pending: waiting }) };
  return (waiting ?? []).reduce(
    (suspended, { toolCall: { id, name }, args }) =>
      changeCall(suspended, { toolCallId: id, toolName: name }, { status: "suspended", args }),
    leaveCalls(ended, "suspended"),
  );
}

/** A turn that begins with calls in want of a result resumes them; if not, its first message shows that (SPEC 15.3). */
function resumeCalls(view: ViewState): ViewState {
  const calls = pendingCalls(view.messages)?.calls ?? [];
  return calls.reduce((resumed, { id, name }) => changeCall(resumed, { toolCallId: id, toolName: name }, { status: "running" }), view);
}

/** The calls that will get no end in this run. */
function leaveCalls(view: ViewState, status: "suspended" | "failed", at?: number): ViewState {
  const isOpen = (call: ToolCallView): boolean => call.status === "running" || call.status === "suspended";
  if (!view.toolCalls.some(isOpen)) return view;
  const left = { status, ...(status === "failed" && at !== undefined && { endedAt: at }) };
  return { ...view, toolCalls: view.toolCalls.map((call) => (isOpen(call) ? { ...call, ...left } : call)) };
}

/** Changes the newest call of the id. One that this view has not seen starting is taken from the transcript. */
function changeCall(view: ViewState, call: { toolCallId: string; toolName: string }, change: Partial<ToolCallView>): ViewState {
  const { toolCallId, toolName } = call;
  const toolCalls = view.toolCalls.slice();
  let index = toolCalls.length - 1;
  while (index >= 0 && toolCalls[index]?.toolCallId !== toolCallId) index--;
  if (index < 0) index = toolCalls.length;
  const known = toolCalls[index] ?? { toolCallId, toolName, args: argumentsOf(view, toolCallId), status: "running" };
  toolCalls[index] = { ...known, ...change };
  return { ...view, toolCalls };
}

/** A block begins at most so far behind those before it: an index that is no place must not cost memory. */
const MAX_GAP = 100;

function argumentsOf({ messages }: ViewState, toolCallId: string): unknown {
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i] as AgentMessage;
    if (message.role !== "assistant") continue;
    const call = (message as AssistantMessage).content.find((block) => block.type === "toolCall" && block.id === toolCallId);
    return (call as ToolCall | undefined)?.arguments ?? {};
  }
  return {};
}

function updateAnswer(view: ViewState, event: Update | Extract<WireEvent, { type: "message_update" }>): ViewState {
  if ("message" in event) return { ...view, streamingMessage: event.message };
  const update = event.assistantMessageEvent;
  if (update.type === "start") return { ...view, streamingMessage: update.message };
  const { streamingMessage } = view;
  const { contentIndex } = update;
  if (!streamingMessage || !Number.isInteger(contentIndex) || contentIndex < 0) return view;
  if (contentIndex > streamingMessage.content.length + MAX_GAP) return view;
  const content = streamingMessage.content.slice();
  while (content.length < contentIndex) content.push({ type: "text", text: "" });
  content[contentIndex] = applyUpdate(content[contentIndex], update);
  return { ...view, streamingMessage: { ...streamingMessage, content } };
}

function applyUpdate(block: Block | undefined, update: Exclude<WireUpdate, { type: "start" }>): Block {
  switch (update.type) {
    case "text_start":
      return { type: "text", text: "" };
    case "text_delta":
      return { type: "text", text: (block?.type === "text" ? block.text : "") + update.delta };
    case "text_end":
      return { type: "text", text: update.content };
    case "thinking_start":
      return { type: "thinking", thinking: "" };
    case "thinking_delta":
      return { type: "thinking", thinking: (block?.type === "thinking" ? block.thinking : "") + update.delta };
    case "thinking_end":
      return { type: "thinking", thinking: update.content };
    case "toolcall_start":
      return { type: "toolCall", id: update.id, name: update.name, arguments: {} };
    case "toolcall_end":
      return update.toolCall;
    default:
      return block ?? { type: "toolCall", id: "", name: "", arguments: {} };
  }
}
