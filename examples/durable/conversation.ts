/** Conversations that survive their workers: one virtual object of Restate for each, and an inbox beside it. */
import { handlers, type internal, type ObjectContext, type ObjectSharedContext, object, TerminalError } from "@restatedev/restate-sdk";
import {
  type AgentContext,
  type AgentEvent,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  type Model,
  type PendingToolCall,
  type RunOutcome,
  resumeAgentLoop,
  runAgentLoop,
  type StreamFn,
  type ToolCallDecision,
  TurnLoopError,
  userMessage,
} from "turnloop";
import { type DurableRun, durable } from "turnloop/durable";
import { RestateSteps } from "./restate-steps.js";

export interface ConversationHost {
  model: Model;
  streamFn: StreamFn;
  tools: AgentTool[];
  systemPrompt: string;
  /**
   * Deterministic: hooks are asked again on a replay, and await nothing that is no step. `{ suspend: true }` of
   * `beforeToolCall` waits for an approval.
   */
  config?: Pick<AgentLoopConfig, "beforeToolCall" | "afterToolCall" | "maxParallelToolCalls">;
  /** Shows what happens, live. After a crash it hears again of what was replayed. */
  emit?(conversation: string, event: AgentEvent): void;
}

export interface Reply {
  outcome: RunOutcome;
  error?: string;
  /** What the prompt has added, itself included. */
  messages: AgentMessage[];
}

/** A call that waits for `POST /restate/awakeables/<approval>/resolve` with `{ "action": "approve" }` or `"deny"`. */
export interface PendingApproval extends PendingToolCall {
  approval: string;
}

export type Approval = { action: "approve"; args?: unknown } | { action: "deny"; reason?: string };

/** Longer than the longest tool: a worker that says nothing is asked to stop after the first, and cut off after the second. */
const SILENCE_MS = 10 * 60_000;

const inbox = object({
  name: "Inbox",
  handlers: {
    /** Steering: goes into the next request of the conversation's run, or of its next one. */
    push: async (ctx: ObjectContext, text: string): Promise<void> => {
      const messages = (await ctx.get<AgentMessage[]>("messages")) ?? [];
      ctx.set("messages", [...messages, userMessage(text, { timestamp: await ctx.date.now() })]);
    },
    drain: async (ctx: ObjectContext): Promise<AgentMessage[]> => {
      const messages = (await ctx.get<AgentMessage[]>("messages")) ?? [];
      ctx.clear("messages");
      return messages;
    },
  },
});

type RunEnd = Extract<AgentEvent, { type: "agent_end" }>;

/** What a worker serves. */
export function conversationServices(host: ConversationHost) {
  const conversation = object({
    name: "Conversation",
    handlers: {
      prompt: async (ctx: ObjectContext, text: string): Promise<Reply> => {
        try {
          return await new Prompt(ctx, host).answer(text);
        } catch (error) {
          // misuse does not get better by trying again
          if (TurnLoopError.is(error)) throw new TerminalError(error.message);
          throw error;
        }
      },
      messages: handlers.object.shared(async (ctx: ObjectSharedContext) => (await ctx.get<AgentMessage[]>("messages")) ?? []),
      pending: handlers.object.shared(async (ctx: ObjectSharedContext) => (await ctx.get<PendingApproval[]>("pending")) ?? []),
    },
    options: { explicitCancellation: true, inactivityTimeout: SILENCE_MS, abortTimeout: SILENCE_MS },
  });
  return [conversation, inbox];
}

/** One prompt of a conversation: a run, and another one for each time it was suspended. */
class Prompt {
  readonly #ctx: ObjectContext;
  readonly #host: ConversationHost;
  readonly #steps: RestateSteps;
  readonly #added: AgentMessage[] = [];
  #history: AgentMessage[] = [];
  #runs = 0;
  #time = 0;
  #end: RunEnd | undefined;

  constructor(ctx: ObjectContext, host: ConversationHost) {
    this.#ctx = ctx;
    this.#host = host;
    this.#steps = new RestateSteps(ctx as ObjectContext & internal.ContextInternal);
  }

  async answer(text: string): Promise<Reply> {
    this.#history = (await this.#ctx.get<AgentMessage[]>("messages")) ?? [];
    this.#time = await this.#ctx.date.now();
    const prompt = userMessage(text, { timestamp: this.#time });
    await this.#run((...given) => runAgentLoop([prompt], ...given));
    while (this.#end?.pending) {
      const decisions = await this.#askForApproval(this.#end.pending);
      await this.#run((...given) => resumeAgentLoop(decisions, ...given));
    }
    const { outcome, error } = this.#end as RunEnd;
    return { outcome, messages: this.#added, ...(error && { error: error.message }) };
  }

  async #run(
    loop: (
      context: AgentContext,
      config: AgentLoopConfig,
      emit: (event: AgentEvent) => void,
      signal: AbortSignal,
      streamFn: StreamFn,
    ) => Promise<AgentMessage[]>,
  ): Promise<void> {
    const { model, streamFn, tools, systemPrompt } = this.#host;
    const { step, signal } = this.#steps;
    const run: DurableRun = durable({ step, streamFn, tools, prefix: `run${++this.#runs}`, startedAt: this.#time });
    const config: AgentLoopConfig = {
      ...this.#host.config,
      model,
      now: run.now,
      getSteeringMessages: () => this.#steps.wait("drain", () => this.#ctx.objectClient(inbox, this.#ctx.key).drain()),
    };
    const context = { systemPrompt, messages: [...this.#history, ...this.#added], tools: run.tools };
    this.#added.push(...(await loop(context, config, (event) => this.#emit(event), signal, run.streamFn)));
    if (this.#steps.failure) throw this.#steps.failure; // the run was cut off, it has not ended
    this.#time = run.now();
    this.#ctx.set("messages", [...this.#history, ...this.#added]);
  }

  /** A cancellation is a denial: the run then ends as aborted. */
  async #askForApproval(pending: PendingToolCall[]): Promise<ToolCallDecision[]> {
    const open = pending.map((call) => ({ call, awakeable: this.#ctx.awakeable<Approval>() }));
    this.#ctx.set(
      "pending",
      open.map(({ call, awakeable }): PendingApproval => ({ ...call, approval: awakeable.id })),
    );
    const decisions = await Promise.all(
      open.map(async ({ call, awakeable }): Promise<ToolCallDecision> => {
        const toolCallId = call.toolCall.id;
        const waiting = this.#steps.wait("approval", () => awakeable.promise, { untilCancelled: true });
        const approval = await waiting.catch((error: Error): Approval => ({ action: "deny", reason: `Not executed: ${error.message}.` }));
        if (approval?.action === "approve") return { toolCallId, action: "approve", args: approval.args };
        return { toolCallId, action: "deny", reason: approval?.reason };
      }),
    );
    this.#ctx.clear("pending");
    return decisions;
  }

  #emit(event: AgentEvent): void {
    if (event.type === "agent_end") this.#end = event;
    try {
      this.#host.emit?.(this.#ctx.key, event);
    } catch {
      // who only looks on does not end the run
    }
  }
}
