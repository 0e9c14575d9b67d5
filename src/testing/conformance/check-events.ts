/** The order of events, their end, and what the deltas say (SPEC 3). Each check gives its first finding, or nothing. */
import { describe } from "../../errors.js";
import { type Answer, jsonOf, type RecordedCall, type Seen, terminalOf } from "./record-call.js";

type Kind = "text" | "thinking" | "toolCall";
type Stage = "start" | "delta" | "end";

const KINDS: Record<string, Kind> = { text: "text", thinking: "thinking", toolcall: "toolCall" };

interface Update {
  kind: Kind;
  stage: Stage;
  index: number;
  delta: unknown;
}

function updateOf({ event }: Seen): Update | undefined {
  const { type, contentIndex, delta } = Object(event) as { type?: unknown; contentIndex?: unknown; delta?: unknown };
  const [, kind, stage] = /^(text|thinking|toolcall)_(start|delta|end)$/.exec(String(type)) ?? [];
  return kind === undefined ? undefined : { kind: KINDS[kind] as Kind, stage: stage as Stage, index: contentIndex as number, delta };
}

/** "event 4 (text_delta)" */
export function nameOf(record: RecordedCall, at: number): string {
  const event: unknown = record.seen[at]?.event;
  return `event ${at} (${String(Object(event).type ?? describe(event))})`;
}

/** A start first, then blocks one by one in the order of their contentIndex, each opened, filled and closed. */
export function orderProblem(record: RecordedCall): string | undefined {
  const end = terminalOf(record)?.at ?? record.seen.length;
  const blocks: { kind: Kind; open: boolean }[] = [];
  for (const [at, seen] of record.seen.slice(0, end + 1).entries()) {
    const problem = placeProblem(seen, at, end, blocks);
    if (problem) return `SPEC 3: ${problem}; got ${nameOf(record, at)}${placeOf(seen)}.`;
  }
  const open = blocks.findIndex((block) => block.open);
  if (open < 0 || record.seen[end]?.event.type !== "done") return undefined;
  return `SPEC 3: every block is closed before done; block ${open} (${blocks[open]?.kind}) got no ..._end event.`;
}

function placeOf(seen: Seen): string {
  const update = updateOf(seen);
  return update ? ` with contentIndex ${describe(update.index)}` : "";
}

/** What is expected in the place of this event. */
function placeProblem(seen: Seen, at: number, end: number, blocks: { kind: Kind; open: boolean }[]): string | undefined {
  if (at === end) return at === 0 && seen.event.type === "done" ? "start comes before everything else" : undefined;
  const type: unknown = Object(seen.event).type;
  const update = updateOf(seen);
  if (type !== "start" && !update) return "every event has one of the types of AssistantMessageEvent";
  if (at === 0 && type !== "start") return "start comes before everything else (an error that ends the call at once aside)";
  if (at > 0 && type === "start") return "there is one start";
  if (!Array.isArray(seen.partial?.partial.content)) return "every event before the terminal one has a partial with its content";
  return update && blockProblem(update, seen, blocks);
}

function blockProblem({ kind, stage, index, delta }: Update, seen: Seen, blocks: { kind: Kind; open: boolean }[]): string | undefined {
  if (stage === "start") {
    if (index !== blocks.length) return `a new block has the next contentIndex, here ${blocks.length}`;
    blocks.push({ kind, open: true });
  }
  const block = blocks[index];
  if (block?.kind !== kind) return `a block of kind ${kind} is opened by its ..._start event before its deltas and its end`;
  if (!block.open) return "nothing comes for a block after its ..._end event";
  if (stage === "delta" && typeof delta !== "string") return "a delta is a string";
  if (stage === "end") block.open = false;
  if (seen.partial?.current?.type !== kind) return `contentIndex names the block of the partial that the event is about, a ${kind}`;
  return undefined;
}

/** One terminal event, in time, and nothing after it. */
export function terminalProblem(record: RecordedCall, ms: number): string | undefined {
  const rule = "SPEC 13.3: a call ends in one done or error event, and nothing comes after it";
  const terminal = terminalOf(record);
  const last = record.seen.length - 1;
  const where = last < 0 ? "at the beginning" : `after ${nameOf(record, last)}`;
  if (!terminal) {
    if (record.ending === "returned") return `${rule}; the iteration ended ${where} without one.`;
    if (record.ending === "endless") return `${rule}; it was still going on ${where}.`;
    return record.ending === "silent" ? `${rule}; ${where} nothing came for ${ms} ms.` : undefined;
  }
  if (last > terminal.at) return `${rule}; ${nameOf(record, terminal.at + 1)} came after ${nameOf(record, terminal.at)}.`;
  if (record.ending === "threw") return `${rule}; the iteration threw ${where}: ${describe(record.thrown)}.`;
  return record.ending === "silent" ? `${rule}; the iteration did not end ${where} within ${ms} ms.` : undefined;
}

/** What came in pieces is what the final message says. Whatever had come before a failure is kept. */
export function deltasProblem(record: RecordedCall): string | undefined {
  const { message, at: end } = terminalOf(record) ?? {};
  if (!Array.isArray(message?.content)) return undefined;
  const pieces: string[][] = [];
  for (const [at, seen] of record.seen.slice(0, end).entries()) {
    const update = updateOf(seen);
    if (!update || !Number.isInteger(update.index) || update.index < 0) continue;
    const own = pieces[update.index] ?? [];
    pieces[update.index] = own;
    if (update.stage === "delta") own.push(String(update.delta));
    const problem = update.stage === "end" ? endProblem(seen, own.join("")) : undefined;
    if (problem) return `SPEC 3: ${nameOf(record, at)} ${problem}.`;
  }
  for (let i = 0; i < Math.max(pieces.length, message.content.length); i++) {
    const problem = sumProblem(message, i, pieces[i]?.join(""), record);
    if (problem) return `SPEC 13.3: the deltas of a block add up to that block of the final message; block ${i} ${problem}.`;
  }
  return undefined;
}

/** The content of an end event against the deltas before it. */
function endProblem({ event }: Seen, sum: string): string | undefined {
  if (!("content" in event) || event.content === sum) return undefined;
  return `has the content ${describe(event.content)}, but its deltas say ${describe(sum)}`;
}

function sumProblem(message: Answer, index: number, sum: string | undefined, record: RecordedCall): string | undefined {
  const block = message.content[index] as Answer["content"][number] | undefined;
  if (!block) return `was streamed (${describe(sum)}) and is missing there`;
  if (block.type === "toolCall") return callProblem(block, sum ?? "", record, index);
  // the text of a redacted block may never be shown
  if (block.type === "thinking" && block.redacted) return undefined;
  const text = block.type === "text" ? block.text : block.thinking;
  return typeof text !== "string" || text === (sum ?? "") ? undefined : `says ${describe(text)}, its deltas say ${describe(sum ?? "")}`;
}

function callProblem(
  call: Extract<Answer["content"][number], { type: "toolCall" }>,
  json: string,
  record: RecordedCall,
  index: number,
): string | undefined {
  for (const { event } of record.seen) {
    if (event?.type !== "toolcall_end" || event.contentIndex !== index) continue;
    const { id, name, arguments: args } = Object(event.toolCall) as Partial<typeof call>;
    if (id === call.id && name === call.name && sameData(args, call.arguments)) continue;
    return `is ${describe(call)}, its toolcall_end says ${describe(event.toolCall)}`;
  }
  // some providers give a call whole, and a failure may cut one
  if (json.trim() === "" || call.argumentsError !== undefined || terminalOf(record)?.event.type === "error") return undefined;
  let args: unknown;
  try {
    args = JSON.parse(json);
  } catch {
    return `has arguments, but its deltas are no JSON: ${describe(json)}`;
  }
  return sameData(args, call.arguments) ? undefined : `has the arguments ${describe(call.arguments)}, its deltas say ${describe(json)}`;
}

/** The same JSON data, whatever the order of keys. */
function sameData(a: unknown, b: unknown): boolean {
  const sorted = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(sorted);
    return Object.entries(value)
      .sort(([x], [y]) => (x < y ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]);
  };
  return jsonOf(sorted(a)) === jsonOf(sorted(b));
}
