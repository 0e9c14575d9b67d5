/** From the chunks of a Chat Completions stream to the events of an answer (SPEC 12.2). */
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { Usage } from "../../messages.js";
import type { AssistantMessageEvent } from "../../stream.js";
import { JsonEnd } from "../shared/json-end.js";
import { REASONING_FIELDS } from "./request.js";

/** The parts of a chunk that are read; nothing a compatible server leaves out is relied on. */
export interface Chunk {
  choices?: { index?: number; delta?: Delta | null; finish_reason?: string | null; usage?: ChunkUsage | null }[] | null;
  usage?: ChunkUsage | null;
}

interface Delta {
  content?: string | null;
  refusal?: string | null;
  reasoning_content?: string | null;
  reasoning?: string | null;
  tool_calls?: CallDelta[] | null;
}

interface CallDelta {
  index?: number;
  id?: string | null;
  function?: { name?: string | null; arguments?: string | object | null } | null;
}

interface ChunkUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: number | null } | null;
}

/** A block being written. The first one is shown as it comes, the others wait for it. */
interface Lane {
  kind: "text" | "thinking" | "call";
  /** The part not shown yet. */
  held: string;
  /** The reasoning field. */
  field?: string;
  call?: { index: number; id: string; name: string; json: JsonEnd; shown: boolean };
}

/** Reads one answer: `read` each chunk, then `finish`. */
export class AnswerReader {
  readonly #builder: AssistantMessageBuilder;
  #lanes: Lane[] = [];
  readonly #calls: Lane[] = [];
  #refusal = "";
  #reason: string | undefined;

  constructor(builder: AssistantMessageBuilder) {
    this.#builder = builder;
  }

  /** The model has said that it is done; only usage can follow. */
  get complete(): boolean {
    return this.#reason !== undefined;
  }

  read(chunk: Chunk | null): AssistantMessageEvent[] {
    const choice = chunk?.choices?.find(({ index = 0 }) => index === 0);
    const usage = chunk?.usage ?? choice?.usage;
    const events = usage ? this.#builder.usage(readUsage(usage)) : [];
    const delta = choice?.delta;
    if (delta) {
      const field = REASONING_FIELDS.find((name) => delta[name]);
      if (field) events.push(...this.#write(this.#blockLane("thinking", field), String(delta[field])));
      if (typeof delta.content === "string" && delta.content !== "") events.push(...this.#write(this.#blockLane("text"), delta.content));
      if (delta.refusal) this.#refusal += delta.refusal;
      for (const call of delta.tool_calls ?? []) events.push(...this.#write(this.#callLane(call), jsonText(call.function?.arguments)));
    }
    this.#reason = choice?.finish_reason ?? this.#reason;
    return events;
  }

  /** What is still held back. */
  flush(): AssistantMessageEvent[] {
    const events = this.#lanes.flatMap((lane) => this.#show(lane));
    this.#lanes = [];
    return events;
  }

  /** Closes an answer that is complete. */
  finish(): AssistantMessageEvent[] {
    const events = this.flush();
    const reason = this.#reason;
    if (this.#refusal !== "") return [...events, ...this.#refuse(this.#refusal)];
    if (reason === "content_filter") return [...events, ...this.#refuse("The provider's content filter stopped the answer.")];
    if (reason === "error") {
      const error = new Error("The provider ended the answer with an error it did not explain.");
      return [...events, ...this.#builder.fail(error, { kind: "network", retryable: true })];
    }
    // the calls decide between stop and toolUse: servers disagree about the word
    events.push(...this.#builder.done(reason === "length" ? "length" : undefined));
    if (reason === undefined || ["stop", "length", "tool_calls", "function_call"].includes(reason)) return events;
    return events.map((event) => (event.type === "done" ? { ...event, message: { ...event.message, rawStopReason: reason } } : event));
  }

  #refuse(text: string): AssistantMessageEvent[] {
    return this.#builder.fail(new Error(text), { kind: "refusal", retryable: false });
  }

  #blockLane(kind: "text" | "thinking", field?: string): Lane {
    const last = this.#lanes[this.#lanes.length - 1];
    if (last?.kind === kind && last.field === field) return last;
    return this.#open(field === undefined ? { kind, held: "" } : { kind, held: "", field });
  }

  /** The call a delta is about: by index, else by id, else the last one. A new id with a name is a new call whatever its index. */
  #callLane({ index, id, function: named }: CallDelta): Lane {
    const newestFirst = this.#calls.slice().reverse();
    const byId = index === undefined && id;
    const known = newestFirst.find(({ call }) => (byId ? call?.id === id : index === undefined || call?.index === index));
    const call = known?.call;
    if (!known || !call || (id && named?.name && call.id !== "" && call.id !== id)) {
      const json = new JsonEnd();
      const opened = { index: index ?? this.#calls.length, id: id ?? "", name: named?.name ?? "", json, shown: false };
      const lane: Lane = { kind: "call", held: "", call: opened };
      this.#calls.push(lane);
      return this.#open(lane);
    }
    call.id ||= id ?? "";
    call.name ||= named?.name ?? "";
    return known;
  }

  #open(lane: Lane): Lane {
    this.#lanes.push(lane);
    return lane;
  }

  #write(lane: Lane, text: string): AssistantMessageEvent[] {
    if (!this.#lanes.includes(lane)) return []; // a complete call that was closed: nothing can follow
    lane.held += text;
    lane.call?.json.read(text);
    const events: AssistantMessageEvent[] = [];
    for (;;) {
      const first = this.#lanes[0] as Lane;
      const complete = first.kind !== "call" || first.call?.json.complete;
      if (complete || first.call?.name) events.push(...this.#show(first));
      if (!complete || this.#lanes.length === 1) return events;
      this.#lanes.shift();
    }
  }

  #show(lane: Lane): AssistantMessageEvent[] {
    const { held, call, kind, field } = lane;
    lane.held = "";
    if (!call) return kind === "text" ? this.#builder.text(held) : held === "" ? [] : this.#builder.thinking(held, field);
    const start = call.shown ? [] : this.#builder.toolCallStart(call.id || `call_${this.#calls.indexOf(lane)}`, call.name);
    call.shown = true;
    return held === "" ? start : [...start, ...this.#builder.toolCallDelta(held)];
  }
}

/** Some servers send the arguments as an object. */
function jsonText(args: string | object | null | undefined): string {
  return typeof args === "object" && args !== null ? JSON.stringify(args) : (args ?? "");
}

/** `prompt_tokens` counts what was read from and written to the cache; `input` does not. */
function readUsage(usage: ChunkUsage): Partial<Usage> {
  const cacheRead = count(usage.prompt_tokens_details?.cached_tokens);
  const cacheWrite = count(usage.prompt_tokens_details?.cache_write_tokens);
  const input = Math.max(0, count(usage.prompt_tokens) - cacheRead - cacheWrite);
  return { input, output: count(usage.completion_tokens), cacheRead, cacheWrite };
}

function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
