import { problemsOfSchema } from "../adapters/acp-checks.js";
import type { Frame } from "./acp.js";

export interface Card {
  id: string;
  kind: string;
  /** Of each update that has one, and of each question about the card. */
  titles: string[];
  statuses: string[];
  /** The text of its last content. */
  text: string;
}

const TERMINAL = ["completed", "failed"];

/** A prompt from its request to its answer. */
interface Turn {
  sessionId: string;
  open: Set<string>;
}

/**
 * The tool cards in what went over the wire, oldest first. Throws unless each has one `tool_call` first, then any progress,
 * then exactly one terminal update and nothing after it, all of it while its session has a prompt that is not answered; and unless
 * what the agent sent keeps the protocol's schema.
 */
export function cardsOf(wire: readonly Frame[]): Card[] {
  const cards = new Map<string, Card>();
  const turns = new Map<unknown, Turn>();
  for (const [at, { id, method, params, result, error }] of wire.entries()) {
    const fail = (fault: string): never => {
      throw new Error(`frame ${at}: ${fault}: ${JSON.stringify(wire[at])}`);
    };
    const problems = schemasOf(wire[at] as Frame).flatMap(([schema, value]) => problemsOfSchema(schema, value));
    if (problems.length > 0) fail(problems.join("; "));
    if (method === "session/prompt") turns.set(id, { sessionId: params.sessionId, open: new Set() });
    else if (result?.stopReason !== undefined || (error && turns.has(id))) {
      const open = turns.get(id)?.open ?? fail("an answer without a prompt");
      if (open.size > 0) fail(`the prompt is answered while cards are open (${[...open].join(", ")})`);
      turns.delete(id);
    } else if (method === "session/update" || method === "session/request_permission") {
      const turn = [...turns.values()].find(({ sessionId }) => sessionId === params.sessionId);
      const { update = { sessionUpdate: "tool_call_update", ...params.toolCall } } = params;
      addUpdate(update, turn ?? fail("an update outside of a prompt"), cards, fail);
    }
  }
  return [...cards.values()];
}

/** What an agent's frame holds, by the names of the schema. */
function schemasOf({ method, params, result, error }: Frame): [string, unknown][] {
  if (method === "session/update") return [["SessionNotification", params]];
  if (method === "session/request_permission") return [["RequestPermissionRequest", params]];
  if (error) return [["Error", error]];
  if (result?.protocolVersion !== undefined) return [["InitializeResponse", result]];
  if (result?.sessionId !== undefined) return [["NewSessionResponse", result]];
  return result?.stopReason === undefined ? [] : [["PromptResponse", result]];
}

function addUpdate(update: any, { sessionId, open }: Turn, cards: Map<string, Card>, fail: (fault: string) => never): void {
  const { sessionUpdate, toolCallId, status, title, kind, content } = update;
  if (!/^tool_call/.test(sessionUpdate)) return;
  const key = `${sessionId} ${toolCallId}`;
  if (sessionUpdate === "tool_call") {
    if (cards.has(key)) fail("a second tool_call for the card");
    cards.set(key, { id: toolCallId, kind, titles: [], statuses: [], text: "" });
    open.add(toolCallId);
  }
  const card = cards.get(key) ?? fail("an update of an unknown card");
  if (!open.has(toolCallId)) fail("an update of a card that has ended");
  if (TERMINAL.includes(status)) open.delete(toolCallId);
  card.statuses.push(status);
  if (title !== undefined) card.titles.push(title);
  if (content) card.text = content.map((block: any) => block.content?.text ?? "").join("");
}
