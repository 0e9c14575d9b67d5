/** One conversation: an agent, what it looks like by now, the events that led there, and the clients that watch. */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  type Agent,
  type AgentEvent,
  type AgentRunResult,
  initialView,
  reduceEvents,
  type ToolCallDecision,
  toWireEvent,
  type ViewState,
} from "turnloop";
import { EventLog, toFrame } from "./event-log.js";
import { HttpError } from "./http.js";
import { SseClient, type SseTimes } from "./sse.js";

export interface ConversationLimits extends SseTimes {
  /** How much of the past is kept for clients that come back, in bytes. */
  logBytes: number;
  /** How much the messages may come to before no more are taken, in bytes. What a run adds that has begun is kept. */
  transcriptBytes: number;
  /** How many messages may wait for a run at once. */
  maxWaiting: number;
  /** How many may watch at once. */
  maxClients: number;
}

export class Conversation {
  /** Whoever knows it may take part: it cannot be guessed. */
  readonly id = randomUUID();
  readonly #agent: Agent;
  readonly #limits: ConversationLimits;
  readonly #log: EventLog;
  readonly #clients = new Set<SseClient>();
  #view: ViewState;
  #transcriptBytes = 0;
  #isClosed = false;

  constructor(agent: Agent, limits: ConversationLimits) {
    this.#agent = agent;
    this.#limits = limits;
    this.#log = new EventLog(limits.logBytes);
    this.#view = initialView(agent.messages);
    // none of these returns a promise: the run waits for nobody
    agent.subscribe((event) => this.#hear(event));
    agent.on("thinking", (event) => this.#publish({ type: "thinking", event }));
    agent.on("queue_change", (queues) => this.#publish({ type: "queue_change", ...queues }));
  }

  get isActive(): boolean {
    return this.#agent.isRunning || this.#clients.size > 0;
  }

  /** Who watches, and what is held in memory for them. */
  get load(): { clients: number; bufferedBytes: number; logBytes: number } {
    const buffered = [...this.#clients].map(({ bufferedBytes }) => bufferedBytes);
    return { clients: buffered.length, bufferedBytes: buffered.reduce((sum, bytes) => sum + bytes, 0), logBytes: this.#log.bytes };
  }

  /** Streams the events after `lastEventId`. When they are not all there, or none is named, the view as it is comes first. */
  attach(response: ServerResponse, lastEventId: string | undefined): void {
    if (this.#clients.size >= this.#limits.maxClients) {
      throw new HttpError(503, "too_many_clients", "Too many watch this conversation; try again later.");
    }
    const after = /^\d+$/.test(lastEventId ?? "") ? Number(lastEventId) : -1;
    const { last } = this.#log;
    const from = this.#log.canFollow(after) ? { after } : { after: last, snapshot: toFrame(last, this.#view, "snapshot") };
    const client = new SseClient(response, this.#log, { ...this.#limits, ...from });
    this.#clients.add(client);
    response.on("close", () => this.#clients.delete(client));
  }

  async prompt(text: string): Promise<void> {
    this.#refuseWhenFull();
    return this.#run(() => this.#agent.prompt(text));
  }

  retry(): Promise<void> {
    return this.#run(() => this.#agent.retry());
  }

  decide(decisions: ToolCallDecision[]): Promise<void> {
    return this.#run(() => this.#agent.resume(decisions));
  }

  /** Queues a message for the run that is on: for its next turn, or for its end. */
  add(how: "steer" | "followUp", text: string): void {
    if (!this.#agent.isRunning) throw new HttpError(409, "not_running", "Nothing is running; send the text as a prompt.");
    this.#refuseWhenFull();
    const { maxWaiting } = this.#limits;
    if (this.#waiting >= maxWaiting) throw new HttpError(429, "too_many_waiting", `No more than ${maxWaiting} messages may wait.`);
    this.#agent[how](text);
  }

  abort(reason: string): void {
    this.#agent.abort(new Error(reason));
  }

  /** Stops the run, lets its end reach the clients, and lets them go. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.abort("the server is shutting down");
    await this.#agent.waitForIdle();
    for (const client of this.#clients) client.end();
  }

  get #waiting(): number {
    return this.#agent.steeringQueue.size + this.#agent.followUpQueue.size;
  }

  #refuseWhenFull(): void {
    if (this.#transcriptBytes < this.#limits.transcriptBytes) return;
    throw new HttpError(409, "conversation_full", "This conversation has become too long; begin a new one.");
  }

  /** Resolves once the run has begun; rejects with what the agent has against it. */
  #run(start: () => Promise<AgentRunResult>): Promise<void> {
    // the agent says why not
    if (this.#agent.isRunning) return start().then(() => {});
    return new Promise((resolve, reject) => {
      const onStart = (): void => resolve();
      this.#agent.once("agent_start", onStart);
      const refuse = (error: unknown): void => {
        this.#agent.off("agent_start", onStart);
        reject(error);
      };
      start().then(({ outcome }) => this.#deliverRest(outcome), refuse);
    });
  }

  /** What was queued too late for the run gets one of its own; after a stop or a failure it waits for the user. */
  #deliverRest(outcome: AgentRunResult["outcome"]): void {
    if (outcome !== "completed" || this.#waiting === 0 || this.#isClosed) return;
    // refused only when another run has just begun, which takes the messages along
    this.#run(() => this.#agent.continue()).catch(() => {});
  }

  #hear(event: AgentEvent): void {
    // a retry has dropped the failed answer, and no event says so
    if (event.type === "agent_start" && this.#agent.messages.length !== this.#view.messages.length) {
      this.#view = { ...this.#view, messages: this.#agent.messages };
      this.#transcriptBytes = this.#send(this.#view, "snapshot");
    }
    this.#publish(event);
  }

  #publish(event: Parameters<typeof toWireEvent>[0]): void {
    const wireEvent = toWireEvent(event);
    this.#view = reduceEvents(this.#view, wireEvent);
    const bytes = this.#send(wireEvent);
    if (wireEvent.type === "message_end") this.#transcriptBytes += bytes;
  }

  /** Returns how many bytes it comes to. */
  #send(data: unknown, event?: "snapshot"): number {
    const bytes = this.#log.append(data, event);
    for (const client of this.#clients) client.pump();
    return bytes;
  }
}
