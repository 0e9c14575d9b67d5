/** Asking the user of the client before a tool runs (SPEC 10.4). */
import type { PermissionOption, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import type { AgentLoopConfig, BeforeToolCallContext } from "../../config.js";
import { errorText } from "../../errors.js";
import { ignoringFailure } from "../../loop/abort.js";
import { wellFormedDeep } from "../../transcript.js";
import { type AcpConnection, sendUpdate } from "./connection.js";
import { jsonCopy, locationsOf, lookOf } from "./tool-card.js";
import type { UpdateState } from "./update-state.js";

export interface PermissionOptions {
  /** False lets the call pass without asking. A throw denies it. @default every call is asked for */
  ask?(call: BeforeToolCallContext): boolean | Promise<boolean>;
}

const CHOICES: readonly PermissionOption[] = [
  { optionId: "allow_once", name: "Allow", kind: "allow_once" },
  { optionId: "allow_always", name: "Always allow", kind: "allow_always" },
  { optionId: "reject_once", name: "Reject", kind: "reject_once" },
  { optionId: "reject_always", name: "Always reject", kind: "reject_always" },
];

/** The cards of the sessions an ACP agent serves, so that a question is about the card the client knows. */
const sessions = new WeakMap<AcpConnection, Map<string, UpdateState>>();

export function rememberCards(connection: AcpConnection, sessionId: string, state: UpdateState): void {
  const known = sessions.get(connection) ?? new Map<string, UpdateState>();
  sessions.set(connection, known.set(sessionId, state));
}

/**
 * A `beforeToolCall` that asks the client. Only an answer with one of the allowing options lets the call pass: a rejection,
 * a cancelled question, an unknown option, a failure or a closed connection denies it, with the reason for the model.
 * "Always" counts for that tool's name, for as long as the hook lives.
 *
 * @example
 * createAcpAgent({
 *   createAgent: ({ connection, sessionId }) =>
 *     new Agent({ model, streamFn, tools, beforeToolCall: requestPermission(connection, sessionId) }),
 * });
 */
export function requestPermission(
  connection: AcpConnection,
  sessionId: string,
  options: PermissionOptions = {},
): NonNullable<AgentLoopConfig["beforeToolCall"]> {
  const remembered = new Map<string, boolean>();
  return async (call, signal) => {
    const { name } = call.toolCall;
    if (options.ask && (await options.ask(call)) === false) return undefined;
    const allowed = remembered.get(name) ?? (await decide());
    return allowed === true ? undefined : { block: true, reason: typeof allowed === "string" ? allowed : REJECTED };

    async function decide(): Promise<boolean | string> {
      const state = sessions.get(connection)?.get(sessionId);
      const cardId = state?.openCardOf(call.toolCall.id);
      const choice = await choose(connection, request(sessionId, call, state?.cwd, cardId), signal);
      const kind = CHOICES.find(({ optionId }) => optionId === choice.optionId)?.kind;
      if (kind === "allow_always" || kind === "reject_always") remembered.set(name, kind === "allow_always");
      if (!kind) return choice.reason;
      const isAllowed = kind === "allow_once" || kind === "allow_always";
      if (isAllowed && cardId !== undefined) showRunning(cardId);
      return isAllowed;
    }

    /** The question said that the call waits. */
    function showRunning(toolCallId: string): void {
      ignoringFailure(() => sendUpdate(connection, sessionId, { sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" }));
    }
  };
}

const REJECTED = "The user did not allow this call.";

interface Choice {
  optionId?: string;
  /** Why there is no choice. */
  reason: string;
}

/** What the client answers, whatever it is; an abort does not wait for it. */
function choose(connection: AcpConnection, params: object, signal: AbortSignal): Promise<Choice> {
  return new Promise((resolve) => {
    const settle = (choice: Choice): void => {
      signal.removeEventListener("abort", onAbort);
      resolve(choice);
    };
    const onAbort = (): void => settle({ reason: "The user stopped the run before the call was allowed." });
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort);
    ask(connection, params).then(settle, (error: unknown) =>
      settle({ reason: `The call was not allowed: asking for permission failed (${errorText(error)}).` }),
    );
  });
}

async function ask(connection: AcpConnection, params: object): Promise<Choice> {
  const response: RequestPermissionResponse | undefined = await connection.request("session/request_permission", params);
  const outcome = response?.outcome;
  if (outcome?.outcome === "selected")
    return { optionId: outcome.optionId, reason: "The call was not allowed: the client gave an unknown answer." };
  return { reason: "The call was not allowed: the question was cancelled." };
}

/** `cardId` is that of the card the client shows, which waits for the answer. */
function request(
  sessionId: string,
  { toolCall, args, context }: BeforeToolCallContext,
  cwd: string | undefined,
  cardId: string | undefined,
): object {
  const locations = locationsOf(args, cwd);
  const card = {
    toolCallId: cardId ?? toolCall.id,
    ...lookOf(toolCall.name, context.tools),
    ...(cardId === undefined ? {} : { status: "pending" }),
    rawInput: jsonCopy(args),
    ...(locations.length > 0 ? { locations } : {}),
  };
  return { sessionId, toolCall: wellFormedDeep(card), options: CHOICES };
}
