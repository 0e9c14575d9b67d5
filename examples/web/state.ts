/** Everything the page shows, in one place: the view of the conversation, and what only this page knows. */
import { type AgentEvent, initialView, type QueueChange, reduceEvents, type ThinkingEvent, type ViewState } from "turnloop";
import { reduceTimeline, type Timeline } from "./timeline.js";

export type PageEvent = AgentEvent | { type: "thinking"; event: ThinkingEvent } | ({ type: "queue_change" } & QueueChange);

export type ApprovalDecision = { allow: true; args: Record<string, unknown>; edited: boolean } | { allow: false; reason: string };

/** A call that waits for the user. */
export interface Approval {
  /** Where it stands in the view's `toolCalls`. */
  callIndex: number;
  label: string;
  args: Record<string, unknown>;
  decide(decision: ApprovalDecision): void;
}

export interface PageState {
  view: ViewState;
  timeline?: Timeline;
  running: boolean;
  model: { id: string; place: string };
  approval?: Approval;
  /** What the user made of the arguments of a call, by its place in the view's `toolCalls`. */
  edited: ReadonlyMap<number, Record<string, unknown>>;
  /** What the page itself has to say: about the wait that is on, or about a run that could not begin. */
  notice?: string;
}

/** Holds the state and tells when it has changed. */
export class Store {
  readonly #onChange: () => void;
  #state: PageState;

  constructor(model: PageState["model"], onChange: () => void) {
    this.#state = { view: initialView(), running: false, model, edited: new Map() };
    this.#onChange = onChange;
  }

  get state(): PageState {
    return this.#state;
  }

  set(change: Partial<PageState>): void {
    this.#state = { ...this.#state, ...change };
    this.#onChange();
  }

  hear(event: PageEvent): void {
    const at = Date.now();
    const { view, timeline } = this.#state;
    if (event.type === "thinking" && event.event.state === "complete") this.set({ notice: undefined });
    this.set({ view: reduceEvents(view, event, at), timeline: reduceTimeline(timeline, event, at, view.toolCalls.length) });
  }
}
