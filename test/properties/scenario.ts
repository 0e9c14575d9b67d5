/** A random run as plain data: what it is made of, and the generators (which shrink to the plainest run). */
import fc from "fast-check";
import { ARGUMENTS, THROWN, UNKNOWN_NAMES } from "./odd-values.js";

/** How a thing answers: at once, as a promise, after milliseconds. */
export type Wait = "sync" | "micro" | number;

export interface Block {
  kind: "text" | "thinking" | "call";
  /** Of a call: which tool (counted round; from UNKNOWN on a name that no tool has), what kind of id, which row of ARGUMENTS. */
  tool: number;
  id: "own" | "same" | "empty" | "blank" | "number" | "missing" | "generated" | "suffixed" | "lone" | "lone2";
  args: number;
}

export const UNKNOWN = 8;

export interface Answer {
  blocks: Block[];
  /** `none`: the message has no stop reason, the event has. */
  stop: "auto" | "stop" | "toolUse" | "length" | "error" | "aborted" | "pause_turn" | "none";
  fault?: {
    kind: "throw" | "stall" | "end" | "restart" | "noStart" | "lateStart" | "reject" | "throwSync" | "notIterable" | "noMessage" | "junk";
    after: number;
    odd: number;
  };
  /** Of the fault `end`. */
  result: "absent" | "message" | "aborted" | "never" | "late" | "reject" | "throwSync" | "junk";
  open: Wait | "never";
  arrive: Wait;
  /** One partial that is changed in place, or a new one each time. */
  live: boolean;
  /** When the message is filled with garbage: in `return()`, a while after its terminal event, at the abort. */
  garbage: "never" | "return" | "later" | "abort";
  indexOffset: number;
  /** The blocks grow side by side. */
  interleaved: boolean;
  obey: "ignore" | "error" | "throw";
  onReturn: "ok" | "hang" | "throw" | "reject" | "absent";
  eventsAfterEnd: boolean;
}

export interface Tool {
  wait: Wait | "never";
  then: "text" | "result" | "terminate" | "isError" | "odd" | "throw";
  odd: number;
  onAbort: "ignore" | "reject" | "resolve";
  updates: number;
  updatesAfter: number;
  timeoutMs?: number;
  mode?: "sequential" | "parallel";
  strict: boolean;
  /** Besides prepareArguments: a Standard Schema that validates asynchronously, or never answers. */
  prepare: "none" | "same" | "throw" | "edit" | "promise" | "mutate" | "asyncSchema" | "hangingSchema";
  mutatesParams: boolean;
}

/** What a hook does at one call. After the last one given it does `none`. */
export interface Act {
  act: string;
  wait: Wait;
  odd: number;
}

const HOOK_ACTS = {
  transformContext: ["none", "push", "tail", "empty", "junk", "throw", "hang"],
  convertToLlm: ["none", "noResults", "reverse", "push", "junk", "throw", "hang"],
  getApiKey: ["none", "undefined", "throw", "hang"],
  beforeToolCall: [
    "none",
    "edit",
    "inPlace",
    "bad",
    "badInPlace",
    "block",
    "blockTerminate",
    "truthyBlock",
    "suspend",
    "suspendEdit",
    "suspendBad",
    "push",
    "junk",
    "throw",
    "hang",
  ],
  afterToolCall: ["none", "content", "terminate", "error", "push", "junk", "throw", "hang"],
  prepareNextTurn: ["none", "model", "messages", "tools", "options", "push", "junk", "throw", "hang"],
  shouldStopAfterTurn: ["none", "push", "push", "push", "stop", "throw", "hang"],
} as const;
export type HookName = keyof typeof HOOK_ACTS;

const OTHER_CALLS = ["streamFn", "prepareArguments", "execute", "getSteeringMessages", "getFollowUpMessages"] as const;
/** What a run may call of its host's, so that it must not be called after an abort. */
export type CallName = HookName | (typeof OTHER_CALLS)[number];

/** What a queue gives at one poll: so many messages, or a throw. */
export interface Poll {
  messages: number;
  role: "user" | "note";
  wait: Wait;
  throws: boolean;
}

interface Sink {
  wait: Wait;
  /** Counted from 0. */
  failAt?: number;
  fail: "throw" | "reject" | "late" | "hang";
  failsOn: boolean;
  /** Writes over everything it was given. */
  writes: boolean;
}

export interface Scenario {
  /** `agent`: a prompt to an Agent, whose awaited listener is the sink. */
  entry: "run" | "continue" | "stream" | "streamContinue" | "agent";
  history: ("user" | "note" | "answer" | "calls" | "openCalls" | "strayResult" | "failed")[];
  prompts: ("user" | "image" | "note")[];
  answers: Answer[];
  tools: Tool[];
  hooks: { [name in HookName]?: Act[] };
  steering?: Poll[];
  followUp?: Poll[];
  sink: Sink;
  /**
   * Of the iterable form: begins to read so late, asks for so many events at once, leaves after `takes` events: by `return()`, by
   * `throw()`, by a throw inside of `for await`, or reads no more without a word; may ask for result() before it iterates, in the middle,
   * or for nothing else.
   */
  consumer: {
    wait: Wait;
    begins: Wait;
    atOnce: number;
    takes?: number;
    leave: "return" | "throw" | "loop" | "silent";
    result: "last" | "first" | "middle" | "only";
  };
  config: {
    toolExecution?: "parallel" | "sequential";
    maxParallelToolCalls?: number;
    toolTimeoutMs?: number;
    maxTruncatedTurns?: number;
    abortGraceMs?: number;
    ownNow: boolean;
  };
  /** At the n-th time that the run calls anything, or `where`, of the host's, or that something hangs (so many microtasks later), or at a time. */
  abort: { at: "never" | "before" | "time" | "point" | "inside" | "hang"; n: number; where: CallName; microtasks: number; reason: number };
}

/** The first value `weight` times as often as all the others together. */
const mostly = <T>(weight: number, first: T, ...others: T[]): fc.Arbitrary<T> =>
  fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.constant(first), weight: weight * 10 },
    { arbitrary: fc.constantFrom(...others), weight: 10 },
  );
/** Undefined, but once in `times`. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>, times: number): fc.Arbitrary<T | undefined> =>
  fc.oneof({ withCrossShrink: true }, { arbitrary: fc.constant(undefined), weight: times - 1 }, { arbitrary, weight: 1 });
/** A record whose undefined fields are left out, so that a counterexample shows only what matters. */
const record = <T extends object>(fields: { [K in keyof T]-?: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(fields as any).map((value: any) => Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined))) as never;
const once = <T>(first: T, ...others: T[]): fc.Arbitrary<T> => fc.constantFrom(first, ...others);

const wait: fc.Arbitrary<Wait> = mostly<Wait>(1, "sync", "micro", 1, 7, 40);
const odd = fc.nat({ max: THROWN.length - 1 });

const block = record<Block>({
  kind: once("text", "call", "call", "call", "thinking"),
  tool: fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.nat({ max: UNKNOWN - 1 }), weight: 7 },
    fc.integer({ min: UNKNOWN, max: UNKNOWN + UNKNOWN_NAMES.length - 1 }),
  ),
  id: mostly(2, "own", "same", "empty", "blank", "number", "missing", "generated", "suffixed", "lone", "lone2"),
  args: fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.constantFrom(0, 2, 3, 5, 7, 8), weight: 3 },
    fc.nat({ max: ARGUMENTS.length - 1 }),
  ),
});

const answer = record<Answer>({
  blocks: fc.array(block, { maxLength: 5, size: "medium" }),
  stop: fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.constant<Answer["stop"]>("auto"), weight: 10 },
    once<Answer["stop"]>("stop", "toolUse", "length", "error", "aborted", "pause_turn", "none"),
  ),
  fault: rarely(
    record<NonNullable<Answer["fault"]>>({
      kind: once("throw", "stall", "end", "restart", "noStart", "lateStart", "reject", "throwSync", "notIterable", "noMessage", "junk"),
      after: fc.nat({ max: 12 }),
      odd,
    }),
    7,
  ),
  result: once("absent", "message", "aborted", "never", "late", "reject", "throwSync", "junk"),
  open: fc.oneof({ withCrossShrink: true }, { arbitrary: wait, weight: 40 }, fc.constant("never" as const)),
  arrive: wait,
  live: fc.boolean(),
  garbage: mostly(2, "never", "later", "return", "abort"),
  indexOffset: mostly(3, 0, 1, -1, 90),
  interleaved: mostly(1, false, true),
  obey: once("ignore", "error", "throw"),
  onReturn: mostly(1, "ok", "hang", "throw", "reject", "absent"),
  eventsAfterEnd: fc.boolean(),
});

const tool = record<Tool>({
  wait: fc.oneof({ withCrossShrink: true }, { arbitrary: wait, weight: 9 }, once<Wait | "never">(300, "never")),
  then: once("text", "text", "result", "terminate", "terminate", "terminate", "isError", "odd", "throw"),
  odd,
  onAbort: once("ignore", "reject", "resolve"),
  updates: mostly(1, 0, 1, 3),
  updatesAfter: mostly(1, 0, 2),
  timeoutMs: rarely(fc.constantFrom(3, 20, 90), 4),
  mode: rarely(once("sequential", "parallel"), 4),
  strict: fc.boolean(),
  prepare: mostly(4, "none", "same", "throw", "edit", "promise", "mutate", "asyncSchema", "hangingSchema"),
  mutatesParams: fc.boolean(),
});

/** Some acts end the run: they must be rare, or few runs get far. */
const ENDING = ["empty", "reverse", "junk", "throw", "hang"];
const actOf = (names: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(
    { withCrossShrink: true },
    { arbitrary: fc.constantFrom(...names.filter((name) => !ENDING.includes(name))), weight: 30 },
    { arbitrary: fc.constantFrom(...names.filter((name) => ENDING.includes(name))), weight: 1 },
  );
const acts = (names: readonly string[]): fc.Arbitrary<Act[] | undefined> =>
  rarely(fc.array(record<Act>({ act: actOf(names), wait, odd }), { minLength: 1, maxLength: 4 }), 3);
const poll = record<Poll>({
  messages: fc.nat({ max: 2 }),
  role: mostly(10, "user", "note"),
  wait,
  throws: fc.oneof({ withCrossShrink: true }, { arbitrary: fc.constant(false), weight: 40 }, fc.constant(true)),
});

export const scenarios: fc.Arbitrary<Scenario> = record<Scenario>({
  entry: once("run", "run", "continue", "stream", "streamContinue", "agent"),
  history: fc.array(once("user", "user", "user", "note", "answer", "calls", "openCalls", "strayResult", "failed"), { maxLength: 4 }),
  prompts: fc.array(mostly(12, "user", "image", "note"), { minLength: 1, maxLength: 2 }),
  answers: fc.array(answer, { maxLength: 5, size: "medium" }),
  tools: fc.array(tool, { minLength: 1, maxLength: 4, size: "medium" }),
  hooks: record<Scenario["hooks"]>(Object.fromEntries(Object.entries(HOOK_ACTS).map(([name, names]) => [name, acts(names)])) as never),
  steering: rarely(fc.array(poll, { minLength: 1, maxLength: 4 }), 2),
  followUp: rarely(fc.array(poll, { minLength: 1, maxLength: 3 }), 2),
  sink: record<Sink>({
    wait,
    failAt: rarely(fc.nat({ max: 60 }), 6),
    fail: once("throw", "reject", "late", "hang"),
    failsOn: fc.boolean(),
    writes: mostly(4, false, true),
  }),
  consumer: record<Scenario["consumer"]>({
    wait,
    begins: mostly<Wait>(3, "sync", "micro", 7, 400),
    atOnce: mostly(3, 1, 2, 20),
    takes: rarely(fc.nat({ max: 60 }), 3),
    leave: once("return", "throw", "loop", "silent"),
    result: mostly(3, "last", "first", "middle", "only"),
  }),
  config: record<Scenario["config"]>({
    toolExecution: rarely(once("sequential", "parallel"), 3),
    maxParallelToolCalls: rarely(fc.integer({ min: 1, max: 3 }), 3),
    toolTimeoutMs: rarely(fc.constantFrom(5, 60, 0), 5),
    maxTruncatedTurns: rarely(fc.integer({ min: 1, max: 2 }), 4),
    abortGraceMs: rarely(fc.constantFrom(20, 0, 1000), 3),
    ownNow: fc.boolean(),
  }),
  abort: record<Scenario["abort"]>({
    at: fc.oneof(
      { withCrossShrink: true },
      { arbitrary: fc.constant<Scenario["abort"]["at"]>("never"), weight: 8 },
      { arbitrary: once<Scenario["abort"]["at"]>("point", "time", "inside", "inside", "hang"), weight: 8 },
      fc.constant<"before">("before"),
    ),
    n: fc.nat({ max: 80 }),
    where: fc.constantFrom<CallName>(...OTHER_CALLS, ...(Object.keys(HOOK_ACTS) as HookName[])),
    microtasks: fc.nat({ max: 5 }),
    reason: odd,
  }),
});

/** A scenario of which only some parts are named; the rest is the plainest there is. */
export type Sketch = {
  [K in keyof Scenario]?: K extends "answers" ? Partial<Answer>[] : K extends "tools" ? Partial<Tool>[] : Partial<Scenario[K]>;
};

export const call = (more: Partial<Block> = {}): Block => ({ kind: "call", tool: 0, id: "own", args: 0, ...more });
export const text: Block = { kind: "text", tool: 0, id: "own", args: 0 };

export function sketch(given: Sketch): Scenario {
  const plainAnswer: Answer = {
    blocks: [],
    stop: "auto",
    result: "absent",
    open: "sync",
    arrive: "sync",
    live: false,
    garbage: "never",
    indexOffset: 0,
    interleaved: false,
    obey: "ignore",
    onReturn: "ok",
    eventsAfterEnd: false,
  };
  const plainTool: Tool = {
    wait: "sync",
    then: "text",
    odd: 0,
    onAbort: "ignore",
    updates: 0,
    updatesAfter: 0,
    strict: false,
    prepare: "none",
    mutatesParams: false,
  };
  return {
    entry: "run",
    history: [],
    prompts: ["user"],
    hooks: {},
    ...(given as object),
    answers: (given.answers ?? []).map((partial) => ({ ...plainAnswer, ...partial })),
    tools: (given.tools ?? []).map((partial) => ({ ...plainTool, ...partial })),
    sink: { wait: "sync", fail: "throw", failsOn: false, writes: false, ...given.sink },
    consumer: { wait: "sync", begins: "sync", atOnce: 1, leave: "return", result: "last", ...given.consumer },
    config: { ownNow: false, ...given.config },
    abort: { at: "never", n: 0, where: "streamFn", microtasks: 0, reason: 0, ...given.abort },
  };
}
