/** What every recording of an ACP session must hold: the order of its updates, and the protocol's own schema. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { RequestPermissionRequest, SessionUpdate } from "@agentclientprotocol/sdk";
import { type OutputUnit, Validator } from "@cfworker/json-schema";

/** What passed between a client and an agent, in the order of the wire. */
export type Recorded =
  | { type: "prompt"; sessionId: string }
  | { type: "update"; sessionId: string; update: SessionUpdate }
  | { type: "ask"; sessionId: string; toolCall: RequestPermissionRequest["toolCall"] }
  | { type: "answer"; sessionId: string; stopReason?: string; error?: { code: number; message: string; data?: unknown } };

interface Card {
  isOver: boolean;
}

/** What is wrong, line by line; empty when nothing is (SPEC 10.2, 10.4, 10.5). */
export function problemsOfSessions(recorded: readonly Recorded[]): string[] {
  const problems: string[] = [];
  const sessions = new Map<string, { running: boolean; cards: Map<string, Card> }>();
  recorded.forEach((entry, at) => {
    const fail = (text: string): void => void problems.push(`${at} (${entry.sessionId}): ${text}`);
    const session = sessions.get(entry.sessionId) ?? { running: false, cards: new Map<string, Card>() };
    sessions.set(entry.sessionId, session);
    if (entry.type === "prompt") session.running = true;
    else if (!session.running) fail(`${describe(entry)} while no prompt runs`);
    else if (entry.type === "update") checkUpdate(entry.update, session.cards, fail);
    else if (entry.type === "ask") {
      const card = session.cards.get(entry.toolCall.toolCallId);
      if (!card || card.isOver) fail(`asked for ${entry.toolCall.toolCallId}, which is no open card`);
    } else {
      session.running = false;
      for (const [id, card] of session.cards) if (!card.isOver) fail(`answered while ${id} is open`);
    }
  });
  return problems;
}

function checkUpdate(update: SessionUpdate, cards: Map<string, Card>, fail: (text: string) => void): void {
  if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") return;
  const { toolCallId: id, status } = update;
  const isTerminal = status === "completed" || status === "failed";
  const card = cards.get(id);
  if (update.sessionUpdate === "tool_call") {
    if (card) fail(`a second tool_call of ${id}`);
    if (status !== "pending" && status !== "in_progress") fail(`tool_call of ${id} as ${status}`);
    cards.set(id, { isOver: isTerminal });
  } else if (!card) fail(`an update of ${id} before its tool_call`);
  else {
    if (card.isOver) fail(`${status} of ${id} after its end`);
    if (!isTerminal && status !== "in_progress") fail(`an update of ${id} as ${status}`);
    card.isOver ||= isTerminal;
  }
}

function describe(entry: Recorded): string {
  if (entry.type !== "update") return entry.type;
  const { update } = entry;
  return "toolCallId" in update ? `${update.sessionUpdate} of ${update.toolCallId}` : update.sessionUpdate;
}

const sdk = createRequire(import.meta.url).resolve("@agentclientprotocol/sdk");
const schema = strict(JSON.parse(readFileSync(join(sdk, "../../../../schema/v1/schema.json"), "utf8"))) as Record<string, unknown>;
const validators = new Map<string, Validator>();
/** What was found valid: the same updates come again and again. */
const valid = new Set<string>();

/** Where the value, as JSON, breaks the protocol's schema of this name. */
export function problemsOfSchema(name: string, value: unknown): string[] {
  const validator =
    validators.get(name) ?? new Validator({ ...schema, anyOf: undefined, $ref: `#/$defs/${name}` } as never, "2020-12", false);
  validators.set(name, validator);
  const json = JSON.stringify(value);
  const key = `${name} ${json.replace(/[\da-f-]{36}/g, "uuid")}`;
  if (valid.has(key)) return [];
  const { errors } = validator.validate(JSON.parse(json));
  const problems = errors.map(({ instanceLocation, error }: OutputUnit) => `${name} ${instanceLocation}: ${error}`);
  if (json.search(/(?<!\\)(\\\\)*\\ud[89a-f]/i) >= 0) problems.push(`${name}: half a surrogate pair`);
  if (problems.length === 0 && json.length < 10_000) valid.add(key);
  return problems;
}

/** A union's branches take no property that they do not name: else a misspelt one would pass. */
function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, strict(item)]));
  return copy["type"] === "object" && Array.isArray(copy["allOf"]) ? { ...copy, unevaluatedProperties: false } : copy;
}
