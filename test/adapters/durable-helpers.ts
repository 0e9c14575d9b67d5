import {
  type AgentContext,
  type AgentEvent,
  type AgentEventSink,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  type RunOutcome,
  runAgentLoop,
  type StreamFn,
  userMessage,
} from "turnloop";
import { type DurableOptions, durable, type Step, type StepInfo } from "turnloop/durable";
import {
  assertEventSequence,
  type Block,
  recordEvents,
  type ScriptedAnswer,
  type ScriptedModelOptions,
  scriptedModel,
} from "turnloop/testing";
import { deferred, model } from "../helpers.js";

export interface Entry {
  name: string;
  json: string;
}

/** When steps that are recorded settle on a replay: at once, in the order of the journal, or in any order. */
export type Settling = "at once" | "journal order" | (() => number);

/** An engine whose journal is a list: it runs what is not in there and records what that gives, as JSON. */
export class MemoryJournal {
  readonly entries: Entry[];
  /** The steps this replay asked for, and those whose function it called. */
  readonly asked: string[] = [];
  readonly ran: string[] = [];
  readonly infos: StepInfo[] = [];
  readonly #settling: Settling;
  readonly #waiting = new Map<string, (entry: Entry) => void>();
  #isSettling = false;

  constructor(entries: readonly Entry[] = [], settling: Settling = "journal order") {
    this.entries = [...entries];
    this.#settling = settling;
  }

  readonly step: Step = async <T>(name: string, fn: (attempt: { signal?: AbortSignal }) => Promise<T>, info: StepInfo): Promise<T> => {
    this.asked.push(name);
    this.infos.push(info);
    const recorded = this.entries.find((entry) => entry.name === name);
    if (recorded) return JSON.parse((await this.#turnOf(recorded)).json);
    this.ran.push(name);
    const json = JSON.stringify(await fn({}));
    this.entries.push({ name, json });
    return JSON.parse(json);
  };

  #turnOf(entry: Entry): Promise<Entry> | Entry {
    if (this.#settling === "at once") return entry;
    const turn = deferred<Entry>();
    this.#waiting.set(entry.name, turn.resolve);
    if (!this.#isSettling) this.#settle();
    return turn.promise;
  }

  /** One by one: what follows from one has happened before the next. */
  async #settle(): Promise<void> {
    this.#isSettling = true;
    for (await tick(); this.#waiting.size > 0; await tick()) {
      const names = this.entries.map(({ name }) => name).filter((name) => this.#waiting.has(name));
      const index = typeof this.#settling === "function" ? Math.floor(this.#settling() * names.length) : 0;
      const entry = this.entries.find(({ name }) => name === names[index]) as Entry;
      this.#waiting.get(entry.name)?.(entry);
      this.#waiting.delete(entry.name);
    }
    this.#isSettling = false;
  }
}

export function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export async function ticks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await tick();
}

/** A clock for `Date.now` that a scenario sets, so that a step that runs again is recorded at the same time. */
const clock = { time: 0 };

/** Returns what gives the real one back. */
export function useClock(): () => void {
  const real = Date.now;
  clock.time = 0;
  Date.now = () => clock.time;
  return () => {
    Date.now = real;
  };
}

export interface Played {
  messages: AgentMessage[];
  events: AgentEvent[];
  outcome: RunOutcome;
  end: Extract<AgentEvent, { type: "agent_end" }>;
}

export interface PlayOptions extends Partial<Omit<DurableOptions, "step">> {
  streamFn: StreamFn;
  config?: Partial<AgentLoopConfig>;
  signal?: AbortSignal | undefined;
  emit?: AgentEventSink;
  context?: Partial<AgentContext>;
}

/** One durable run from the prompt "go". */
export async function play(step: Step, { config, signal, emit, context, ...options }: PlayOptions): Promise<Played> {
  const run = durable({ prefix: "run", startedAt: 100, ...options, step });
  const recorder = recordEvents();
  const sink = (event: AgentEvent): void | Promise<void> => {
    recorder(event);
    return emit?.(event);
  };
  const messages = await runAgentLoop(
    [userMessage("go", { timestamp: 1 })],
    { systemPrompt: "", messages: [], tools: run.tools, ...context },
    { model, ...config, now: run.now },
    sink,
    signal,
    run.streamFn,
  );
  assertEventSequence(recorder.events);
  const end = recorder.events[recorder.events.length - 1] as Played["end"];
  return { messages, events: recorder.events, outcome: end.outcome, end };
}

/** A tool with any parameters, whose work takes some ticks; its time is that of its place in the run. */
export function workTool(name: string, work: AgentTool["execute"], extra: Partial<AgentTool> = {}): AgentTool {
  return {
    name,
    description: name,
    parameters: { type: "object", properties: {} },
    execute: async (...given) => {
      const [, params, , , { turn, index }] = given;
      await ticks(Number((params as { ticks?: number }).ticks ?? 0));
      try {
        return await work(...given);
      } finally {
        clock.time = 1000 * turn + 10 * (index + 1);
      }
    },
    ...extra,
  };
}

/** The answers by turn, whichever calls a replay makes; the time of each is that of its turn. */
export function script(answers: ScriptedAnswer[], options?: ScriptedModelOptions): StreamFn {
  return (given, context, streamOptions) => {
    const turn = context.messages.filter(({ role }) => role === "assistant").length;
    clock.time = 1000 * (turn + 1);
    return scriptedModel(answers.slice(turn, turn + 1), options)(given, context, streamOptions);
  };
}

export const call = (toolCall: string, args: object = {}): Block => ({ toolCall, args });
