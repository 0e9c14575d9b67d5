import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, it } from "vitest";
import { problemsOfSchema, problemsOfSessions, type Recorded } from "./acp-checks.js";

const prompt: Recorded = { type: "prompt", sessionId: "s" };
const answer: Recorded = { type: "answer", sessionId: "s", stopReason: "end_turn" };
const update = (change: SessionUpdate): Recorded => ({ type: "update", sessionId: "s", update: change });
const card = (toolCallId: string, status = "pending"): Recorded =>
  update({ sessionUpdate: "tool_call", toolCallId, title: "t", status: status as "pending" });
const change = (toolCallId: string, status?: string): Recorded =>
  update({ sessionUpdate: "tool_call_update", toolCallId, status: status as "completed" });
const ask = (toolCallId: string): Recorded => ({ type: "ask", sessionId: "s", toolCall: { toolCallId } });
const text = update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "hi" } });
const elsewhere = (entry: Recorded): Recorded => ({ ...entry, sessionId: "other" });

// SPEC 10.2, 10.5
describe("the checker of sessions", () => {
  it("finds nothing wrong with whole sessions, one in between the other", () => {
    const whole = [
      prompt,
      text,
      card("a"),
      change("a", "in_progress"),
      ask("a"),
      change("a", "in_progress"),
      change("a", "completed"),
      answer,
    ];
    const again = [prompt, card("b", "in_progress"), change("b", "failed"), answer];
    expect(problemsOfSessions([...whole, ...again])).toEqual([]);
    expect(problemsOfSessions([...whole, ...again].flatMap((entry) => [entry, elsewhere(entry)]))).toEqual([]);
  });

  it.each<[string, Recorded[], RegExp]>([
    ["two cards of one id", [prompt, card("a"), card("a"), change("a", "failed"), answer], /second tool_call of a/],
    [
      "an id used again in a later prompt",
      [prompt, card("a"), change("a", "failed"), answer, prompt, card("a"), change("a", "failed"), answer],
      /second/,
    ],
    ["a card that begins at its end", [prompt, card("a", "completed"), answer], /tool_call of a as completed/],
    ["an update of no card", [prompt, change("a", "in_progress"), answer], /before its tool_call/],
    ["an update of another session's card", [prompt, elsewhere(prompt), elsewhere(card("a")), change("a", "failed"), answer], /before its/],
    ["two ends", [prompt, card("a"), change("a", "completed"), change("a", "failed"), answer], /failed of a after its end/],
    [
      "progress after the end",
      [prompt, card("a"), change("a", "completed"), change("a", "in_progress"), answer],
      /in_progress of a after its end/,
    ],
    ["an update without status", [prompt, card("a"), change("a"), change("a", "failed"), answer], /as undefined/],
    ["an update back to pending", [prompt, card("a"), change("a", "pending"), change("a", "failed"), answer], /as pending/],
    ["a card left open", [prompt, card("a"), change("a", "in_progress"), answer], /answered while a is open/],
    ["an update after the answer", [prompt, answer, text], /agent_message_chunk while no prompt runs/],
    ["a card's end after the answer", [prompt, card("a"), answer, change("a", "failed")], /tool_call_update of a while no prompt runs/],
    ["a second answer", [prompt, answer, answer], /answer while no prompt runs/],
    ["a question about no card", [prompt, ask("a"), answer], /no open card/],
    ["a question about a card that is over", [prompt, card("a"), change("a", "failed"), ask("a"), answer], /no open card/],
  ])("finds %s", (_, recorded, problem) => {
    expect(problemsOfSessions(recorded).join("\n")).toMatch(problem);
  });
});

// SPEC 10.6
describe("the check against the protocol's schema", () => {
  const toolCall = { sessionUpdate: "tool_call", toolCallId: "a", title: "t", kind: "read", status: "pending", content: [] };
  const notify = (changes: object): unknown => ({ sessionId: "s", update: { ...toolCall, ...changes } });
  const block = (content: object): unknown => notify({ content: [{ type: "content", content }] });

  it.each([
    ["a card", notify({ _meta: { synthetic: true } })],
    ["a card with an image", block({ type: "image", data: "AA==", mimeType: "image/png" })],
    ["a diff", notify({ content: [{ type: "diff", path: "/a", oldText: null, newText: "\\ud800 as words" }] })],
    ["whole characters", block({ type: "text", text: "😀" })],
  ])("passes %s", (_, value) => {
    expect(problemsOfSchema("SessionNotification", value)).toEqual([]);
  });

  it.each([
    ["a kind that does not exist", notify({ kind: "write" })],
    ["a status that does not exist", notify({ status: "cancelled" })],
    ["an update that does not exist", notify({ sessionUpdate: "toolCall" })],
    ["an id that is no text", notify({ toolCallId: 5 })],
    ["a missing title", notify({ title: undefined })],
    ["a misspelt property", notify({ location: [] })],
    ["a path that is no text", notify({ locations: [{ path: 1 }] })],
    ["a line below 0", notify({ locations: [{ path: "/a", line: -1 }] })],
    ["an image without data", block({ type: "image", mimeType: "image/png" })],
    ["a block without its wrapper", notify({ content: [{ type: "text", text: "t" }] })],
    ["a diff without new text", notify({ content: [{ type: "diff", path: "/a" }] })],
    ["half a character", block({ type: "text", text: "\ud83d" })],
  ])("finds %s", (_, value) => {
    expect(problemsOfSchema("SessionNotification", value)).not.toEqual([]);
  });
});
