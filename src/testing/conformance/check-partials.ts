/** The partials: what they show, whether they change, and what making them costs (SPEC 3.2, 13.3). */
import { describe } from "../../errors.js";
import { nameOf } from "./check-events.js";
import { type Answer, jsonOf, type RecordedCall, type Seen, shellOf, terminalOf } from "./record-call.js";

/** Each partial shows what its deltas have said so far. A live one may be ahead of them. */
export function shownProblem(record: RecordedCall, live: boolean): string | undefined {
  const sums: string[] = [];
  const end = terminalOf(record)?.at;
  for (const [at, { event, partial }] of record.seen.slice(0, end).entries()) {
    if (event?.type !== "text_delta" && event?.type !== "thinking_delta") continue;
    const sum = (sums[event.contentIndex] ?? "") + event.delta;
    sums[event.contentIndex] = sum;
    const shown = event.type === "text_delta" ? partial?.current?.text : partial?.current?.thinking;
    if (typeof shown !== "string" || shown === sum || (live && shown.startsWith(sum))) continue;
    return `SPEC 3: the partial of an event is the answer so far; ${nameOf(record, at)} shows ${describe(shown)} where the deltas say ${describe(sum)}.`;
  }
  return undefined;
}

/** A partial stays what it was when it was yielded. */
export function changedProblem(record: RecordedCall): string | undefined {
  for (const [at, seen] of record.seen.entries()) {
    const change = changeOf(seen);
    if (!change) continue;
    return `SPEC 13.3: a partial does not change after it was yielded; that of ${nameOf(record, at)} did: ${change}. Yield snapshots, or say livePartials: true.`;
  }
  return undefined;
}

function changeOf({ partial: seen }: Seen): string | undefined {
  if (!seen) return undefined;
  const { partial, shell, blocks } = seen;
  const content: unknown[] = Array.isArray(partial.content) ? partial.content : [];
  if (content.length !== blocks.length) return `it had ${blocks.length} blocks and now has ${content.length}`;
  for (const [i, { json }] of blocks.entries()) {
    const now = jsonOf(content[i]);
    if (now !== json) return `block ${i} was ${describe(json)} and now is ${describe(now)}`;
  }
  return shellOf(partial) === shell ? undefined : `its fields beside the content were ${describe(shell)}`;
}

/**
 * Work per delta must not grow with what is finished: a block that did not change is the same object in the next
 * partial. Once each it may be made anew, as when it is closed.
 */
export function copiesProblem(record: RecordedCall): string | undefined {
  const copies: number[] = [];
  for (let at = 1; at < record.seen.length; at++) {
    const { event, partial } = record.seen[at] as Seen;
    const before = record.seen[at - 1]?.partial?.blocks ?? [];
    const own = Object(event).contentIndex;
    for (const [i, { block, json }] of (partial?.blocks ?? []).entries()) {
      const last = before[i];
      if (i === own || !last || last.block === block || last.json !== json) continue;
      copies[i] = (copies[i] ?? 0) + 1;
      if (copies[i] === 2)
        return `SPEC 13.3: work for a snapshot does not grow with the answer; ${nameOf(record, at)} is not about block ${i}, which was copied again all the same. Share the blocks that did not change.`;
    }
  }
  return undefined;
}

/** Counts, while it is installed, how much of an answer passes through `structuredClone` and `JSON.stringify`. */
export class SerialisationCounter {
  readonly #strings = new Set<string>();
  readonly #undo: (() => void)[] = [];

  install(): void {
    this.#wrap(globalThis, "structuredClone");
    this.#wrap(JSON, "stringify");
  }

  uninstall(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  /** How many different beginnings of the final texts, longer than their first delta, were serialised. */
  problem(record: RecordedCall): string | undefined {
    const message: Answer | undefined = terminalOf(record)?.message;
    const deltas = record.seen.filter(({ event }) => event?.type === "text_delta" && event.delta !== "");
    const first = (deltas[0]?.event as { delta?: string } | undefined)?.delta ?? "";
    const content = Array.isArray(message?.content) ? message.content : [];
    const texts = content.flatMap((block) => (block?.type === "text" ? [block.text] : []));
    const beginnings = [...this.#strings].filter((text) => text.length > first.length && texts.some((whole) => whole.startsWith(text)));
    // a copy now and then, say each time the text has doubled, is linear over the whole answer
    if (beginnings.length <= 2 + Math.log2(deltas.length + 1)) return undefined;
    return `SPEC 13.3: work for a snapshot does not grow with the text; in ${deltas.length} deltas the text so far went ${beginnings.length} times through structuredClone or JSON.stringify. Make a new block with the longer text and share the rest.`;
  }

  #wrap(target: object, key: string): void {
    const holder = target as Record<string, unknown>;
    const original = holder[key];
    if (typeof original !== "function") return;
    let active = true;
    const counter = this;
    const wrapper = function (this: unknown, ...args: unknown[]): unknown {
      try {
        if (active) counter.#collect(args[0], 0);
      } catch {
        // a getter that throws is not ours to report
      }
      return Reflect.apply(original, this, args);
    };
    try {
      holder[key] = wrapper;
    } catch {
      return; // a frozen realm: nothing is counted
    }
    this.#undo.push(() => {
      active = false;
      if (holder[key] === wrapper) holder[key] = original;
    });
  }

  #collect(value: unknown, depth: number): void {
    if (typeof value === "string") this.#strings.add(value);
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || depth > 5) return;
    for (const item of Object.values(value).slice(0, 100)) this.#collect(item, depth + 1);
  }
}
