import { type AgentMessage, type AssistantMessage, type ToolCallDecision, userMessage } from "turnloop";
import { answer, toolCall } from "./hand-written.js";
import { makeTool, type RunOptions, type RunRecord, resumeRun } from "./helpers.js";
export const resultOf = (id: string, text = "earlier"): AgentMessage => ({
  role: "toolResult",
  toolCallId: id,
  toolName: "t",
  content: [{ type: "text", text }],
  isError: false,
  timestamp: 2,
});

/** A transcript whose last answer asks for calls of these ids; those in `done` have their result. */
export function cut(ids: string[], done: string[] = [], extra: Partial<AssistantMessage> = {}): AgentMessage[] {
  const calls = ids.map((id) => toolCall("t", {}, id));
  return [userMessage("go", { timestamp: 1 }), answer(calls, { stopReason: "toolUse", ...extra }), ...done.map((id) => resultOf(id))];
}

export const approve = (toolCallId: string, args?: unknown): ToolCallDecision => ({
  toolCallId,
  action: "approve",
  ...(args !== undefined && { args }),
});
export const deny = (toolCallId: string, reason?: string): ToolCallDecision => ({
  toolCallId,
  action: "deny",
  ...(reason !== undefined && { reason }),
});
export const result = (toolCallId: string, value: unknown): ToolCallDecision => ({ toolCallId, action: "result", result: value as string });

/** Resumes a cut transcript; the tool "t" answers with its id. */
export function resumed(messages: AgentMessage[], decisions: ToolCallDecision[], options: RunOptions = {}): Promise<RunRecord> {
  return resumeRun(decisions, ["done"], { messages, tools: [makeTool("t", (id) => `did ${id}`)], ...options });
}
