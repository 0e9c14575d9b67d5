/** From the parts of a model's stream to the events of an answer (SPEC 12.2). */
import { type AssistantMessageBuilder, argumentsErrorText } from "../../message-builder.js";
import type { AssistantMessage, ToolCall } from "../../messages.js";
import { parseObject } from "../../partial-json.js";
import type { AssistantMessageEvent } from "../../stream.js";
import { JsonEnd } from "../shared/json-end.js";
import { type Lane, Lanes } from "../shared/lanes.js";
import type { AnswerReader } from "../shared/stream-answer.js";
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
export class PartsAnswer implements AnswerReader<StreamPart | null> {
  readonly #builder: AssistantMessageBuilder;
  readonly #provider: string;
  readonly #lanes: Lanes;
  /** Open text and reasoning blocks, by kind and id. */
  readonly #prose = new Map<string, Lane>();
  /** In the order of their blocks. */
  readonly #calls: Call[] = [];
  /** Those whose `tool-call` part has not come, by id. */
  readonly #openCalls = new Map<string, Call>();
  /** Signatures of text and reasoning that came when their blocks were over, by contentIndex. */
  readonly #lateSignatures = new Map<number, string>();
  #finish: { unified: string; raw: string | undefined } | undefined;

  constructor(builder: AssistantMessageBuilder, provider: string) {
    this.#builder = builder;
    this.#provider = provider;
    this.#lanes = new Lanes(builder);
  }

  /** The last part came. */
  get complete(): boolean {
    return this.#finish !== undefined;
  }

  read(part: StreamPart | null): AssistantMessageEvent[] {
    if (this.complete || !part) return [];
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
        throw part.error;
      case "finish":
        this.#finish = readFinish(part);
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
    const { unified, raw } = this.#finish ?? { unified: "unknown", raw: undefined };
    const fail = (text: string, kind: "refusal" | "network"): AssistantMessageEvent[] => [
      ...events,
      ...this.#builder.fail(new Error(text), { kind, retryable: kind === "network" }),
    ];
    const own = raw && raw !== unified ? ` (${raw})` : "";
    if (unified === "content-filter") return fail(`The provider's content filter stopped the answer${own}.`, "refusal");
    if (unified === "error") return fail(`The provider ended the answer with an error it did not explain${own}.`, "network");
    // what providers say when their response's body ended without its last event
    if ((unified === "unknown" && raw === undefined) || unified === "interrupted" || (unified === "other" && raw === undefined)) {
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
    if (providerMetadata) {
      lane.signature = sign(this.#provider, providerMetadata);
      if (lane.ended && lane.block !== undefined) this.#lateSignatures.set(lane.block, lane.signature);
    } else if (kind === "thinking" && delta !== "") lane.signature ??= sign(this.#provider, undefined);
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
    const { toolCallId = "", toolName, input, providerExecuted, providerMetadata } = part;
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
    if (toolName && toolName !== call.lane.name) call.late = { ...call.late, name: toolName };
    if (call.late?.thoughtSignature) call.lane.signature = call.late.thoughtSignature;
    const written = call.json === "" && !call.lane.ended;
    if (!written && json.trim() !== call.json.trim()) call.late = { ...call.late, ...argumentsOf(json) };
    return [...(written ? this.#lanes.write(call.lane, json) : []), ...this.#lanes.end(call.lane)];
  }

  /** The final message with what came too late for its blocks. */
  #amend(event: AssistantMessageEvent & { type: "done" }, rawStopReason: string | undefined): AssistantMessageEvent {
    let index = 0;
    const content = event.message.content.flatMap((block, at): AssistantMessage["content"] => {
      const signature = this.#lateSignatures.get(at);
      if (block.type === "text") return [signature ? { ...block, textSignature: signature } : block];
      if (block.type === "thinking") return [signature ? { ...block, thinkingSignature: signature } : block];
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

/**
 * In v2 `other` is a reason; in v3 and v4 it is one only together with the provider's own word. v2 says `unknown` for a word
 * it does not know, which many compatible servers have, and for none: an answer whose tokens were counted had one.
 */
function readFinish({ finishReason: reason, usage }: StreamPart): { unified: string; raw: string | undefined } {
  if (typeof reason !== "string") return { unified: reason?.unified ?? "unknown", raw: reason?.raw ?? undefined };
  const counted = typeof usage?.outputTokens === "number";
  return { unified: reason, raw: reason === "unknown" && !counted ? undefined : reason };
}
