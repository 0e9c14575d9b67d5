/** From the events of a Responses stream to the events of an answer (SPEC 12.2). */
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { ModelErrorInfo } from "../../messages.js";
import type { AssistantMessageEvent } from "../../stream.js";
import { type Lane, Lanes } from "../shared/lanes.js";
import type { AnswerReader } from "../shared/stream-answer.js";
import { doneAs, newest, refused, reportedError, stringOf } from "./ending.js";
import { type InputDetails, usageOf } from "./usage.js";

/** The parts of an event that are read; nothing a compatible server leaves out is relied on. */
export interface ResponseEvent {
  type?: string;
  /** Of a whole response, which a server that does not stream sends in place of events. */
  object?: string;
  output_index?: number | null;
  item_id?: string | null;
  content_index?: number | null;
  summary_index?: number | null;
  delta?: unknown;
  arguments?: unknown;
  item?: OutputItem | null;
  response?: ResponseState | null;
  code?: unknown;
  message?: unknown;
}

interface OutputItem {
  type?: string;
  id?: string | null;
  call_id?: string | null;
  name?: string | null;
  arguments?: unknown;
  phase?: string | null;
  content?: Part[] | null;
  summary?: Part[] | null;
  encrypted_content?: string | null;
}

interface Part {
  type?: string;
  text?: string | null;
  refusal?: string | null;
}

interface ResponseState {
  status?: string | null;
  error?: { code?: unknown; message?: unknown } | null;
  incomplete_details?: { reason?: string | null } | null;
  output?: OutputItem[] | null;
  usage?: ResponseUsage | null;
}

interface ResponseUsage {
  input_tokens?: number;
  output_tokens?: number;
  total_tokens?: number;
  input_tokens_details?: InputDetails | null;
}

type Kind = Lane["kind"];

/** An item of the output that becomes a block. */
interface Item {
  lane: Lane;
  index: number | undefined;
  id: string | undefined;
  /** The part that the last delta belonged to. */
  part?: string;
  /** How much of its text came. */
  written: number;
  /** Set when it is over: how it was called then. */
  done?: string;
}

const KINDS = new Map<unknown, Kind>([
  ["message", "text"],
  ["reasoning", "thinking"],
  ["function_call", "call"],
]);
const PARAGRAPH = "\n\n";

/** Reads one answer: `read` each event, then `finish`. */
export class ResponsesAnswer implements AnswerReader<ResponseEvent | null> {
  readonly #builder: AssistantMessageBuilder;
  readonly #lanes: Lanes;
  readonly #items: Item[] = [];
  #refusal = "";
  #end: { status: string; response: ResponseState } | undefined;

  constructor(builder: AssistantMessageBuilder) {
    this.#builder = builder;
    this.#lanes = new Lanes(builder);
  }

  get complete(): boolean {
    return this.#end !== undefined;
  }

  read(given: ResponseEvent | null): AssistantMessageEvent[] {
    const event = given ?? {};
    switch (event.type ?? event.object) {
      case "response.output_item.added":
        return this.#begin(event);
      case "response.output_item.done":
        return this.#endItem(event);
      case "response.output_text.delta":
        return this.#write("text", event);
      case "response.reasoning_summary_text.delta":
        return this.#write("thinking", event, `summary ${event.summary_index}`);
      case "response.reasoning_text.delta":
        return this.#write("thinking", event, `content ${event.content_index}`);
      case "response.function_call_arguments.delta":
        return this.#write("call", event);
      case "response.function_call_arguments.done":
        return this.#completeCall(event);
      case "response.refusal.delta":
        this.#refusal += stringOf(event.delta);
        return [];
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
        return this.#over(event.type?.slice("response.".length) ?? "", event.response ?? {});
      case "response":
        return this.#over("completed", event as ResponseState);
      case "error":
        throw reportedError(event, event);
      case undefined:
        if (typeof event.message === "string") throw reportedError(event, event);
        return [];
      default:
        return [];
    }
  }

  flush(): AssistantMessageEvent[] {
    return this.#lanes.flush();
  }

  finish(failure: (error: unknown) => [Error, ModelErrorInfo]): AssistantMessageEvent[] {
    const events = this.flush();
    const { status, response } = this.#end ?? { status: "failed", response: {} };
    const reason = response.incomplete_details?.reason ?? undefined;
    if (status === "failed" || status === "cancelled") {
      const error = reportedError(response.error ?? {}, response);
      events.push(...this.#builder.fail(...failure(error)));
    } else if (this.#refusal !== "") events.push(...refused(this.#builder, this.#refusal));
    else if (status === "completed") events.push(...this.#builder.done());
    else if (reason === "content_filter") events.push(...refused(this.#builder));
    // whatever cut the answer, its calls may be cut too
    else events.push(...doneAs(this.#builder, "length", reason === "max_output_tokens" ? undefined : reason));
    return events;
  }

  #begin(event: ResponseEvent): AssistantMessageEvent[] {
    const kind = KINDS.get(event.item?.type);
    if (!kind) return [];
    const { lane } = this.#open(kind, event);
    return this.#lanes.write(lane, "");
  }

  #open(kind: Kind, { output_index, item_id, item }: ResponseEvent): Item {
    const lane = this.#lanes.open(kind);
    // known when it is over, and not because another one begins
    lane.complete = false;
    nameCall(lane, item);
    const opened: Item = { lane, index: output_index ?? undefined, id: item?.id ?? item_id ?? undefined, written: 0 };
    this.#items.push(opened);
    return opened;
  }

  /** The item an event is about. By its place: some servers give an item another id in every event. */
  #find(kind: Kind, event: ResponseEvent): Item | undefined {
    const { output_index: index = null } = event;
    const id = event.item?.id ?? event.item_id ?? undefined;
    const isIt = (item: Item): boolean => (index !== null ? item.index === index : id === undefined || item.id === id);
    return newest(this.#items, (item) => item.lane.kind === kind && isIt(item));
  }

  #write(kind: Kind, event: ResponseEvent, part = ""): AssistantMessageEvent[] {
    const delta = stringOf(event.delta);
    if (delta === "") return [];
    const found = this.#find(kind, event);
    // text that comes late is shown all the same; a call that is over stays as it is
    if (found?.done && kind === "call") return [];
    const item = found && !found.done ? found : this.#open(kind, event);
    const text = item.part !== undefined && item.part !== part ? PARAGRAPH + delta : delta;
    item.part = part;
    item.written += delta.length;
    return this.#lanes.write(item.lane, text);
  }

  /** What no delta brought of a call's arguments: not every server ends the item too. */
  #completeCall(event: ResponseEvent): AssistantMessageEvent[] {
    const item = this.#find("call", event);
    if (!item || item.done) return [];
    const rest = stringOf(event.arguments).slice(item.written);
    item.written += rest.length;
    return this.#lanes.write(item.lane, rest);
  }

  /** The item as a whole: what no delta brought, and what is kept for its replay. */
  #endItem(event: ResponseEvent): AssistantMessageEvent[] {
    const whole = event.item ?? {};
    const kind = KINDS.get(whole.type);
    if (!kind) return [];
    const found = this.#find(kind, event);
    const name = whole.call_id ?? whole.id ?? undefined;
    // said twice: a call must not run twice
    if (found?.done && name !== undefined && found.done === name) return [];
    const item = found && !found.done ? found : this.#open(kind, event);
    item.done = name ?? "unnamed";
    nameCall(item.lane, whole);
    const text = wholeText(kind, whole);
    // reasoning and prose are shown as they came; of arguments no character may be missing
    const rest = item.written === 0 || kind === "call" ? text.slice(item.written) : "";
    if (kind === "text" && this.#refusal === "") this.#refusal = joined(whole.content, "refusal", "");
    const signature = signatureOf(kind, whole);
    if (signature !== undefined) item.lane.signature = signature;
    return [...this.#lanes.write(item.lane, rest), ...this.#lanes.end(item.lane)];
  }

  #over(type: string, response: ResponseState): AssistantMessageEvent[] {
    const { usage, output } = response;
    const said = response.status ?? "";
    const status = ["failed", "incomplete", "cancelled"].includes(said) ? said : type;
    const events: AssistantMessageEvent[] = [];
    // a server that sends the answer in its last event only
    if (this.#items.length === 0) for (const item of output ?? []) events.push(...this.#endItem({ item }));
    this.#end = { status, response };
    if (usage)
      events.push(...this.#builder.usage(usageOf(usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.input_tokens_details)));
    return events;
  }
}

function nameCall(lane: Lane, item: OutputItem | null | undefined): void {
  if (lane.kind !== "call") return;
  lane.id = item?.call_id || item?.id || lane.id;
  lane.name ||= item?.name ?? "";
}

function wholeText(kind: Kind, { content, summary, arguments: args }: OutputItem): string {
  if (kind === "text") return joined(content, "text", "");
  if (kind === "thinking") return joined(summary, "text", PARAGRAPH) || joined(content, "text", PARAGRAPH);
  return typeof args === "object" && args !== null ? JSON.stringify(args) : stringOf(args);
}

function joined(parts: Part[] | null | undefined, field: "text" | "refusal", separator: string): string {
  return (parts ?? [])
    .map((part) => stringOf(part?.[field]))
    .filter((text) => text !== "")
    .join(separator);
}

/** What must be sent again with the block, as JSON. */
function signatureOf(kind: Kind, { id, summary, content, encrypted_content, phase }: OutputItem): string | undefined {
  if (kind === "text") return phase ? JSON.stringify({ phase }) : undefined;
  if (kind === "call" || !id) return undefined;
  return JSON.stringify({ type: "reasoning", id, summary: summary ?? [], ...(content?.length && { content }), encrypted_content });
}
