/** All conversations of a server. One that nobody has used for a while is forgotten. */
import type { Agent } from "turnloop";
import { Conversation, type ConversationLimits } from "./conversation.js";
import { HttpError } from "./http.js";

export interface ConversationsOptions extends ConversationLimits {
  createAgent(): Agent;
  maxConversations: number;
  /** Milliseconds without a run and without a client after which a conversation goes. */
  idleMs: number;
  now(): number;
}

const SWEEPS_PER_IDLE_TIME = 4;

export class Conversations {
  readonly #options: ConversationsOptions;
  readonly #byId = new Map<string, { conversation: Conversation; usedAt: number }>();
  readonly #sweeping: NodeJS.Timeout;

  constructor(options: ConversationsOptions) {
    this.#options = options;
    this.#sweeping = setInterval(() => this.sweep(), options.idleMs / SWEEPS_PER_IDLE_TIME).unref();
  }

  create(): Conversation {
    const { createAgent, maxConversations, now } = this.#options;
    if (this.#byId.size >= maxConversations) throw new HttpError(503, "full", "There are too many conversations; try again later.");
    const conversation = new Conversation(createAgent(), this.#options);
    this.#byId.set(conversation.id, { conversation, usedAt: now() });
    return conversation;
  }

  get(id: string): Conversation {
    const known = this.#byId.get(id);
    if (!known) throw new HttpError(404, "unknown_conversation", "There is no such conversation; it may have been idle for too long.");
    known.usedAt = this.#options.now();
    return known.conversation;
  }

  sweep(): void {
    const now = this.#options.now();
    for (const [id, entry] of this.#byId) {
      if (entry.conversation.isActive) entry.usedAt = now;
      else if (now - entry.usedAt >= this.#options.idleMs) this.#byId.delete(id);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeping);
    await Promise.all([...this.#byId.values()].map(({ conversation }) => conversation.close()));
  }
}
