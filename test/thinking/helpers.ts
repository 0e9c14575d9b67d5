import { type AgentEvent, type StreamFn, ThinkingCard, type ThinkingEvent, type ThinkingOptions, withThinkingCard } from "turnloop";

import { afterEach, beforeEach, expect, vi } from "vitest";
import { outline, type RunOptions, run } from "../helpers.js";

const DISABLING = ["LLM_HEARTBEAT_DISABLED", "DREW_LLM_HEARTBEAT_DISABLED"];

/** Call once at the top of a file: a fake clock, an environment that disables nothing, and no timer or rejection left behind. */
export function watchTimers(): void {
  const troubles: unknown[] = [];
  const onTrouble = (trouble: unknown): void => void troubles.push(trouble);
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
    for (const name of DISABLING) vi.stubEnv(name, undefined);
    process.on("unhandledRejection", onTrouble);
  });
  afterEach(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", onTrouble);
    const timers = vi.getTimerCount();
    // what stands in for the fake clock's timers goes first: it would bring them back
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
    vi.useRealTimers();
    expect([timers, troubles.splice(0)], "timers and unhandled rejections left").toEqual([0, []]);
  });
}

/** What a sink heard, and options that make it hear. */
export function sinkOf(extra: ThinkingOptions = {}) {
  const events: ThinkingEvent[] = [];
  const ids = new Map<string, number>();
  const options: ThinkingOptions = {
    ...extra,
    onProgress: (event) => {
      events.push(event);
      if (!ids.has(event.cardId)) ids.set(event.cardId, ids.size + 1);
      return extra.onProgress?.(event);
    },
  };
  /** One line for each event: the number of its card, the time by the sink's own clock, how it ended. */
  const lines = (): string[] =>
    events.map(({ state, cardId, elapsedMs, outcome, title }) =>
      [ids.get(cardId), state, elapsedMs, ...(state === "heartbeat" ? [title] : []), ...(outcome === undefined ? [] : [outcome])].join(" "),
    );
  return { events, options, lines };
}

export function cardOf(extra?: ThinkingOptions) {
  const sink = sinkOf(extra);
  return { card: new ThinkingCard(sink.options), ...sink };
}

/** A run on a decorated StreamFn, with what the sink and the host heard in one list. */
export function watchedRun(streamFn: StreamFn, options: RunOptions = {}, thinking: ThinkingOptions = {}) {
  const heard: string[] = [];
  const sink = sinkOf({
    ...thinking,
    onProgress: (event) => {
      heard.push(sink.lines().at(-1) as string);
      return thinking.onProgress?.(event);
    },
  });
  const onEvent = (event: AgentEvent): void | Promise<void> => {
    heard.push(...outline([event]));
    return options.onEvent?.(event);
  };
  const called: StreamFn = (...call) => {
    heard.push("model call");
    return streamFn(...call);
  };
  const decorated = withThinkingCard(called, sink.options);
  return { heard, sink, running: run(decorated, { ...options, onEvent }) };
}

export const advance = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));

/** One event of the card "1". */
export const event = (state: ThinkingEvent["state"], title = "Thinking..."): ThinkingEvent => ({
  state,
  cardId: "1",
  name: "n",
  title,
  elapsedMs: 0,
});
/** What a card tells in a wait of a minute and more. */
export const wait = [event("start"), event("heartbeat", "Thinking... (30s)"), event("heartbeat", "Thinking... (60s)"), event("complete")];
