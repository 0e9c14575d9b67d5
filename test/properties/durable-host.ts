/** Conversations that a durable engine plays in processes that end at any point, for durable-lives.property.test.ts. */
import {
  type AgentEvent,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  type AgentToolResult,
  type BeforeToolCallResult,
  type RunOutcome,
  resumeAgentLoop,
  runAgentLoop,
  type StreamFn,
  type ToolCallDecision,
  userMessage,
} from "turnloop";
import { durable, performStep, type Step, type StepInfo } from "turnloop/durable";
import { assertEventSequence, type Block, recordEvents, type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { vi } from "vitest";
import { model } from "../helpers.js";

export interface PlannedCall {
  /** `aborts`: the run's caller aborts while the call runs. `deaf`: it never settles. */
  does: "text" | "image" | "throws" | "deaf" | "aborts";
  /** Milliseconds, below LIMIT_MS. */
  takes: number;
  /** What beforeToolCall answers. */
  hook: "nothing" | "blocks" | "edits" | "suspends";
}

export interface Plan {
  turns: PlannedCall[][];
  ending: "text" | "error" | "throw" | "length";
  /** The caller aborts after so many events of the last answer. */
  abortsAnswer: number | null;
  /** The caller aborts in the hook after this turn. */
  abortsAfterTurn: number | null;
  /** The polls of the conversation that give a message. */
  steering: number[];
  toolExecution: "parallel" | "sequential";
  maxParallelToolCalls: number;
  /** Steps are done by a worker that gets nothing but JSON. */
  remote: boolean;
}

/** What happens to one process at one of its steps. */
export interface Disturbance {
  /** The how-manieth step that really runs. */
  step: number;
  /** Gone before its function is called, with it half done, with its effect done, with its record written; or the engine ends the attempt, or refuses the step. */
  when: "before" | "during" | "done" | "recorded" | "ended" | "refused";
}

const LIMIT_MS = 40;
const GRACE_MS = 5;

/** An engine's journal, and what was done for it in all processes. */
export class Journal {
  readonly records = new Map<string, string>();
  /** By process: the steps asked for, those whose function was called, and the idempotency keys tools were executed with. */
  readonly processes: { asked: string[]; ran: string[]; keys: string[]; recordedBefore: string[] }[] = [];
}

export interface Ended {
  messages: AgentMessage[];
  outcome: RunOutcome;
  error: string | undefined;
}

/** Which of so many recorded steps that were asked for settles next, in the order of the records; undefined: time passes first. */
export type Settling = (waiting: number) => number | undefined;

/** One process of the conversation: what it ended with, undefined when it was gone before. */
export async function playProcess(
  plan: Plan,
  journal: Journal,
  disturbance: Disturbance | null,
  settling: Settling,
): Promise<Ended | undefined> {
  const process = { asked: [] as string[], ran: [] as string[], keys: [] as string[], recordedBefore: [...journal.records.keys()] };
  journal.processes.push(process);
  const waiting = new Map<string, (json: string) => void>();
  let isGone = false;
  const never = <T>(): Promise<T> => {
    isGone = true;
    return new Promise(() => {});
  };
  const caller = new AbortController();
  const host = makeHost(plan, caller, process.keys);
  const perform = <T>(fn: Parameters<Step>[1], info: StepInfo, attempt: AbortSignal | undefined): Promise<T> => {
    if (!plan.remote) return fn(attempt && { signal: attempt }) as Promise<T>;
    const options = { streamFn: host.streamFn, tools: host.tools, signal: caller.signal, toolTimeoutMs: LIMIT_MS };
    return performStep(JSON.parse(JSON.stringify(info)), { ...options, ...(attempt && { attempt }) }) as Promise<T>;
  };
  const step: Step = async <T>(name: string, fn: Parameters<Step>[1], info: StepInfo): Promise<T> => {
    if (isGone) return never();
    process.asked.push(name);
    if (journal.records.has(name)) return JSON.parse(await new Promise<string>((resolve) => waiting.set(name, resolve)));
    const when = disturbance?.step === process.ran.length ? disturbance.when : undefined;
    if (when === "before") return never();
    process.ran.push(name);
    if (when === "refused") throw new Error("the engine is gone");
    const own = when === "ended" ? new AbortController() : undefined;
    if (own) pause(2).then(() => own.abort(new Error("moved to another worker")));
    if (when === "during") pause(1).then(() => never());
    const json = JSON.stringify(await perform<T>(fn, info, own?.signal));
    if (isGone || when === "done") return never();
    journal.records.set(name, json);
    return when === "recorded" ? never() : JSON.parse(json);
  };
  const settled = conversation(plan, host, caller.signal, (name, startedAt) => {
    const { streamFn, tools } = plan.remote ? elsewhere(host) : host;
    return durable({ step, streamFn, tools, prefix: name, startedAt, toolTimeoutMs: LIMIT_MS });
  });
  const settleNext = (): boolean => {
    const names = [...journal.records.keys()].filter((name) => waiting.has(name));
    const name = names[settling(names.length) ?? -1];
    if (name === undefined) return false;
    waiting.get(name)?.(journal.records.get(name) as string);
    return waiting.delete(name);
  };
  return untilSettled(settled, () => isGone, settleNext);
}

/** The same conversation with no engine at all. */
export async function playPlain(plan: Plan): Promise<Ended> {
  const caller = new AbortController();
  const host = makeHost(plan, caller, []);
  const ended = await untilSettled(
    conversation(plan, host, caller.signal, (_name, startedAt) => ({ ...host, now: () => startedAt })),
    () => false,
    () => false,
  );
  return ended as Ended;
}

interface Host {
  streamFn: StreamFn;
  tools: AgentTool[];
  config: Partial<AgentLoopConfig>;
}

/** A prompt, and as many resumed runs as there are approvals to give: what an engine calls anew in each process. */
async function conversation(
  plan: Plan,
  host: Host,
  signal: AbortSignal,
  makeRun: (name: string, startedAt: number) => { streamFn: StreamFn; tools: AgentTool[]; now(): number },
): Promise<Ended> {
  let messages: AgentMessage[] = [];
  let decisions: ToolCallDecision[] | undefined;
  for (let n = 1; ; n++) {
    const run = makeRun(`run${n}`, Math.max(100, ...messages.map(({ timestamp }) => timestamp)));
    const recorder = recordEvents();
    const context = { systemPrompt: "", messages, tools: run.tools };
    const config: AgentLoopConfig = {
      ...host.config,
      model,
      now: run.now,
      toolExecution: plan.toolExecution,
      maxParallelToolCalls: plan.maxParallelToolCalls,
      toolTimeoutMs: LIMIT_MS,
      abortGraceMs: GRACE_MS,
    };
    const rest = [context, config, recorder, signal, run.streamFn] as const;
    const added = await (decisions ? resumeAgentLoop(decisions, ...rest) : runAgentLoop([userMessage("go", { timestamp: 1 })], ...rest));
    assertEventSequence(recorder.events, { resumed: decisions !== undefined });
    messages = [...messages, ...added];
    const end = recorder.events.at(-1) as Extract<AgentEvent, { type: "agent_end" }>;
    if (end.outcome !== "suspended") return { messages, outcome: end.outcome, error: end.error?.message };
    decisions = end.pending?.map(({ toolCall }) => ({ toolCallId: toolCall.id, action: "approve" }));
  }
}

function makeHost(plan: Plan, caller: AbortController, keys: string[]): Host {
  const abort = (): void => caller.abort("enough");
  let polls = 0;
  let turns = 0;
  return {
    tools: [workTool(abort, keys)],
    streamFn: answering(plan, abort),
    config: {
      beforeToolCall: async ({ args }): Promise<BeforeToolCallResult | undefined> => {
        const { hook, note } = args as { hook: PlannedCall["hook"]; note?: string };
        if (hook === "blocks") return { block: true, reason: "not this one" };
        if (hook === "suspends") return { suspend: true };
        return hook === "edits" ? { args: { ...(args as object), note: `${note ?? ""} edited` } } : undefined;
      },
      afterToolCall: ({ result }) => ({ content: [...result.content, { type: "text", text: "checked" }] }),
      prepareNextTurn: () => {
        if (turns++ === plan.abortsAfterTurn) abort();
      },
      getSteeringMessages: () => (plan.steering.includes(polls++) ? [userMessage(`steering ${polls}`, { timestamp: 2 })] : []),
    },
  };
}

const parameters = {
  type: "object",
  properties: { does: { type: "string" }, takes: { type: "number" }, hook: { type: "string" }, note: { type: "string", default: "noted" } },
};

function workTool(abort: () => void, keys: string[]): AgentTool {
  return {
    name: "work",
    description: "Does what its arguments say",
    parameters,
    async execute(id, params, signal, onUpdate, call): Promise<AgentToolResult> {
      const { does, takes, note } = params as PlannedCall & { note: string };
      if (call.idempotencyKey !== undefined) keys.push(call.idempotencyKey);
      onUpdate({ content: [{ type: "text", text: "begun" }] });
      if (does === "deaf") return new Promise(() => {});
      await pauseUnless(takes, signal);
      if (does === "throws") throw new Error(`${id} fails`);
      if (does === "aborts") {
        abort();
        signal.throwIfAborted();
      }
      if (does === "image") return { content: [{ type: "image", data: "AAAA", mimeType: "image/png" }], usage: { input: 3 } as never };
      return { content: [{ type: "text", text: `${id} ${note}` }], details: { id, rows: [1, 2] } };
    },
  };
}

function answering(plan: Plan, abort: () => void): StreamFn {
  const answers: ScriptedAnswer[] = plan.turns.map((calls, turn) => [
    { text: `turn ${turn} has ${calls.length} calls` },
    ...calls.map<Block>((call, index) => ({ toolCall: "work", id: `${turn}/${index}`, args: { ...call } })),
  ]);
  const last = "a last answer, which is long enough to be cut";
  if (plan.ending === "text") answers.push(last);
  if (plan.ending === "error") answers.push({ content: [last], errorMessage: "overloaded" });
  if (plan.ending === "throw") answers.push({ content: [last], fault: { kind: "throw", afterEvents: 4 } });
  if (plan.ending === "length") answers.push({ content: [last, { toolCall: "work", id: "cut" }], stopReason: "length" }, last);
  return async function* (given, context, options) {
    const turn = context.messages.filter(({ role }) => role === "assistant").length;
    const scripted = scriptedModel([answers[Math.min(turn, answers.length - 1)] as ScriptedAnswer], { chunkSize: 8, delayMs: 1 });
    let events = turn === answers.length - 1 ? 0 : Number.NEGATIVE_INFINITY;
    for await (const event of await scripted(given, context, options)) {
      yield event;
      if (events++ === plan.abortsAnswer) abort();
    }
  };
}

/** What the run has when its steps are done in another process. */
function elsewhere({ tools }: Host): Pick<Host, "streamFn" | "tools"> {
  const refuse = (): never => {
    throw new Error("not here");
  };
  return { streamFn: refuse, tools: tools.map((tool) => ({ ...tool, execute: refuse })) };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function pauseUnless(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    pause(ms).then(resolve);
  });
}

/** Settles what is recorded and lets time pass until the conversation has ended, or its process is gone: then its timers are, too. */
async function untilSettled(conversing: Promise<Ended>, isGone: () => boolean, settleNext: () => boolean): Promise<Ended | undefined> {
  let ended: Ended | undefined;
  let failure: { error: unknown } | undefined;
  conversing.then(
    (value) => (ended = value),
    (error: unknown) => (failure = { error }),
  );
  for (let idle = 0; idle < 20; ) {
    await new Promise((resolve) => setImmediate(resolve));
    if (isGone()) vi.clearAllTimers();
    if (isGone()) return undefined;
    if (failure) throw failure.error;
    if (ended) return ended;
    const hasSettled = settleNext();
    idle = hasSettled || vi.getTimerCount() > 0 ? 0 : idle + 1;
    if (!hasSettled) vi.advanceTimersToNextTimer();
  }
  throw new Error("it neither ends nor waits for anything");
}
