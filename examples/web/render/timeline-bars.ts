/** What the timeline's chart shows: one bar for each turn, wait, answer and tool call of the last run. */
import type { ToolCallView } from "turnloop";
import { shortened } from "../../wording.js";
import type { Span, Timeline } from "../timeline.js";

export interface Bar extends Span {
  key: string;
  kind: "turn" | "wait" | "answer" | "tool" | "tool failed";
  lane: number;
  label: string;
  /** What stands on the bar, the first that fits. */
  texts: string[];
  /** When the next bar of its lane begins. */
  next?: number;
}

const TURN_LANE = 0;
const MODEL_LANE = 1;
/** From here on, as many as ran at once. */
export const FIRST_TOOL_LANE = 2;

export function barsOf(
  { turns, waits, answers, firstCall }: Timeline,
  toolCalls: readonly ToolCallView[],
  labelOf: (toolName: string) => string,
): Bar[] {
  const bars = (spans: readonly Span[], kind: Bar["kind"], lane: number, name: (index: number) => Pick<Bar, "label" | "texts">): Bar[] =>
    spans.map((span, index) => ({ ...span, key: `${kind} ${index}`, kind, lane, ...name(index) }));
  return [
    ...bars(turns, "turn", TURN_LANE, (index) => ({ label: `Turn ${index + 1}`, texts: [`Turn ${index + 1}`, `${index + 1}`] })),
    ...bars(waits, "wait", MODEL_LANE, () => ({ label: "Waiting for the model", texts: ["waiting"] })),
    ...bars(answers, "answer", MODEL_LANE, () => ({ label: "Model answers", texts: ["answer"] })),
    ...toolBars(toolCalls.slice(firstCall), labelOf),
  ];
}

function toolBars(calls: readonly ToolCallView[], labelOf: (toolName: string) => string): Bar[] {
  const lastOfLane: Bar[] = [];
  return calls.map((call, index) => {
    const { startedAt: from = 0, endedAt: to, status, toolName } = call;
    const free = lastOfLane.findIndex((last) => last.to !== undefined && last.to <= from);
    const lane = free < 0 ? lastOfLane.length : free;
    const [tool, path] = [labelOf(toolName), pathOf(call)];
    const label = `${tool} ${shortened(path, 30)}`.trim();
    const kind = status === "failed" ? "tool failed" : "tool";
    const texts = [label, `${tool} ${path.split("/").at(-1)}`.trim(), tool];
    const bar: Bar = { from, ...(to !== undefined && { to }), key: `tool ${index}`, kind, lane: FIRST_TOOL_LANE + lane, label, texts };
    const before = lastOfLane[lane];
    if (before) before.next = from;
    lastOfLane[lane] = bar;
    return bar;
  });
}

/** The file a call is about, where it says so. */
function pathOf({ args }: ToolCallView): string {
  const { path } = Object(args) as { path?: unknown };
  return typeof path === "string" ? path : "";
}
