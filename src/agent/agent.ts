import type { AgentLoopConfig, NextTurn } from "../config.js";
import { describe, misuse, TurnLoopError } from "../errors.js";
import type { AgentEvent, AgentEventSink, PendingToolCall } from "../events.js";
import { ignoringFailure, isThenable } from "../loop/abort.js";
import { CHANGED_STATE } from "../loop/between-turns.js";
import { assertPrompts, takeIn } from "../loop/incoming.js";
import { resumeAgentLoop, runAgentLoop, runAgentLoopContinue } from "../loop/loop.js";
import { isSignal, readClock } from "../loop/run.js";
import { copyMessage, copyPlain } from "../loop/snapshot.js";
import type { ToolCallDecision } from "../loop/tool-batch.js";
import { type AgentMessage, type AssistantMessage, type ImageContent, sumUsage, type UserMessage, userMessage } from "../messages.js";
import type { Model } from "../stream.js";
import type { ThinkingOptions } from "../thinking/thinking-card.js";
import { ToolRegistry } from "../tool.js";
import { dropFailedTail, pendingCalls } from "../transcript.js";
import { ActiveRun, type EndEvent, type Subscriber } from "./active-run.js";
import { GuardedEmitter, type Heard } from "./guarded-emitter.js";
import { hooksOf, withQueued } from "./host-hooks.js";
import { MessageQueue } from "./queue.js";
import type { AgentOptions, AgentRunResult, RunError } from "./types.js";
import { withThinking } from "./with-thinking.js";

/** @inline */
type Prompt = string | AgentMessage | readonly AgentMessage[];

/**
 * Holds the state of a conversation and runs the loop on it (SPEC 8).
 *
 * `prompt`, `continue` and `retry` resolve, also for failures and aborts, after all listeners have handled `agent_end`; they
 * reject only for misuse, with a TurnLoopError and nothing changed. State is up to date before a listener hears of an event.
 *
 * @example
 * const agent = new Agent({ model, streamFn, tools: [readFile], systemPrompt: "Be brief." });
 * agent.on("message_update", ({ message }) => show(message));
 * const { messages, outcome, usage } = await agent.prompt("What does a.txt say?");
 */
export class Agent<M extends Model = Model> extends GuardedEmitter {
  /** Changes of these three during a run count from its next turn on. */
  systemPrompt: string;
  model: M;
  /** Whether and how the wait for the model is shown; a change counts from the next run on (SPEC 9.2). */
  thinking: boolean | ThinkingOptions | undefined;
  readonly tools: ToolRegistry;
  /** Messages for the running run, taken after each turn; before a run, for its first request. */
  readonly steeringQueue: MessageQueue;
  /** Messages for when the run would end. */
  readonly followUpQueue: MessageQueue;

  readonly #options: AgentOptions<M>;
  #subscribers: readonly Subscriber[] = [];
  #messages: AgentMessage[];
  #messagesView: readonly AgentMessage[] | undefined;
  #streamingMessage: AssistantMessage | undefined;
  readonly #pendingToolCalls = new Set<string>();
  #lastError: RunError | undefined;
  /** As the last run ended with them. */
  #suspended: PendingToolCall[] = [];
  #run: ActiveRun | undefined;

  constructor(options: AgentOptions<M>) {
    super((error, event) => this.#report(error, event));
    this.#options = options;
    this.thinking = options.thinking;
    this.systemPrompt = options.systemPrompt ?? "";
    this.model = options.model;
    this.tools = new ToolRegistry(options.tools);
    this.#messages = [...(options.messages ?? [])];
    const onChange = (): void =>
      void this.emit("queue_change", { steering: this.steeringQueue.peek(), followUp: this.followUpQueue.peek() });
    this.steeringQueue = new MessageQueue(options.steeringMode, onChange);
    this.followUpQueue = new MessageQueue(options.followUpMode, onChange);
  }

  /** The transcript: a frozen copy, the same one until a message is added. */
  get messages(): readonly AgentMessage[] {
    this.#messagesView ??= Object.freeze(this.#messages.slice());
    return this.#messagesView;
  }

  get isRunning(): boolean {
    return this.#run !== undefined;
  }

  /** The answer that is streaming, as far as it has come. */
  get streamingMessage(): AssistantMessage | undefined {
    return this.#streamingMessage;
  }

  /** The ids of the calls that have started and not ended: in a run, also those that it resumes. */
  get pendingToolCalls(): ReadonlySet<string> {
    return this.#pendingToolCalls;
  }

  /** The calls that wait for a decision, as copies. After a reload `args` are those the model sent, and there is no reason (SPEC 15.4). */
  get pendingApprovals(): PendingToolCall[] {
    if (this.#run && !this.#run.end) return [];
    const calls = pendingCalls(this.#messages)?.calls ?? [];
    return calls.map((call) => {
      const asked = this.#suspended.find(({ toolCall }) => toolCall.id === call.id);
      return { ...asked, toolCall: copyPlain(call), args: copyPlain(asked ? asked.args : call.arguments) };
    });
  }

  /** Why the last run failed or was aborted; undefined after one that did not, and while one is on. */
  get lastError(): RunError | undefined {
    return this.#lastError;
  }

  /**
   * Runs a prompt to its end. Rejects with `busy` while running (use `steer` or `followUp`), with `no_prompts` for an empty
   * prompt. `signal` aborts this run, as `abort()` does.
   */
  async prompt(prompt: Prompt, options?: { images?: ImageContent[]; signal?: AbortSignal }): Promise<AgentRunResult> {
    this.#assertIdle("prompt");
    const prompts = this.#toPrompts(prompt, options?.images ?? []);
    assertPrompts(prompts);
    takeIn(prompts);
    return this.#start(prompts, this.#messages, options?.signal);
  }

  /**
   * Runs on from the transcript. After an assistant message it delivers queued steering, else a follow-up; without any it
   * rejects with `cannot_continue_from_assistant`; with `calls_pending` while calls wait for `resume`.
   */
  async continue(options?: { signal?: AbortSignal }): Promise<AgentRunResult> {
    this.#assertIdle("continue");
    return this.#continueFrom(this.#messages, options?.signal);
  }

  /** Drops the failed or aborted answers at the end and runs on from there. After a whole answer it is as `continue`. */
  async retry(options?: { signal?: AbortSignal }): Promise<AgentRunResult> {
    this.#assertIdle("retry");
    return this.#continueFrom(dropFailedTail(this.#messages), options?.signal);
  }

  /**
   * Goes on with the calls of `pendingApprovals`, one decision for each; rejects as `resumeAgentLoop` does (SPEC 15.3). A
   * `prompt` instead abandons them.
   */
  async resume(decisions: ToolCallDecision[], options?: { signal?: AbortSignal }): Promise<AgentRunResult> {
    this.#assertIdle("resume");
    return this.#start([], this.#messages, options?.signal, { resumed: { decisions } });
  }

  /** Queues a message for the next request of the running run. Throws `no_prompts` for an empty one. */
  steer(message: string | AgentMessage): void {
    this.steeringQueue.push(this.#toMessage(message));
  }

  /** Queues a message for when the run would end. Throws `no_prompts` for an empty one. */
  followUp(message: string | AgentMessage): void {
    this.followUpQueue.push(this.#toMessage(message));
  }

  /** Aborts the running run; does nothing when idle. Queued messages stay. */
  abort(reason?: unknown): void {
    this.#run?.abort(reason);
  }

  /** Resolves when no run is on and every listener is done. Do not await it inside an awaited listener: it would wait for itself. */
  async waitForIdle(): Promise<void> {
    while (this.#run) await this.#run.idle();
  }

  /** Replaces the transcript; during a run from its next turn on. */
  replaceMessages(messages: readonly AgentMessage[]): void {
    this.#setMessages([...messages]);
    this.#suspended = [];
    if (this.#run) this.#run.messagesReplaced = true;
  }

  /** Empties transcript and queues. Throws `busy` while running. */
  reset(): void {
    this.#assertIdle("reset");
    this.#setMessages([]);
    this.#suspended = [];
    this.#lastError = undefined;
    this.steeringQueue.clear();
    this.followUpQueue.clear();
  }

  /**
   * Hears every event of every run. A returned promise is awaited, listeners in order, before the run goes on (SPEC 8.4).
   * Returns what ends the subscription.
   */
  subscribe(listener: AgentEventSink): () => void {
    const subscriber: Subscriber = { listen: listener };
    this.#subscribers = [...this.#subscribers, subscriber];
    return () => {
      this.#subscribers = this.#subscribers.filter((other) => other !== subscriber);
    };
  }

  async #continueFrom(base: AgentMessage[], signal: AbortSignal | undefined): Promise<AgentRunResult> {
    const waiting = pendingCalls(this.#messages)?.calls ?? [];
    if (waiting.length > 0) {
      const names = waiting.map(({ name, id }) => `${name} (${id})`).join(", ");
      throw new TurnLoopError("calls_pending", `Tool calls wait for a decision: ${names}. Use resume, or prompt to abandon them.`);
    }
    const queued = this.steeringQueue.size > 0 ? this.steeringQueue : this.followUpQueue;
    if (base[base.length - 1]?.role !== "assistant") return this.#start([], base, signal);
    if (queued.size === 0) {
      throw new TurnLoopError(
        "cannot_continue_from_assistant",
        "The transcript ends in an assistant message and no message is queued. Use prompt, or queue one with steer or followUp.",
      );
    }
    return this.#start([], base, signal, { queue: queued });
  }

  /** Starts a run on `base`. What it takes from `queue` for its first request goes back if the run is refused. */
  async #start(
    prompts: AgentMessage[],
    base: AgentMessage[],
    signal?: AbortSignal,
    { queue = this.steeringQueue, resumed }: { queue?: MessageQueue; resumed?: { decisions: ToolCallDecision[] } } = {},
  ): Promise<AgentRunResult> {
    if (!isSignal(signal)) throw misuse("signal", "an AbortSignal", signal);
    const run: ActiveRun = new ActiveRun((event) => this.#dispatch(event, run), this.#options.abortGraceMs);
    const before = this.#messages;
    this.#run = run;
    this.#setMessages(base.slice());
    // a run that is aborted before it begins has no first request to take steering
    const taken = resumed || (signal?.aborted && prompts.length > 0) ? [] : queue.take();
    const stopFollowing = run.follow(signal);
    try {
      const context = { systemPrompt: this.systemPrompt, messages: this.#messages, tools: this.tools };
      const config = this.#config(run);
      const first = [...prompts, ...taken];
      const streamFn = withThinking(this.#options.streamFn, this.thinking, (event) => void this.emit("thinking", event));
      const emit = (event: AgentEvent): void | Promise<void> => run.deliver(event);
      const rest = [context, config, emit, run.signal, streamFn] as const;
      const messages = await (resumed
        ? resumeAgentLoop(resumed.decisions, ...rest)
        : first.length > 0
          ? runAgentLoop(first, ...rest)
          : runAgentLoopContinue(...rest));
      await run.drained();
      const { outcome, error, pending } = run.end as EndEvent;
      return { messages, outcome, ...(error && { error }), ...(pending && { pending }), usage: sumUsage(messages) };
    } catch (error) {
      // refused before any event: nothing has changed
      if (!run.messagesReplaced) this.#setMessages(before);
      queue.putBack(taken);
      throw error;
    } finally {
      stopFollowing();
      this.#run = undefined;
      run.finish();
    }
  }

  /** The options as the loop takes them, with the queues behind the host's own polls and the state behind its hooks. */
  #config(run: ActiveRun): AgentLoopConfig {
    const options = this.#options;
    const current = { systemPrompt: this.systemPrompt, model: this.model };
    // no spread: V8 gives each object that gets a new property after one a hidden class of its own
    return Object.assign({}, options as unknown as AgentLoopConfig, hooksOf(options), {
      model: this.model,
      getSteeringMessages: () => withQueued(options.getSteeringMessages?.(), this.steeringQueue),
      getFollowUpMessages: () => withQueued(options.getFollowUpMessages?.(), this.followUpQueue),
      [CHANGED_STATE]: (): NextTurn => {
        const { systemPrompt, model } = this;
        const next: NextTurn = { context: {} };
        if (systemPrompt !== current.systemPrompt) next.context = { systemPrompt };
        if (model !== current.model) next.model = model;
        if (run.messagesReplaced) next.context = { ...next.context, messages: this.#messages };
        run.messagesReplaced = false;
        current.systemPrompt = systemPrompt;
        current.model = model;
        return next;
      },
    });
  }

  /** Updates the state, then tells the listeners: `on` at once, `subscribe` one after the other. */
  #dispatch(event: AgentEvent, run: ActiveRun): void | Promise<void> {
    this.#update(event, run);
    this.emit(event.type, event as never);
    return this.#tell(this.#subscribers, 0, event, run);
  }

  /** Without a promise of a listener it costs none. */
  #tell(subscribers: readonly Subscriber[], from: number, event: AgentEvent, run: ActiveRun): void | Promise<void> {
    for (let i = from; i < subscribers.length; i++) {
      const hearing = this.#hear(subscribers[i] as Subscriber, event, run);
      if (hearing) return this.#tellAfter(hearing, subscribers, i + 1, event, run);
    }
  }

  #tellAfter(before: Promise<void>, subscribers: readonly Subscriber[], from: number, event: AgentEvent, run: ActiveRun): Promise<void> {
    return before.then(() => this.#tell(subscribers, from, event, run));
  }

  #hear(subscriber: Subscriber, event: AgentEvent, run: ActiveRun): void | Promise<void> {
    if (run.givenUp.includes(subscriber) || !this.#subscribers.includes(subscriber)) return;
    try {
      const returned: unknown = subscriber.listen(event);
      if (isThenable(returned)) return this.#hearOut(returned, subscriber, event, run);
    } catch (error) {
      this.#report(error, event);
    }
  }

  #hearOut(listening: PromiseLike<unknown>, subscriber: Subscriber, event: AgentEvent, run: ActiveRun): Promise<void> {
    const fail = (error: unknown): void => this.#report(error, event);
    return run.withinGrace(
      Promise.resolve(listening).then(() => {}, fail),
      () => {
        run.givenUp.push(subscriber);
        fail(new Error(`A listener of "${event.type}" did not settle in time after the abort; it hears nothing more of this run.`));
      },
    );
  }

  #update(event: AgentEvent, run: ActiveRun): void {
    switch (event.type) {
      case "agent_start":
        this.#lastError = undefined;
        break;
      case "turn_start":
        // only a run's first turn can find calls without a result
        if (!run.begun) for (const { id } of pendingCalls(this.#messages)?.calls ?? []) this.#pendingToolCalls.add(id);
        run.begun = true;
        break;
      case "message_start":
      case "message_update":
        // what still waited is abandoned by any message but a result (SPEC 15.3)
        if (this.#pendingToolCalls.size > 0 && event.message.role !== "toolResult") this.#pendingToolCalls.clear();
        if (event.message.role === "assistant") this.#streamingMessage = event.message as AssistantMessage;
        else run.incoming = copyMessage(event.message); // before a listener can write to it
        break;
      case "message_end":
        this.#streamingMessage = undefined;
        this.#messages.push(event.message.role === "assistant" ? copyMessage(event.message) : (run.incoming as AgentMessage));
        this.#messagesView = undefined;
        break;
      case "tool_execution_start":
        this.#pendingToolCalls.add(event.toolCallId);
        break;
      case "tool_execution_end":
        this.#pendingToolCalls.delete(event.toolCallId);
        break;
      case "agent_end":
        this.#lastError = event.error;
        this.#suspended = copyPlain(event.pending ?? []);
        this.#pendingToolCalls.clear();
        run.end = event;
    }
  }

  #setMessages(messages: AgentMessage[]): void {
    this.#messages = messages;
    this.#messagesView = undefined;
  }

  #toMessage(message: string | AgentMessage): AgentMessage {
    const made = typeof message === "string" ? userMessage(message, { timestamp: readClock(this.#options) }) : message;
    assertPrompts([made]);
    takeIn([made]);
    return made;
  }

  #toPrompts(prompt: Prompt, images: ImageContent[]): AgentMessage[] {
    if (typeof prompt === "string") return [userMessage(prompt, { images, timestamp: readClock(this.#options) })];
    const prompts = [prompt].flat() as AgentMessage[];
    if (images.length === 0) return prompts;
    const [only] = prompts;
    if (prompts.length !== 1 || only?.role !== "user") {
      throw new TurnLoopError("invalid_argument", `images go with a text or with one user message; got ${describe(prompt)}.`);
    }
    return [{ ...only, content: userMessage((only as UserMessage).content, { images }).content } as UserMessage];
  }

  #assertIdle(method: string): void {
    if (!this.#run) return;
    throw new TurnLoopError(
      "busy",
      `${method} cannot be called while a run is on. Use steer or followUp to add a message, or abort and waitForIdle first.`,
    );
  }

  #report(error: unknown, event: Heard): void {
    ignoringFailure(() => {
      const { onListenerError } = this.#options;
      return onListenerError ? onListenerError.call(this.#options, error, event) : console.error(error);
    });
  }
}
