/** A conversation from process to process, each of which may end at any point. */
import { type AgentMessage, type AssistantMessage, type Message, pairToolCalls, type ToolCall, type ToolResultMessage } from "turnloop";
import { assertEventSequence } from "turnloop/testing";
import { type Disturbance, nextStep, type Plan, type Segment } from "./approvals.js";

export type Play = (plan: Plan, transcript: AgentMessage[], disturbance: Disturbance | undefined) => Promise<Segment> | Segment;

/** What was come across, in all conversations. */
export const reached = { suspended: 0, resumed: 0, crashed: 0, aborted: 0 };

/** From process to process, with nothing but the transcript's JSON in between. Gives the transcript and what is wrong. */
export async function live(
  plan: Plan,
  disturbed: readonly (Disturbance | null)[],
  play: Play,
): Promise<{ transcript: AgentMessage[]; wrong: string[] }> {
  const wrong: string[] = [];
  let transcript: AgentMessage[] = [];
  for (let process = 0; nextStep(plan, transcript); process++) {
    if (process > 30) return { transcript, wrong: ["it never ends"] };
    const recorded = answeredCalls(transcript);
    const segment = await play(plan, transcript, disturbed[process] ?? undefined);
    const again = segment.executed.filter((key) => recorded.has(key));
    if (again.length > 0) wrong.push(`calls run again though their result is recorded: ${again}`);
    if (new Set(segment.executed).size < segment.executed.length) wrong.push(`a call runs twice in one process: ${segment.executed}`);
    if (segment.events.length > 0) assertEventSequence(segment.events, { resumed: segment.resumed });
    reached.resumed += Number(segment.resumed);
    if (segment.outcome === undefined) reached.crashed++;
    if (segment.outcome === "aborted" || segment.outcome === "suspended") reached[segment.outcome]++;
    transcript = JSON.parse(JSON.stringify(segment.transcript));
  }
  const paired = pairToolCalls(transcript as Message[]);
  if (paired.length !== transcript.length) wrong.push("the transcript lacks a result, or has one too many");
  return { transcript: paired, wrong };
}

/** The calls that have their result: `<turn>/<index>`. */
export function answeredCalls(transcript: readonly AgentMessage[]): Set<string> {
  const answered = new Set<string>();
  let open: ToolCall[] = [];
  for (const message of transcript) {
    if (message.role === "assistant") open = (message as AssistantMessage).content.filter((block) => block.type === "toolCall");
    const call = open.find(({ id }) => message.role === "toolResult" && (message as ToolResultMessage).toolCallId === id);
    if (call) answered.add(`${call.arguments.turn}/${call.arguments.index}`);
  }
  return answered;
}

export const undisturbed = (plan: Plan): Plan => ({
  ...plan,
  turns: plan.turns.map((turn) => turn.map((call) => ({ ...call, suspends: false }))),
});
