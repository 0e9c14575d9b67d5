/** The conversation: an Agent, and what the user can do with it. */
import {
  Agent,
  type AgentMessage,
  type AgentRunResult,
  type BeforeToolCallContext,
  type BeforeToolCallResult,
  dropFailedTail,
  type ImageContent,
  initialView,
  toLlmMessages,
  userMessage,
} from "turnloop";
import type { ModelChoice } from "./models.js";
import type { ApprovalDecision, Store } from "./state.js";
import type { Toolbox } from "./tools/index.js";

const SYSTEM_PROMPT = "You help with the files of a small workspace. Look at them with your tools; do not guess.";

export class Chat {
  readonly #agent: Agent;
  readonly #store: Store;
  readonly #toolbox: Toolbox;
  #choice: ModelChoice;

  constructor(store: Store, toolbox: Toolbox, choice: ModelChoice) {
    this.#store = store;
    this.#toolbox = toolbox;
    this.#choice = choice;
    this.#agent = new Agent({
      model: choice.model,
      streamFn: (model, context, options) => this.#choice.streamFn(model, context, options),
      tools: toolbox.tools,
      systemPrompt: SYSTEM_PROMPT,
      thinking: true,
      convertToLlm: (messages) => toLlmMessages(messages.map(withStopNote)),
      beforeToolCall: (call, signal) => this.#askFirst(call, signal),
    });
    this.#agent.subscribe((event) => store.hear(event));
    this.#agent.on("thinking", (event) => store.hear({ type: "thinking", event }));
    this.#agent.on("queue_change", (change) => store.hear({ type: "queue_change", ...change }));
  }

  /** A question; while an answer is on, a word that reaches the model with its next request. */
  send(text: string, images: ImageContent[]): void {
    const message = userMessage(text, { images });
    if (this.#agent.isRunning) this.#agent.steer(message);
    else void this.#run(() => this.#agent.prompt(message));
  }

  /** A question for when this answer is complete. */
  later(text: string, images: ImageContent[]): void {
    if (this.#agent.isRunning) this.#agent.followUp(userMessage(text, { images }));
    else this.send(text, images);
  }

  stop(): void {
    this.#agent.abort(new Error("stopped by the user"));
  }

  /** Answers again in place of an answer that failed. */
  retry(): void {
    const { view } = this.#store.state;
    this.#store.set({ view: { ...view, messages: dropFailedTail([...view.messages]) } });
    void this.#run(() => this.#agent.retry());
  }

  /** What still waits after a stop or a failure. */
  sendWaiting(): void {
    void this.#run(() => this.#agent.continue());
  }

  /** Takes back what has not been sent. */
  takeBack(message: AgentMessage): void {
    if (!this.#agent.followUpQueue.remove(message)) this.#agent.steeringQueue.remove(message);
  }

  /** From the next turn on. */
  use(choice: ModelChoice): void {
    this.#choice = choice;
    this.#agent.model = choice.model;
    this.#store.set({ model: { id: choice.model.id, place: choice.place } });
  }

  async startOver(): Promise<void> {
    this.stop();
    await this.#agent.waitForIdle();
    this.#agent.reset();
    this.#store.set({ view: initialView(), timeline: undefined, notice: undefined, edited: new Map() });
  }

  /** What was queued too late for the run gets one of its own; after a stop or a failure it waits for the user. */
  async #run(start: () => Promise<AgentRunResult>): Promise<void> {
    const { steeringQueue, followUpQueue } = this.#agent;
    this.#store.set({ running: true, notice: undefined });
    try {
      let { outcome } = await start();
      while (outcome === "completed" && steeringQueue.size + followUpQueue.size > 0) ({ outcome } = await this.#agent.continue());
    } catch (error) {
      this.#store.set({ notice: (error as Error).message });
    } finally {
      this.#store.set({ running: this.#agent.isRunning });
    }
  }

  async #askFirst({ toolCall, args }: BeforeToolCallContext, signal: AbortSignal): Promise<BeforeToolCallResult | undefined> {
    const tool = this.#agent.tools.get(toolCall.name);
    if (!tool || !this.#toolbox.needsApproval(tool)) return undefined;
    const callIndex = this.#store.state.view.toolCalls.map(({ toolCallId }) => toolCallId).lastIndexOf(toolCall.id);
    const decision = await new Promise<ApprovalDecision>((resolve) => {
      const decide = (decided: ApprovalDecision): void => {
        this.#store.set({ approval: undefined });
        resolve(decided);
      };
      signal.addEventListener("abort", () => decide({ allow: false, reason: "" }), { once: true });
      this.#store.set({ approval: { callIndex, label: tool.label ?? tool.name, args, decide } });
    });
    if (!decision.allow) return { block: true, reason: `The user did not allow this.${decision.reason && ` ${decision.reason}`}` };
    if (!decision.edited) return undefined;
    this.#store.set({ edited: new Map(this.#store.state.edited).set(callIndex, decision.args) });
    return { args: decision.args };
  }
}

/** Tells the model that the user has stopped an answer: otherwise it would answer that question together with the next. */
function withStopNote(message: AgentMessage): AgentMessage {
  if (message.role !== "assistant" || message.stopReason !== "aborted") return message;
  return { ...message, content: [...message.content, { type: "text", text: "[The user stopped this answer.]" }] };
}
