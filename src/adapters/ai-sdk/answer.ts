/** From the parts of a model's stream to the events of an answer (SPEC 12.2). */
import { type AssistantMessageBuilder, argumentsErrorText } from "../../message-builder.js";
import type { AssistantMessage, ToolCall } from "../../messages.js";
import { parseObject } from "../../partial-json.js";
import type { AssistantMessageEvent } from "../../stream.js";
import { JsonEnd } from "../shared/json-end.js";
import { type Lane, Lanes } from "../shared/lanes.js";
import { failureOf } from "./errors.js";
import type { StreamPart } from "./language-model.js";
import { sign } from "./signature.js";
import { readUsage } from "./usage.js";

interface Call {
  readonly lane: Lane;
  readonly id: string;
  readonly end: JsonEnd;
  /** The arguments' text as it came in pieces. */
  json: string;
  /** Pieces that are not JSON; the whole is. */
  plain: boolean;
  /** What became known when its block may have been over; undefined: it is not for the loop. */
  late: Partial<ToolCall> | undefined;
}

/** Reads one answer: `read` each part, then `finish`. */
export class AnswerReader {
  readonly #builder: AssistantMessageBuilder;
  readonly #provider: string;
  readonly #secrets: () => unknown[];
  readonly #lanes: Lanes;
  /** Open text and reasoning blocks, by kind and id. */
  readonly #prose = new Map<string, Lane>();
  /** In the order of their blocks. */
  readonly #calls: Call[] = [];
  /** Those whose `tool-call` part has not come, by id. */
  readonly #openCalls = new Map<string, Call>();
  #finish: { unified: string; raw: string | undefined } | undefined;
  #error: { error: unknown } | undefined;

  /** `secrets`: what an error must not repeat. */
  constructor(builder: AssistantMessageBuilder, provider: string, secrets: () => unknown[]) {
    this.#builder = builder;
    this.#provider = provider;
    this.#secrets = secrets;
    this.#lanes = new Lanes(builder);
  }

  /** The last part came. */
  get complete(): boolean {
    return this.#finish !== undefined || this.failed;
  }

  /** It was an error. */
  get failed(): boolean {
    return this.#error !== undefined;
  }

  read(part: StreamPart): AssistantMessageEvent[] {
    if (this.complete) return [];
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        return this.#say("text", part);
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.#say("thinking", part);
      case "tool-input-start":
        if (!part.providerExecuted) this.#open(part.id ?? "", part);
        return [];
      case "tool-input-delta":
      case "tool-input-end":
        return this.#writeCall(part);
      case "tool-call":
        return this.#endCall(part);
      case "error":
        this.#error = { error: part.error };
        return [];
      case "finish":
        this.#finish = readFinish(part.finishReason);
        return part.usage ? this.#builder.usage(readUsage(part.usage, part.providerMetadata)) : [];
      default:
        // warnings, sources, files, what a provider executed itself: nothing a transcript can hold
        return [];
    }
  }

  /** What is still held back. */
  flush(): AssistantMessageEvent[] {
    return this.#lanes.flush();
  }

  /** Closes an answer that is complete. */
  finish(): AssistantMessageEvent[] {
    const events = this.flush();
    if (this.#error) return [...events, ...this.#builder.fail(...failureOf(this.#error.error, this.#secrets))];
    const { unified, raw } = this.#finish ?? { unified: "unknown", raw: undefined };
    const fail = (text: string, kind: "refusal" | "network"): AssistantMessageEvent[] => [
      ...events,
      ...this.#builder.fail(new Error(text), { kind, retryable: kind === "network" }),
    ];
    if (unified === "content-filter") {
      return fail(`The provider's content filter stopped the answer${raw && raw !== unified ? ` (${raw})` : ""}.`, "refusal");
    }
    if (unified === "error") return fail("The provider ended the answer with an error it did not explain.", "network");
    // what providers say when their response's body ended without its last event
    if (unified === "unknown" || unified === "interrupted" || (unified === "other" && raw === undefined)) {
      return fail("The stream ended early: the model gave no reason to finish.", "network");
    }
    // the calls decide between stop and toolUse: providers disagree about the word
    events.push(...this.#builder.done(unified === "length" ? "length" : undefined));
    const known = ["stop", "length", "tool-calls"].includes(unified);
    return events.map((event) => (event.type === "done" ? this.#amend(event, known ? undefined : (raw ?? unified)) : event));
  }

  #say(kind: "text" | "thinking", { type, id, delta = "", providerMetadata }: StreamPart): AssistantMessageEvent[] {
    const key = `${kind} ${id}`;
    let lane = this.#prose.get(key);
    if (!lane && type.endsWith("-end")) return [];
    if (!lane || (lane.ended && delta !== "")) {
      lane = this.#lanes.open(kind);
      this.#prose.set(key, lane);
    }
    if (providerMetadata) lane.signature = sign(this.#provider, providerMetadata);
    else if (kind === "thinking" && delta !== "") lane.signature ??= sign(this.#provider, undefined);
    if (!type.endsWith("-end")) return this.#lanes.write(lane, delta);
    this.#prose.delete(key);
    return this.#lanes.end(lane);
  }

  #open(id: string, { toolName, inputEncoding, providerMetadata }: StreamPart): Call {
    const lane = this.#lanes.open("call");
    lane.id = id || lane.id;
    lane.name = toolName ?? "";
    const call: Call = { lane, id, end: new JsonEnd(), json: "", plain: inputEncoding === "text", late: {} };
    if (providerMetadata) call.late = { thoughtSignature: sign(this.#provider, providerMetadata) };
    this.#calls.push(call);
    this.#openCalls.set(id, call);
    return call;
  }

  #writeCall({ type, id, delta = "" }: StreamPart): AssistantMessageEvent[] {
    const call = this.#openCalls.get(id ?? "");
    if (!call || call.plain || call.lane.ended) return [];
    call.json += delta;
    call.end.read(delta);
    call.lane.complete = call.end.complete || (type === "tool-input-end" && call.json !== "");
    return this.#lanes.write(call.lane, delta);
  }

  /** The call as a whole; some providers send nothing else. */
  #endCall(part: StreamPart): AssistantMessageEvent[] {
    const { toolCallId = "", input, providerExecuted, providerMetadata } = part;
    const known = this.#openCalls.get(toolCallId);
    if (providerExecuted) {
      if (!known) return [];
      known.late = undefined;
      return this.#lanes.end(known.lane);
    }
    const call = known ?? this.#open(toolCallId, part);
    this.#openCalls.delete(toolCallId);
    const json = typeof input === "string" ? input : JSON.stringify(input ?? {});
    if (providerMetadata) call.late = { ...call.late, thoughtSignature: sign(this.#provider, providerMetadata) };
    if (call.late?.thoughtSignature) call.lane.signature = call.late.thoughtSignature;
    const written = call.json === "" && !call.lane.ended;
    if (!written && json.trim() !== call.json.trim()) call.late = { ...call.late, ...argumentsOf(json) };
    return [...(written ? this.#lanes.write(call.lane, json) : []), ...this.#lanes.end(call.lane)];
  }

  /** The final message with what came too late for its blocks. */
  #amend(event: AssistantMessageEvent & { type: "done" }, rawStopReason: string | undefined): AssistantMessageEvent {
    let index = 0;
    const content = event.message.content.flatMap((block): AssistantMessage["content"] => {
      if (block.type !== "toolCall") return [block];
      const late = this.#calls[index++]?.late;
      if (!late) return [];
      // an error of the pieces says nothing about the whole
      const { argumentsError, ...call } = block;
      return [{ ...(late.arguments ? call : block), ...late }];
    });
    const executed = this.#calls.some(({ late }) => late);
    const reason = event.reason === "toolUse" && !executed ? "stop" : event.reason;
    const message = { ...event.message, content, stopReason: reason, ...(rawStopReason === undefined ? {} : { rawStopReason }) };
    return { type: "done", reason, message };
  }
}

function argumentsOf(json: string): Partial<ToolCall> {
  const value = json.trim() === "" ? {} : parseObject(json);
  return value ? { arguments: value } : { arguments: {}, argumentsError: argumentsErrorText(json) };
}

/** In v2 `other` is a reason; in v3 and v4 it is one only together with the provider's own word. */
function readFinish(reason: StreamPart["finishReason"]): { unified: string; raw: string | undefined } {
  if (typeof reason === "string") return { unified: reason, raw: reason };
  return { unified: reason?.unified ?? "unknown", raw: reason?.raw ?? undefined };
}
