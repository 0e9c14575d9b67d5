/** From the events of a run to the updates of an ACP session, version 1 of the protocol (SPEC 10.2). */
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { AgentEvent } from "../../events.js";
import type { AssistantMessage, ToolCall } from "../../messages.js";
import type { AssistantMessageEvent } from "../../stream.js";
import type { ThinkingEvent } from "../../thinking/thinking-card.js";
import type { AgentTool } from "../../tool.js";
import { isFailed } from "../../transcript.js";
import { thinkingComplete, thinkingUpdate } from "./thinking.js";
import { type CardLook, contentOf, diffsOf, jsonCopy, locationsOf, lookOf, textContent } from "./tool-card.js";

interface ToolCard extends CardLook {
  id: string;
  toolName: string;
  /** Once the call has started. */
  args?: unknown;
}

type ToolEvent<T extends string> = Extract<AgentEvent, { type: `tool_execution_${T}` }>;

/** What one session has shown so far. Made by `createUpdateState`; its fields are not for hosts. */
export class UpdateState {
  readonly tools: Iterable<AgentTool> | undefined;
  readonly cwd: string | undefined;
  /** Cards with no terminal update yet. */
  readonly open = new Map<string, ToolCard | "thinking">();
  /** The cards of the answer that is streaming, by content index. */
  readonly streaming = new Map<number, ToolCard>();
  /** The cards of the last answer's calls, by call id. */
  readonly calls = new Map<string, ToolCard>();
  readonly thinking = new Map<string, string>();
  messages = 0;
  /** How often a card with this id was wanted. */
  readonly #wanted = new Map<string, number>();

  constructor(tools: Iterable<AgentTool> | undefined, cwd: string | undefined) {
    this.tools = tools;
    this.cwd = cwd;
  }

  /** The id itself while no card has it, else with a suffix. */
  uniqueId(id: string): string {
    let unique = id || "call";
    let times = this.#wanted.get(unique) ?? 0;
    for (const base = unique; this.#wanted.has(unique); unique = `${base}-${times}`) this.#wanted.set(base, ++times);
    this.#wanted.set(unique, 1);
    return unique;
  }
}

/** `tools` say the titles and kinds of cards; `cwd` makes the paths in arguments absolute. */
export function createUpdateState(options: { tools?: Iterable<AgentTool>; cwd?: string } = {}): UpdateState {
  return new UpdateState(options.tools, options.cwd);
}

/**
 * The updates that an event of a run, or one of its thinking card, means for the client. `state` belongs to the session and
 * remembers the cards: each gets one `tool_call`, any number of updates in progress, and one terminal update.
 */
export function toSessionUpdates(event: AgentEvent | { type: "thinking"; event: ThinkingEvent }, state: UpdateState): SessionUpdate[] {
  switch (event.type) {
    case "thinking":
      return thinkingUpdates(event.event, state);
    case "message_start":
      if (event.message.role === "assistant") state.messages++;
      return [];
    case "message_update":
      return deltaUpdates(event.assistantMessageEvent, state);
    case "message_end":
      return event.message.role === "assistant" ? settleAnswer(event.message as AssistantMessage, state) : [];
    case "tool_execution_start":
      return startCall(event, state);
    case "tool_execution_update":
      return progressCall(event, state);
    case "tool_execution_end":
      return endCall(event, state);
    case "agent_end":
      return closeCards(state);
    default:
      return [];
  }
}

/** Terminal updates for every card that is still open. */
export function closeCards(state: UpdateState): SessionUpdate[] {
  return [...state.open].map(([id, card]) => (card === "thinking" ? endThinking(id, state) : failCard(card, state)));
}

function thinkingUpdates(event: ThinkingEvent, state: UpdateState): SessionUpdate[] {
  const known = state.thinking.get(event.cardId);
  if ((event.state === "start") === (known !== undefined)) return [];
  const id = known ?? state.uniqueId(event.cardId);
  if (event.state === "start") {
    state.thinking.set(event.cardId, id);
    state.open.set(id, "thinking");
  } else if (event.state === "complete") {
    state.thinking.delete(event.cardId);
    state.open.delete(id);
  }
  return [thinkingUpdate(event, id)];
}

function endThinking(id: string, state: UpdateState): SessionUpdate {
  state.open.delete(id);
  for (const [cardId, known] of state.thinking) if (known === id) state.thinking.delete(cardId);
  return thinkingComplete(id, "aborted");
}

function deltaUpdates(update: AssistantMessageEvent, state: UpdateState): SessionUpdate[] {
  switch (update.type) {
    case "start": // also when a model begins its answer anew: what was announced will not be called
      return [...state.streaming.values()].map((card) => failCard(card, state));
    case "text_delta":
      return chunk("agent_message_chunk", `message-${state.messages}`, update.delta);
    case "thinking_delta":
      return chunk("agent_thought_chunk", `thought-${state.messages}`, update.delta);
    case "toolcall_start":
    case "toolcall_delta":
    case "toolcall_end": {
      const call = update.partial.content[update.contentIndex] as ToolCall | undefined;
      if (!call?.name || state.streaming.has(update.contentIndex)) return [];
      const card = newCard(call.id, call.name, state);
      state.streaming.set(update.contentIndex, card);
      return [announcement(card)];
    }
    default:
      return [];
  }
}

function chunk(sessionUpdate: "agent_message_chunk" | "agent_thought_chunk", messageId: string, text: string): SessionUpdate[] {
  return text ? [{ sessionUpdate, messageId, content: { type: "text", text } }] : [];
}

/** The loop makes ids safe on the final message: there the announced cards meet their calls. */
function settleAnswer(message: AssistantMessage, state: UpdateState): SessionUpdate[] {
  state.calls.clear();
  const updates: SessionUpdate[] = [];
  for (const [index, card] of [...state.streaming]) {
    const block = message.content[index];
    if (block?.type === "toolCall" && !isFailed(message)) state.calls.set(block.id, card);
    else updates.push(failCard(card, state));
  }
  state.streaming.clear();
  return updates;
}

function startCall({ toolCallId, toolName, args }: ToolEvent<"start">, state: UpdateState): SessionUpdate[] {
  const announced = state.calls.get(toolCallId);
  const card = announced ?? newCard(toolCallId, toolName, state);
  state.calls.set(toolCallId, card);
  card.args = args;
  const locations = locationsOf(args, state.cwd);
  const diffs = card.kind === "edit" ? diffsOf(args, state.cwd) : [];
  const started: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: card.id,
    status: "in_progress",
    rawInput: jsonCopy(args),
    ...(locations.length > 0 ? { locations } : {}),
    ...(diffs.length > 0 ? { content: diffs } : {}),
  };
  return announced ? [started] : [announcement(card), started];
}

function progressCall({ toolCallId, partialResult }: ToolEvent<"update">, state: UpdateState): SessionUpdate[] {
  const card = state.calls.get(toolCallId);
  const content = contentOf(partialResult);
  if (!card || !state.open.has(card.id) || content.length === 0) return [];
  return [{ sessionUpdate: "tool_call_update", toolCallId: card.id, status: "in_progress", content }];
}

function endCall({ toolCallId, result, isError }: ToolEvent<"end">, state: UpdateState): SessionUpdate[] {
  const card = state.calls.get(toolCallId);
  if (!card || !state.open.delete(card.id)) return [];
  const changes = diffsOf(result.details, state.cwd);
  if (!isError && changes.length === 0 && card.kind === "edit") changes.push(...diffsOf(card.args, state.cwd));
  const content = [...changes, ...contentOf(result)];
  return [{ sessionUpdate: "tool_call_update", toolCallId: card.id, status: isError ? "failed" : "completed", content }];
}

function newCard(callId: string, toolName: string, state: UpdateState): ToolCard {
  const card: ToolCard = { id: state.uniqueId(callId), toolName, ...lookOf(toolName, state.tools) };
  state.open.set(card.id, card);
  return card;
}

function announcement({ id, title, kind }: ToolCard): SessionUpdate {
  return { sessionUpdate: "tool_call", toolCallId: id, title, kind, status: "pending", content: [] };
}

function failCard(card: ToolCard, state: UpdateState): SessionUpdate {
  state.open.delete(card.id);
  for (const [index, streaming] of state.streaming) if (streaming === card) state.streaming.delete(index);
  const content = textContent(card.args === undefined ? "Not executed." : "Ended without a result.");
  return { sessionUpdate: "tool_call_update", toolCallId: card.id, status: "failed", content };
}
