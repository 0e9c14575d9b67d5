/** Plays a scenario on the fake clock and gives what came of it. */
import { getEventListeners } from "node:events";
import {
  Agent,
  type AgentContext,
  type AgentEvent,
  type AgentEventSink,
  type AgentLoopConfig,
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
import { deepFreeze, show, THROWN, writeOver } from "./odd-values.js";
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
/** A card's beats go on for ever beside something that hangs, if nobody takes them. */
const PATIENCE = 1500;

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
    const isStuck = step === PATIENCE && world.hangs > 0;
    if (vi.getTimerCount() > 0 && !isStuck) vi.advanceTimersToNextTimer();
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
    case "agent":
      return promptAgent(world, played, context, config, streamFn);
    case "stream":
      return consume(world, agentLoop(played.prompts, context, config, signal, streamFn));
    default:
      return consume(world, agentLoopContinue(context, config, signal, streamFn));
  }
}

/** The listener is the sink; that it fails is nothing to the run, and told once (SPEC 7.2, 8.4). */
async function promptAgent(
  world: World,
  { prompts, history }: Played,
  context: AgentContext,
  config: AgentLoopConfig,
  streamFn: StreamFn,
): Promise<AgentMessage[]> {
  const onListenerError = (): void => void world.reported++;
  const agent = new Agent({ ...config, ...context, streamFn, onListenerError });
  agent.subscribe(interpretedSink(world));
  const { messages } = await agent.prompt(prompts, { signal: world.controller.signal });
  if (agent.isRunning || agent.pendingToolCalls.size > 0 || agent.streamingMessage) world.fail("8.2: the Agent is not idle after its run");
  if (!world.scenario.hooks.prepareNextTurn && show(agent.messages) !== show([...history, ...messages]))
    world.fail(`8.2: the Agent holds ${show(agent.messages)}, the run gave ${show(messages)}`);
  return messages;
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
  world.sinkFailures++;
  if (how === "hang") return world.hang();
  const failed = (): never => {
    leave(world, call);
    if (!world.isAgent) world.sinkFailed(failure);
    throw failure;
  };
  if (how === "throw") return failed();
  // the run hears of a rejection a few microtasks later: what starts in between is not held against it
  const rejected = (): never => {
    leave(world, call);
    if (!world.isAgent) afterMicrotasks(5, () => world.sinkFailed(failure));
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
  const { begins, result } = world.scenario.consumer;
  const asked = result === "first" ? [stream.result()] : [];
  // the run goes on for who asked for its result, and what has happened by now is told to nobody
  world.late = asked.length > 0 && begins !== "sync";
  if (begins !== "sync") await world.answer(begins, () => {});
  if (result === "only") return stream.result();
  if (world.scenario.consumer.leave === "loop") await loop(world, stream, asked);
  else await iterate(world, stream, asked);
  const messages = await stream.result();
  for (const earlier of asked) if ((await earlier) !== messages) world.fail("4.9: two calls of result() give different things");
  return messages;
}

/** A consumer's work on an event. Says whether it leaves now. */
async function work(world: World, stream: EventStream, asked: Promise<AgentMessage[]>[], event: AgentEvent): Promise<boolean> {
  const { wait, takes = Infinity, result } = world.scenario.consumer;
  leave(world, world.record(event));
  world.point();
  if (world.scenario.sink.writes) writeOver(event);
  if (result === "middle" && world.sinkCalls.length === 4) asked.push(stream.result());
  await world.answer(wait, () => {});
  return world.sinkCalls.length > takes;
}

/** From here on the run is to end: to be said in the moment of leaving. */
function goes(world: World): void {
  world.stoppedAt ??= Date.now();
  world.left = true;
}

async function loop(world: World, stream: EventStream, asked: Promise<AgentMessage[]>[]): Promise<void> {
  const failure = new Error("the consumer throws");
  try {
    for await (const event of stream) {
      if (!(await work(world, stream, asked, event))) continue;
      goes(world);
      throw failure;
    }
  } catch (error) {
    if (error !== failure) throw error;
  }
}

async function iterate(world: World, stream: EventStream, asked: Promise<AgentMessage[]>[]): Promise<void> {
  const { leave: how, atOnce } = world.scenario.consumer;
  const iterator = stream[Symbol.asyncIterator]();
  for (;;) {
    const batch = Array.from({ length: atOnce }, () => iterator.next());
    for (const coming of batch) {
      const next = await coming;
      if (next.done) return;
      if (!(await work(world, stream, asked, next.value))) continue;
      if (how === "silent") world.silent = true;
      else goes(world);
      if (how === "return") await iterator.return?.();
      if (how === "throw") await iterator.throw?.(THROWN[0]?.()).catch(() => {});
      if (how !== "silent" && !(await iterator.next()).done) world.fail("4.9: an iteration that was left gives another event");
      return;
    }
  }
}
