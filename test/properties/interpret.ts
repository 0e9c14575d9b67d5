/** Plays a scenario on the fake clock and gives what came of it. */
import { getEventListeners } from "node:events";
import {
  type AgentContext,
  type AgentEvent,
  type AgentEventSink,
  type AgentMessage,
  agentLoop,
  agentLoopContinue,
  runAgentLoop,
  runAgentLoopContinue,
  type StreamFn,
} from "turnloop";
import { vi } from "vitest";
import { historyOf, incoming, interpretedConfig, interpretedTools } from "./host.js";
import { interpretedModel } from "./model.js";
import { deepFreeze, THROWN, writeOver } from "./odd-values.js";
import type { Scenario } from "./scenario.js";
import { type SinkCall, World } from "./world.js";

export interface Played {
  world: World;
  prompts: AgentMessage[];
  /** The transcript it started from. */
  history: AgentMessage[];
  /** What the promise gave, and when. */
  settled: { messages: AgentMessage[] } | { error: unknown };
  settledAt: number;
}

/** Macrotasks of the real clock, so that microtasks run out as they do between two timers. */
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const MAX_STEPS = 3000;

/** Needs fake timers without setImmediate. Everything that is wrong is in `world.violations` or found by the checks. */
export async function play(scenario: Scenario, decorate?: (streamFn: StreamFn) => StreamFn): Promise<Played> {
  const world = new World(scenario, decorate);
  const { controller } = world;
  const rejections: unknown[] = [];
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => rejections.push(reason));
  try {
    if (scenario.abort.at === "before") world.abort();
    if (scenario.abort.at === "time") world.later(scenario.abort.n * 3, () => world.abort());
    const listeners = getEventListeners(controller.signal, "abort").length;
    const played: Played = { world, prompts: [], history: [], settled: { error: undefined }, settledAt: -1 };
    let timers = 0;
    const settle = (settled: Played["settled"]): void => {
      Object.assign(played, { settled, settledAt: Date.now() });
      world.over = true;
      timers = world.foreignTimers();
    };
    start(world, played).then(
      (messages) => settle({ messages }),
      (error) => settle({ error }),
    );
    await drive(world);
    if (!world.over) world.fail(`7.2: the run does not settle${world.stopped ? " after an abort" : " though nothing of the host's hangs"}`);
    if (timers !== 0) world.fail(`14.3: ${timers} timers left when the run has settled`);
    const left = getEventListeners(controller.signal, "abort").length - listeners;
    if (left !== 0) world.fail(`7.1: ${left} listeners left on the caller's signal`);
    await settleLeftovers(world);
    if (rejections.length > 0)
      world.fail(`14.3: unhandled rejection: ${rejections.map((reason) => (reason as Error)?.stack ?? typeof reason)}`);
    return played;
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of others) process.on("unhandledRejection", listener);
    vi.clearAllTimers();
  }
}

/** Lets the run go on until it settles. When only hanging things are left, aborts it, as a host would. */
async function drive(world: World): Promise<void> {
  for (let step = 0; step < MAX_STEPS; step++) {
    await breathe();
    if (world.over) return;
    if (vi.getTimerCount() > 0) vi.advanceTimersToNextTimer();
    else if (world.forced || world.hangs === 0) return;
    else {
      world.forced = true;
      world.abort(new Error("the test has waited long enough"));
    }
  }
}

/** What still comes of the host's own timers reaches nobody. */
async function settleLeftovers(world: World): Promise<void> {
  const events = world.sinkCalls.length;
  for (let step = 0; step < MAX_STEPS && vi.getTimerCount() > 0; step++) {
    vi.advanceTimersToNextTimer();
    await breathe();
  }
  await breathe();
  if (world.sinkCalls.length !== events) world.fail("4.5: an event comes after the run has settled");
  if (vi.getTimerCount() > 0) world.fail("14.3: a timer is left for ever");
}

function start(world: World, played: Played): Promise<AgentMessage[]> {
  const { scenario } = world;
  const continuing = scenario.entry === "continue" || scenario.entry === "streamContinue";
  const messages = historyOf(scenario.history);
  const tail = messages[messages.length - 1];
  if (continuing && tail?.role !== "user" && tail?.role !== "toolResult") messages.push(incoming("user", "go on"));
  if (!continuing) played.prompts = scenario.prompts.map((role, i) => incoming(role, `prompt ${i}`));
  played.history = messages;
  const context: AgentContext = { systemPrompt: "You are \ud83d tested", messages, tools: interpretedTools(world) };
  const config = interpretedConfig(world, { id: "first-model", provider: "first-provider" });
  for (const input of [context, config, played.prompts]) deepFreeze(input);
  const streamFn = world.decorate?.(interpretedModel(world)) ?? interpretedModel(world);
  const { signal } = world.controller;
  switch (scenario.entry) {
    case "run":
      return runAgentLoop(played.prompts, context, config, interpretedSink(world), signal, streamFn);
    case "continue":
      return runAgentLoopContinue(context, config, interpretedSink(world), signal, streamFn);
    case "stream":
      return consume(world, agentLoop(played.prompts, context, config, signal, streamFn));
    default:
      return consume(world, agentLoopContinue(context, config, signal, streamFn));
  }
}

function interpretedSink(world: World): AgentEventSink {
  const { sink } = world.scenario;
  return (event) => {
    if (world.sinkBusy) world.fail("4.7: the sink is entered again before it has settled");
    if (world.over) world.fail("4.5: the sink is called after the run has settled");
    world.sinkBusy = true;
    const call = world.record(event);
    const index = world.sinkCalls.length - 1;
    const failing = sink.failAt !== undefined && (index === sink.failAt || (sink.failsOn && index > sink.failAt));
    world.point();
    if (sink.writes) writeOver(event);
    if (failing) return fail(world, call);
    if (sink.wait === "sync") return leave(world, call);
    return world.answer(sink.wait, () => leave(world, call)) as Promise<void>;
  };
}

function leave(world: World, call: SinkCall): void {
  world.sinkBusy = false;
  call.to = Date.now();
}

function fail(world: World, call: SinkCall): Promise<void> | never {
  const { fail: how, wait } = world.scenario.sink;
  const failure = new Error(`the sink fails at event ${world.sinkCalls.length - 1}`);
  if (how === "hang") return world.hang();
  const failed = (): never => {
    leave(world, call);
    world.sinkFailed(failure);
    throw failure;
  };
  if (how === "throw") return failed();
  // the run hears of a rejection a few microtasks later: what starts in between is not held against it
  const rejected = (): never => {
    leave(world, call);
    afterMicrotasks(5, () => world.sinkFailed(failure));
    throw failure;
  };
  const later = how === "late" ? 30 : wait === "sync" ? "micro" : wait;
  return world.answer(later, rejected) as Promise<never>;
}

function afterMicrotasks(left: number, then: () => void): void {
  if (left === 0) then();
  else queueMicrotask(() => afterMicrotasks(left - 1, then));
}

interface EventStream extends AsyncIterable<AgentEvent> {
  result(): Promise<AgentMessage[]>;
}

/** The iterable form: takes events at its own pace, may leave early, gives result() in the end. */
async function consume(world: World, stream: EventStream): Promise<AgentMessage[]> {
  const { wait, takes = Infinity, leave: how, result } = world.scenario.consumer;
  if (result === "only") return stream.result();
  const early = result === "first" ? stream.result() : undefined;
  const iterator = stream[Symbol.asyncIterator]();
  for (let taken = 0; ; taken++) {
    if (taken === takes) {
      world.stoppedAt ??= Date.now();
      world.left = true;
      if (how === "return") await iterator.return?.();
      else await iterator.throw?.(THROWN[0]?.()).catch(() => {});
      if (!(await iterator.next()).done) world.fail("4.9: an iteration that was left gives another event");
      break;
    }
    const next = await iterator.next();
    if (next.done) break;
    leave(world, world.record(next.value));
    world.point();
    if (world.scenario.sink.writes) writeOver(next.value);
    await world.answer(wait, () => {});
  }
  const messages = await stream.result();
  if (early && (await early) !== messages) world.fail("4.9: two calls of result() give different things");
  return messages;
}
