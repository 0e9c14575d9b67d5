/** From the chunks of a Chat Completions stream to the events of an answer (SPEC 12.2). */
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent } from "../../stream.js";
import { JsonEnd } from "../shared/json-end.js";
import { type Lane, Lanes } from "../shared/lanes.js";
import type { AnswerReader } from "../shared/stream-answer.js";
import { REASONING_FIELDS } from "./chat-request.js";
import { doneAs, newest, refused, reportedError, stringOf, UNEXPLAINED } from "./ending.js";

import { type InputDetails, usageOf } from "./usage.js";

/** The parts of a chunk that are read; nothing a compatible server leaves out is relied on. */
export interface Chunk {
  choices?: Choice[] | null;
  usage?: ChunkUsage | null;
  /** "error" for an error that stands in a chunk's place; some have a message only. */
  object?: string;
  code?: unknown;
  message?: unknown;
}

interface Choice {
  index?: number | null;
  delta?: Delta | null;
  /** In place of deltas, when a server does not stream. */
  message?: Delta | null;
  finish_reason?: string | null;
  usage?: ChunkUsage | null;
}

interface Delta {
  content?: string | ContentPart[] | null;
  refusal?: string | null;
  reasoning_content?: string | null;
  reasoning?: string | null;
  tool_calls?: CallDelta[] | null;
}

/** Some servers send the content in parts, reasoning among them. */
interface ContentPart {
  type?: string;
  text?: string | null;
  thinking?: string | ContentPart[] | null;
}

interface CallDelta {
  index?: number | null;
  id?: string | null;
  function?: { name?: string | null; arguments?: string | object | null } | null;
  extra_content?: object | null;
}

interface ChunkUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  prompt_tokens_details?: InputDetails | null;
}

interface Call {
  lane: Lane;
  index: number | undefined;
  /** The server's own. */
  id: string;
  json: JsonEnd;
}

/** Words of servers for an answer that did not come to its end, and what they mean. */
const FAILURES: Record<string, { text: string; kind: "network" | "overloaded" }> = {
  error: { text: UNEXPLAINED, kind: "network" },
  network_error: { text: "The provider lost its connection to the model.", kind: "network" },
  abort: { text: "The provider aborted the answer.", kind: "network" },
  insufficient_system_resource: { text: "The provider had not enough resources to end the answer.", kind: "overloaded" },
};
const FILTERED = ["content_filter", "sensitive"];
const LENGTH = ["length", "max_tokens", "model_length"];

/** Reads one answer: `read` each chunk, then `finish`. */
export class ChatAnswer implements AnswerReader<Chunk | null> {
  readonly #builder: AssistantMessageBuilder;
  readonly #lanes: Lanes;
  readonly #calls: Call[] = [];
  /** Where text or reasoning goes, while nothing else came in between. */
  #prose: { lane: Lane; kind: Lane["kind"]; field: string | undefined } | undefined;
  #refusal = "";
  #reason = "";

  constructor(builder: AssistantMessageBuilder) {
    this.#builder = builder;
    this.#lanes = new Lanes(builder);
  }

  get complete(): boolean {
    return this.#reason !== "";
  }

  read(chunk: Chunk | null): AssistantMessageEvent[] {
    if (chunk?.object === "error" || (typeof chunk?.message === "string" && !chunk.choices)) throw reportedError(chunk, chunk);
    const choice = chunk?.choices?.find((candidate) => (candidate?.index ?? 0) === 0);
    const usage = chunk?.usage ?? choice?.usage;
    const events = usage ? this.#builder.usage(readUsage(usage)) : [];
    const delta = choice?.delta ?? choice?.message;
    if (delta) {
      const field = REASONING_FIELDS.find((name) => typeof delta[name] === "string" && delta[name] !== "");
      if (field) events.push(...this.#say("thinking", String(delta[field]), field));
      const parts = Array.isArray(delta.content) ? delta.content : [{ text: delta.content }];
      for (const part of parts) {
        events.push(...this.#say("thinking", textOf(part?.thinking)));
        events.push(...this.#say("text", textOf(part?.text)));
      }
      if (delta.refusal) this.#refusal += delta.refusal;
      for (const call of delta.tool_calls ?? []) events.push(...this.#writeCall(call));
    }
    this.#reason = choice?.finish_reason || this.#reason;
    return events;
  }

  flush(): AssistantMessageEvent[] {
    return this.#lanes.flush();
  }

  finish(): AssistantMessageEvent[] {
    const events = this.flush();
    const reason = this.#reason;
    const failed = Object.hasOwn(FAILURES, reason) ? FAILURES[reason] : undefined;
    if (this.#refusal !== "") events.push(...refused(this.#builder, this.#refusal));
    else if (FILTERED.includes(reason)) events.push(...refused(this.#builder));
    else if (failed) events.push(...this.#builder.fail(new Error(failed.text), { kind: failed.kind, retryable: true }));
    else if (LENGTH.includes(reason)) events.push(...this.#builder.done("length"));
    // the calls decide between stop and toolUse: servers disagree about the word
    else events.push(...doneAs(this.#builder, undefined, ["stop", "tool_calls", "function_call"].includes(reason) ? undefined : reason));
    return events;
  }

  #say(kind: "text" | "thinking", text: string, field?: string): AssistantMessageEvent[] {
    if (text === "") return [];
    if (this.#prose?.kind !== kind || this.#prose.field !== field) this.#prose = { lane: this.#lanes.open(kind, field), kind, field };
    return this.#lanes.write(this.#prose.lane, text);
  }

  #writeCall(delta: CallDelta | null): AssistantMessageEvent[] {
    if (!delta) return [];
    const { lane, json } = this.#call(delta);
    const text = jsonText(delta.function?.arguments);
    json.read(text);
    lane.complete = json.complete;
    if (delta.extra_content) lane.signature = JSON.stringify(delta.extra_content);
    return this.#lanes.write(lane, text);
  }

  /** The call a delta is about: by index, else by id, else the last one. A new id with a name is a new call whatever its index. */
  #call({ index: given, id, function: named }: CallDelta): Call {
    const index = given ?? undefined;
    const byId = index === undefined && id;
    const known = newest(this.#calls, (call) => (byId ? call.id === id : index === undefined || call.index === index));
    const isNew = !known || (id && named?.name && known.id !== "" && known.id !== id);
    const call = isNew ? this.#open(index) : known;
    if (call.id === "" && id) {
      call.id = id;
      call.lane.id = id;
    }
    call.lane.name ||= named?.name ?? "";
    return call;
  }

  #open(index: number | undefined): Call {
    this.#prose = undefined;
    const call = { lane: this.#lanes.open("call"), index: index ?? this.#calls.length, id: "", json: new JsonEnd() };
    this.#calls.push(call);
    return call;
  }
}

function textOf(content: string | ContentPart[] | null | undefined): string {
  if (Array.isArray(content)) return content.map((part) => textOf(part?.text)).join("");
  return stringOf(content);
}

/** Some servers send the arguments as an object. */
function jsonText(args: unknown): string {
  if (typeof args === "string") return args;
  return typeof args === "object" && args !== null ? JSON.stringify(args) : "";
}

function readUsage({ prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details }: ChunkUsage): ReturnType<typeof usageOf> {
  return usageOf(prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details);
}
