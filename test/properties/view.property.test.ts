import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import {
  Agent,
  type AssistantMessage,
  initialView,
  reduceEvents,
  type ToolCallDecision,
  toWireEvent,
  userMessage,
  type ViewState,
} from "turnloop";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { historyOf, interpretedConfig, interpretedTools } from "./host.js";
import { interpretedModel } from "./model.js";
import { deepFreeze, show } from "./odd-values.js";
import { counter, runsOf, timeoutOf } from "./runs.js";
import { type Act, type Scenario, scenarios } from "./scenario.js";
import { World } from "./world.js";

const RUNS = runsOf("view", "TURNLOOP_VIEW_RUNS");
const played = counter("view");
/** Repeats a failure: the seed that it printed. */
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** What the host does when nothing runs, and with each call that waits; at which events it queues a message. */
interface Plan {
  moves: ("prompt" | "resume" | "continue")[];
  decisions: ("approve" | "edit" | "deny" | "result")[];
  queueAt: number[];
  thinking: boolean;
  /** The hook suspends every other call it is asked about. */
  suspends: boolean;
}

const plans: fc.Arbitrary<Plan> = fc.record({
  moves: fc.array(fc.constantFrom("prompt", "resume", "resume", "continue"), { minLength: 1, maxLength: 4 }),
  decisions: fc.array(fc.constantFrom("approve", "edit", "deny", "result"), { minLength: 1, maxLength: 4 }),
  queueAt: fc.array(fc.nat(60), { maxLength: 4 }),
  thinking: fc.boolean(),
  suspends: fc.boolean(),
});

/** How often what the property is about came up. */
const reached = { suspended: 0, resumed: 0, aborted: 0, error: 0, queued: 0, running: 0, streamed: 0 };

interface State {
  messages: readonly unknown[];
  [part: string]: unknown;
}

/** The Agent's state, in the words of a view. */
function stateOf(agent: Agent): State {
  return {
    messages: agent.messages,
    streamingMessage: agent.streamingMessage,
    running: [...agent.pendingToolCalls].sort(),
    error: agent.lastError,
    pending: agent.pendingApprovals,
    queues: { steering: agent.steeringQueue.peek(), followUp: agent.followUpQueue.peek() },
  };
}

function stateIn({ messages, streamingMessage, toolCalls, error, pending = [], queues }: ViewState): State {
  const running = toolCalls.filter(({ status }) => status === "running").map(({ toolCallId }) => toolCallId);
  return { messages, streamingMessage, running: running.sort(), error, pending, queues };
}

/** Text and thinking; a call's id and arguments come over a wire with its end. */
function streamed(message: AssistantMessage | undefined): string {
  return show(message?.content.map((block) => ("text" in block ? block.text : "thinking" in block ? [block.thinking] : "call")));
}

/** Whether each partial has what its deltas have said, and no more: then a wire shows the same while an answer streams. */
function isFaithful({ answers }: Scenario): boolean {
  return answers.every(
    ({ live, garbage, indexOffset, fault }) => !live && garbage === "never" && indexOffset === 0 && fault?.kind !== "lateStart",
  );
}

/** Plays the plan with an Agent of the scenario. Gives where view and Agent differ. */
async function play({ hooks, ...rest }: Scenario, plan: Plan): Promise<string[]> {
  const acts: Act[] = Array.from({ length: 20 }, (_, i) => ({ act: i % 2 === 0 ? "suspend" : "none", wait: "sync", odd: 0 }));
  const scenario: Scenario = { ...rest, hooks: plan.suspends ? { ...hooks, beforeToolCall: acts } : hooks };
  const world = new World(scenario);
  const { signal } = world.controller;
  const messages = historyOf(scenario.history);
  const model = { id: "first-model", provider: "first-provider" };
  const config = interpretedConfig(world, model);
  const thinking = plan.thinking && { heartbeatMs: 5 };
  const agent = new Agent({ ...config, model, messages, thinking, streamFn: interpretedModel(world), tools: interpretedTools(world) });
  const wrong: string[] = [];
  let view = deepFreeze(initialView(messages));
  let wire = view;
  let events = 0;
  const take = (event: Parameters<typeof toWireEvent>[0]): void => {
    const before = view;
    view = reduceEvents(view, event);
    wire = reduceEvents(wire, toWireEvent(event));
    for (const list of [view, view.messages, view.toolCalls, view.queues]) Object.freeze(list);
    if (view.messages.length < before.messages.length) wrong.push(`${event.type} takes a message away`);
    // the transcript only when it may have changed: the rest of the time its length will do
    const whole = event.type === "message_end" || event.type === "agent_end";
    const state = (of: State): string => show(whole ? of : { ...of, messages: of.messages.length });
    const [mine, theirs] = [state(stateIn(view)), state(stateOf(agent))];
    const outside = event.type === "thinking" || event.type === "queue_change";
    if (mine !== theirs && !outside) wrong.push(`after ${event.type} ${events} the view has ${mine}, the Agent ${theirs}`);
    if ((view.outcome !== undefined) !== (event.type === "agent_end") && !outside) wrong.push(`outcome ${view.outcome} at ${event.type}`);
    const quiet = (all: ViewState): ViewState => ({ ...all, streamingMessage: undefined });
    if (!isDeepStrictEqual(quiet(wire), quiet(view)))
      wrong.push(`after ${event.type} ${events} the wire has ${show(quiet(wire))}, live is ${show(quiet(view))}`);
    const streams = event.type === "message_update" && isFaithful(scenario);
    if (streams && streamed(wire.streamingMessage) !== streamed(view.streamingMessage))
      wrong.push(`after ${show(event)} the wire has ${streamed(wire.streamingMessage)}, live is ${streamed(view.streamingMessage)}`);
    if (streams) reached.streamed++;
    if (view.toolCalls.some(({ status }) => status === "running")) reached.running++;
  };
  agent.subscribe((event) => {
    take(event);
    if (!plan.queueAt.includes(events++)) return;
    agent.steer(`steer ${events}`);
    agent.followUp(`follow up ${events}`);
  });
  agent.on("thinking", (event) => take({ type: "thinking", event }));
  agent.on("queue_change", (queues) => {
    reached.queued++;
    take({ type: "queue_change", ...queues });
  });
  for (const move of plan.moves) {
    const { pendingApprovals } = agent;
    const options = world.stopped ? {} : { signal };
    const decisions = pendingApprovals.map(({ toolCall: { id } }, i) => decide(id, plan.decisions[i % plan.decisions.length] as "deny"));
    if (move === "resume" && decisions.length > 0) reached.resumed++;
    const running =
      move === "resume" && decisions.length > 0
        ? agent.resume(decisions, options)
        : move === "continue"
          ? agent.continue(options)
          : agent.prompt(userMessage("go on", { timestamp: 8 }), options);
    const outcome = await driven(agent, running);
    if (outcome === "suspended" || outcome === "aborted" || outcome === "error") reached[outcome]++;
  }
  return wrong;
}

function decide(toolCallId: string, how: Plan["decisions"][number]): ToolCallDecision {
  if (how === "edit") return { toolCallId, action: "approve", args: { n: 4 } };
  return how === "result" ? { toolCallId, action: how, result: "by hand" } : { toolCallId, action: how };
}

/** Lets the run go on until it settles; aborts it when only hanging things are left. Gives its outcome, or the code of a refusal. */
async function driven(agent: Agent, running: Promise<{ outcome: string }>): Promise<string> {
  const settled = running.then(({ outcome }) => outcome).catch(({ code }: { code: string }) => code);
  for (let step = 0; agent.isRunning && step < 3000; step++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (vi.getTimerCount() > 0) vi.advanceTimersToNextTimer();
    else if (step % 10 === 9) agent.abort("long enough");
  }
  const outcome = await settled;
  vi.clearAllTimers();
  return outcome;
}

// SPEC 15.1, 8.2
it(`a view has the Agent's state after each event, live and over a wire (${RUNS} runs)`, { timeout: timeoutOf(RUNS) }, async () => {
  const holds = fc.asyncProperty(scenarios, plans, async (scenario, plan) => {
    played();
    return (await play(scenario, plan)).length === 0;
  });
  const { failed, seed, counterexample } = await fc.check(holds, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  if (!failed) {
    for (const [what, times] of Object.entries(reached)) expect(times, what).toBeGreaterThan(RUNS / 50);
    return;
  }
  const [scenario, plan] = counterexample as [Scenario, Plan];
  const wrong = await play(scenario, plan).catch((error: unknown) => [String((error as Error).stack)]);
  expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}\n${wrong.slice(0, 3).join("\n")}\n${show([scenario, plan])}`);
});
