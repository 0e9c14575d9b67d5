/** From the events of a run to the updates of an ACP session, version 1 of the protocol (SPEC 10.2). */
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { AgentEvent } from "../../events.js";
import { reusable } from "../../loop/run.js";
import type { AssistantMessage, ToolCall } from "../../messages.js";
import type { AssistantMessageEvent } from "../../stream.js";
import type { ThinkingEvent } from "../../thinking/thinking-card.js";
import type { AgentTool } from "../../tool.js";
import { isFailed, wellFormedDeep } from "../../transcript.js";
import { thinkingComplete, thinkingUpdate } from "./thinking.js";
import { contentOf, diffsOf, diffsOfArguments, jsonCopy, locationsOf, lookOf, read, textContent } from "./tool-card.js";
import { type ToolCard, UpdateState } from "./update-state.js";

type ToolEvent<T extends string> = Extract<AgentEvent, { type: `tool_execution_${T}` }>;

/** `tools` say the titles and kinds of cards; `cwd`, an absolute path, makes those in arguments absolute. */
export function createUpdateState(options: { tools?: Iterable<AgentTool>; cwd?: string } = {}): UpdateState {
  return new UpdateState(reusable(options.tools), options.cwd);
}

/**
 * The updates that an event of a run, or one of its thinking card, means for the client. `state` belongs to the session and
 * remembers the cards: each gets one `tool_call`, any number of updates in progress, and one terminal update. All texts are
 * well-formed Unicode: a client may refuse a whole message for half a character.
 */
export function toSessionUpdates(event: AgentEvent | { type: "thinking"; event: ThinkingEvent }, state: UpdateState): SessionUpdate[] {
  return wellFormedDeep(updatesOf(event, state));
}

function updatesOf(event: AgentEvent | { type: "thinking"; event: ThinkingEvent }, state: UpdateState): SessionUpdate[] {
  switch (event.type) {
    case "thinking":
      return thinkingUpdates(event.event, state);
    case "message_start":
      if (event.message.role === "assistant") state.text.begin();
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
      return [...suspendCalls(event, state), ...closeCards(state)];
    default:
      return [];
  }
}

/** Calls that wait for a decision (SPEC 15.2): what becomes of them is told in another run. */
function suspendCalls({ pending = [] }: Extract<AgentEvent, { type: "agent_end" }>, state: UpdateState): SessionUpdate[] {
  return pending.flatMap(({ toolCall }) => {
    const card = state.calls.get(toolCall.id);
    return card && state.open.has(card.id) ? [failCard(card, state, "Not executed yet: it waits for a decision.")] : [];
  });
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
      return restartAnswer(state);
    case "text_delta":
      return state.text.delta("agent_message_chunk", update.contentIndex, update.delta);
    case "thinking_delta":
      return state.text.delta("agent_thought_chunk", update.contentIndex, update.delta);
    case "toolcall_start":
    case "toolcall_delta":
    case "toolcall_end":
      return announceStreaming(update.partial.content[update.contentIndex] as ToolCall | undefined, update.contentIndex, state);
    default:
      return [];
  }
}

/** A second start: the model began its answer anew (SPEC 3.3). */
function restartAnswer(state: UpdateState): SessionUpdate[] {
  const updates = [...state.text.end(), ...[...state.streaming.values()].map((card) => failCard(card, state))];
  state.streaming.clear();
  state.text.begin();
  return updates;
}

function announceStreaming(call: ToolCall | undefined, index: number, state: UpdateState): SessionUpdate[] {
  if (typeof call?.name !== "string" || call.name === "" || state.streaming.has(index)) return [];
  const card = newCard(call, state);
  state.streaming.set(index, card);
  return [announcement(card)];
}

/** The loop makes ids safe on the final message: there the announced cards meet their calls. What came whole is shown now. */
function settleAnswer(message: AssistantMessage, state: UpdateState): SessionUpdate[] {
  const updates = state.text.end();
  state.calls.clear();
  message.content.forEach((block, index) => {
    updates.push(...state.text.whole(block, index));
    if (block.type !== "toolCall" || isFailed(message)) return;
    const announced = takeStreaming(block, index, state.streaming);
    const card = announced ?? newCard(block, state);
    state.calls.set(block.id, card);
    if (!announced) updates.push(announcement(card));
  });
  updates.push(...[...state.streaming.values()].map((card) => failCard(card, state)), ...state.text.end());
  state.streaming.clear();
  return updates;
}

/** The card of a call: the one at its place, unless another was announced with its id. */
function takeStreaming({ id }: ToolCall, index: number, streaming: Map<number, ToolCard>): ToolCard | undefined {
  const hasId = (at: number): boolean => streaming.get(at)?.callId === id;
  const at = hasId(index) ? index : ([...streaming.keys()].find(hasId) ?? index);
  const card = streaming.get(at);
  streaming.delete(at);
  return card;
}

function startCall({ toolCallId, toolName, args }: ToolEvent<"start">, state: UpdateState): SessionUpdate[] {
  const announced = state.calls.get(toolCallId);
  const card = announced ?? newCard({ id: toolCallId, name: toolName }, state);
  const renamed = card.toolName !== toolName;
  if (renamed) Object.assign(card, lookOf(toolName, state.tools), { toolName });
  state.calls.set(toolCallId, card);
  card.args = args;
  const locations = locationsOf(args, state.cwd);
  const diffs = card.kind === "edit" ? diffsOfArguments(args, state.cwd) : [];
  const started: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: card.id,
    ...(renamed ? { title: card.title, kind: card.kind } : {}),
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
  const changes = diffsOf(read(result, "details"), state.cwd);
  if (!isError && changes.length === 0 && card.kind === "edit") changes.push(...diffsOfArguments(card.args, state.cwd));
  const content = [...changes, ...contentOf(result)];
  return [{ sessionUpdate: "tool_call_update", toolCallId: card.id, status: isError ? "failed" : "completed", content }];
}

function newCard({ id, name }: Pick<ToolCall, "id" | "name">, state: UpdateState): ToolCard {
  const callId = typeof id === "string" || typeof id === "number" ? wellFormedDeep(String(id)) : "";
  const card: ToolCard = { id: state.uniqueId(callId), callId, toolName: name, ...lookOf(name, state.tools) };
  state.open.set(card.id, card);
  return card;
}

function announcement({ id, title, kind }: ToolCard): SessionUpdate {
  return { sessionUpdate: "tool_call", toolCallId: id, title, kind, status: "pending", content: [] };
}

function failCard(
  card: ToolCard,
  state: UpdateState,
  reason = card.args === undefined ? "Not executed." : "Ended without a result.",
): SessionUpdate {
  state.open.delete(card.id);
  return { sessionUpdate: "tool_call_update", toolCallId: card.id, status: "failed", content: textContent(reason) };
}
