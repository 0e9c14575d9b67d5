/**
 * What can be asked of the server:
 *
 *   POST /conversations                     -> 201 { id }
 *   GET  /conversations/ID/events           -> events; Last-Event-ID or ?after=ID goes on from there
 *   POST /conversations/ID/prompt           { text }
 *   POST /conversations/ID/steer            { text }   for the next turn of the run
 *   POST /conversations/ID/follow-up        { text }   for when it would end
 *   POST /conversations/ID/abort            {}
 *   POST /conversations/ID/retry            {}
 *   POST /conversations/ID/decisions        { decisions: [{ toolCallId, action, ... }] }
 *
 * A POST answers 202 when it was taken; what comes of it is in the events. Refusals are { error: { code, message } }.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type ToolCallDecision, TurnLoopError } from "turnloop";
import type { Conversation } from "./conversation.js";
import type { Conversations } from "./conversations.js";
import { HttpError, type JsonObject, readJson, sendJson } from "./http.js";
import type { Page } from "./page-files.js";

export interface Routes {
  conversations: Conversations;
  page: Page;
  bodyBytes: number;
  /** Whether a request may be for this server, by its Host header. */
  isOwnName(host: string): boolean;
}

type Action = (conversation: Conversation, body: JsonObject) => void | Promise<void>;

const ACTIONS = new Map<string, Action>([
  ["prompt", (conversation, body) => conversation.prompt(textIn(body))],
  ["steer", (conversation, body) => conversation.add("steer", textIn(body))],
  ["follow-up", (conversation, body) => conversation.add("followUp", textIn(body))],
  ["abort", (conversation) => conversation.abort("stopped by the user")],
  ["retry", (conversation) => conversation.retry()],
  ["decisions", (conversation, body) => conversation.decide(decisionsIn(body))],
]);

/** What the agent refuses because of the state it is in, and not because of what was asked. */
const CONFLICTS = ["busy", "calls_pending", "nothing_pending", "cannot_continue_from_assistant", "empty_context"];

/** Answers every request, and never rejects. */
export async function answer(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    if (!routes.isOwnName(request.headers.host ?? "")) throw new HttpError(403, "foreign_host", "This server has another name.");
    await route(routes, request, response);
  } catch (error) {
    // the client has gone, in the middle of what it had to say or of what it was told
    if (request.errored || response.headersSent) return void response.destroy();
    const { status, code, message, headers } = toHttpError(error);
    sendJson(response, status, { error: { code, message } }, headers);
  }
}

async function route({ conversations, page, bodyBytes }: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = `http://server${request.url}`;
  if (!URL.canParse(url)) throw notFound(`${request.url}`);
  const { pathname, searchParams } = new URL(url);
  const [, root, id, action, ...rest] = pathname.split("/");
  if (root !== "conversations" || rest.length > 0) {
    const file = page.get(pathname);
    if (!file) throw notFound(pathname);
    if (request.method !== "HEAD") allow(request, "GET");
    response.writeHead(200, file.headers).end(file.content);
  } else if (id === undefined) {
    allow(request, "POST");
    await readJson(request, bodyBytes);
    const conversation = conversations.create();
    sendJson(response, 201, { id: conversation.id }, { location: `/conversations/${conversation.id}` });
  } else if (action === "events") {
    allow(request, "GET");
    const lastEventId = request.headers["last-event-id"] ?? searchParams.get("after");
    conversations.get(id).attach(response, lastEventId?.toString());
  } else {
    const act = ACTIONS.get(action ?? "");
    if (!act) throw notFound(pathname);
    allow(request, "POST");
    const conversation = conversations.get(id);
    await act(conversation, await readJson(request, bodyBytes));
    sendJson(response, 202, {});
  }
}

function allow({ method }: IncomingMessage, expected: "GET" | "POST"): void {
  if (method === expected) return;
  throw new HttpError(405, "method_not_allowed", `Expected ${expected}; got ${method}.`, { allow: expected });
}

function notFound(pathname: string): HttpError {
  return new HttpError(404, "not_found", `There is nothing at ${pathname}.`);
}

function textIn({ text }: JsonObject): string {
  if (typeof text !== "string" || text.trim() === "") throw new HttpError(400, "invalid_body", '"text" must be a text that is not empty.');
  return text;
}

/** The agent checks what the decisions say; here it is only made sure that it can read them. */
function decisionsIn({ decisions }: JsonObject): ToolCallDecision[] {
  const isReadable = Array.isArray(decisions) && decisions.every((decision) => typeof decision === "object" && decision !== null);
  if (!isReadable) throw new HttpError(400, "invalid_body", '"decisions" must be an array of objects.');
  return decisions as ToolCallDecision[];
}

function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (TurnLoopError.is(error)) return new HttpError(CONFLICTS.includes(error.code) ? 409 : 400, error.code, error.message);
  console.error(error);
  return new HttpError(500, "internal", "The server failed; its log says how.");
}
