/** What one session has shown so far (SPEC 10.2). */
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { AssistantMessage } from "../../messages.js";
import type { AgentTool } from "../../tool.js";
import type { CardLook } from "./tool-card.js";

export interface ToolCard extends CardLook {
  /** Unique in the session. */
  id: string;
  /** As the model gave it. */
  callId: string;
  toolName: string;
  /** Once the call has started. */
  args?: unknown;
}

/** Made by `createUpdateState`; its fields are not for hosts. */
export class UpdateState {
  /** @internal */
  readonly tools: Iterable<AgentTool> | undefined;
  /** @internal */
  readonly cwd: string | undefined;
  /** @internal */
  readonly text = new AnswerText();
  /** Cards with no terminal update yet. @internal */
  readonly open = new Map<string, ToolCard | "thinking">();
  /** The cards of the answer that is streaming, by content index. @internal */
  readonly streaming = new Map<number, ToolCard>();
  /** The cards of the last answer's calls, by call id. @internal */
  readonly calls = new Map<string, ToolCard>();
  /** @internal */
  readonly thinking = new Map<string, string>();
  /** How often a card with this id was wanted. */
  readonly #wanted = new Map<string, number>();

  /** @internal */
  constructor(tools: Iterable<AgentTool> | undefined, cwd: string | undefined) {
    this.tools = tools;
    this.cwd = cwd;
  }

  /** The id of the card of a call that has not ended. @internal */
  openCardOf(callId: string): string | undefined {
    const id = this.calls.get(callId)?.id;
    return id !== undefined && this.open.has(id) ? id : undefined;
  }

  /** The id itself while no card has it, else with a suffix. @internal */
  uniqueId(id: string): string {
    const base = id || "call";
    let unique = base;
    for (let times = this.#wanted.get(base) ?? 0; this.#wanted.has(unique); unique = `${base}-${times}`) this.#wanted.set(base, ++times);
    this.#wanted.set(unique, 1);
    return unique;
  }
}

type ChunkType = "agent_message_chunk" | "agent_thought_chunk";

/** The text of the answer that is streaming. */
class AnswerText {
  #answers = 0;
  /** Content blocks of which something was sent. */
  readonly #begun = new Set<number>();
  /** The first half of a character whose second half comes with the next delta. */
  readonly #half: Record<ChunkType, string> = { agent_message_chunk: "", agent_thought_chunk: "" };

  /** An answer begins, or begins anew: what was sent of it cannot be taken back, so what comes is another message. */
  begin(): void {
    this.#answers++;
    this.#begun.clear();
  }

  delta(type: ChunkType, contentIndex: number, delta: unknown): SessionUpdate[] {
    if (typeof delta !== "string" || delta === "") return [];
    this.#begun.add(contentIndex);
    const text = this.#half[type] + delta;
    const half = /[\ud800-\udbff]$/.exec(text)?.[0] ?? "";
    this.#half[type] = half;
    return this.#chunk(type, text.slice(0, text.length - half.length));
  }

  /** A block that came whole, with no delta. */
  whole(block: AssistantMessage["content"][number], contentIndex: number): SessionUpdate[] {
    if (this.#begun.has(contentIndex) || block.type === "toolCall") return [];
    return block.type === "text"
      ? this.delta("agent_message_chunk", contentIndex, block.text)
      : this.delta("agent_thought_chunk", contentIndex, block.thinking);
  }

  /** Halves that stayed halves. */
  end(): SessionUpdate[] {
    const types: ChunkType[] = ["agent_message_chunk", "agent_thought_chunk"];
    const updates = types.flatMap((type) => this.#chunk(type, this.#half[type]));
    for (const type of types) this.#half[type] = "";
    return updates;
  }

  #chunk(sessionUpdate: ChunkType, text: string): SessionUpdate[] {
    const messageId = `${sessionUpdate === "agent_message_chunk" ? "message" : "thought"}-${this.#answers}`;
    return text ? [{ sessionUpdate, messageId, content: { type: "text", text } }] : [];
  }
}
