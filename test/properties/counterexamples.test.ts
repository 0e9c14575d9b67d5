import { getEventListeners } from "node:events";
import { type AgentContext, type AgentMessage, runAgentLoop, runAgentLoopContinue, TurnLoopError } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { model } from "../helpers.js";
import { checkAll } from "./checks.js";
import { play } from "./interpret.js";
import { type Act, call, type Sketch, sketch, text } from "./scenario.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const act = (name: string, wait: Act["wait"] = "sync"): Act => ({ act: name, wait, odd: 0 });
const lists = 7;

/** Runs that once broke the contract, found by the property test and cut down. */
const found: [string, Sketch][] = [
  // SPEC 4.8
  [
    "a listener that empties the content of an answer does not keep its calls from being answered",
    { answers: [{ blocks: [call()] }], tools: [{}], sink: { writes: true } },
  ],
  [
    "a listener that writes to updates does not change what is kept of an answer that throws",
    { answers: [{ blocks: [text], fault: { kind: "throw", after: 3, odd: 0 } }], sink: { writes: true } },
  ],
  [
    "a listener that writes to updates does not change what is kept of an aborted answer",
    { answers: [{ blocks: [text], fault: { kind: "stall", after: 3, odd: 0 } }], sink: { writes: true } },
  ],
  ["a listener that writes to errorInfo does not change the transcript's", { answers: [{ stop: "error" }], sink: { writes: true } }],
  [
    "arguments of a call whose end has a wrong index do not change in the event later",
    { answers: [{ blocks: [call()], live: true, garbage: "later", indexOffset: 1 }] },
  ],
  ["the end of a call with long lists shows all of its arguments", { answers: [{ blocks: [call({ args: lists })] }], tools: [{}] }],
  [
    "after a restart no event shows the arguments of the attempt before",
    { answers: [{ blocks: [call({ args: lists })], fault: { kind: "restart", after: 6, odd: 0 } }], tools: [{}] },
  ],
  [
    "a stream that ruins its message in return() does not change the answer that was done",
    { answers: [{ blocks: [text, call()], live: true, garbage: "return" }], tools: [{}] },
  ],
  [
    "a stream that ruins its message in return() does not change the answer that failed",
    { answers: [{ blocks: [text], stop: "error", live: true, garbage: "return" }] },
  ],
  [
    "a stream that ruins its message at the abort does not change what is kept of the answer",
    { answers: [{ blocks: [text], fault: { kind: "stall", after: 3, odd: 0 }, live: true, garbage: "abort" }] },
  ],
  [
    "a listener of an Agent that empties a tool's result does not change the Agent's transcript",
    { entry: "agent", answers: [{ blocks: [call()] }], tools: [{}], sink: { writes: true } },
  ],
  // SPEC 2.7
  [
    "ids that differ in lone surrogates only are still unique in the request",
    { answers: [{ blocks: [call({ id: "lone" }), call({ id: "lone2" })] }], tools: [{}] },
  ],
  ["the description of a tool is well-formed in the request", { tools: [{}] }],
  // SPEC 4.6
  [
    "an abort by the listener of message_start leaves no update after message_end when the stream gave no start",
    { answers: [{ blocks: [text], fault: { kind: "noStart", after: 0, odd: 0 } }], abort: { at: "point", n: 6 } },
  ],
  // SPEC 5.12
  [
    "afterToolCall is not asked about a call that did not start because the sink had failed on an update",
    {
      answers: [{ blocks: [call({ args: 9 }), call({ args: 9 })] }],
      tools: [{ wait: "micro", updates: 1 }],
      hooks: { afterToolCall: [act("none")] },
      config: { maxParallelToolCalls: 1 },
      sink: { failAt: 12 },
    },
  ],
  // SPEC 6.2
  [
    "what afterToolCall pushes into the content it is shown is not stored",
    { answers: [{ blocks: [call()] }], tools: [{}], hooks: { afterToolCall: [act("push")] } },
  ],
  // SPEC 7.2
  [
    "an abort from inside the StreamFn ends a run whose stream then stalls",
    { answers: [{ fault: { kind: "stall", after: 0, odd: 0 } }], abort: { at: "inside", where: "streamFn" } },
  ],
  // SPEC 7.3
  [
    "beforeToolCall is not asked when prepareArguments aborted the run",
    {
      answers: [{ blocks: [call({ args: 9 })] }],
      tools: [{ prepare: "same" }],
      hooks: { beforeToolCall: [act("none")] },
      abort: { at: "inside", where: "prepareArguments" },
    },
  ],
  [
    "shouldStopAfterTurn is not asked when the abort came just after prepareNextTurn",
    {
      hooks: { prepareNextTurn: [act("none")], shouldStopAfterTurn: [act("none")] },
      abort: { at: "inside", where: "prepareNextTurn", microtasks: 1 },
    },
  ],
];

it.each(found)("%s", async (_name, scenario) => {
  const played = await play(sketch(scenario));
  checkAll(played);
  expect(played.world.violations).toEqual([]);
});

// SPEC 4.3, 7.1, 14.3
describe("a run that is rejected before any event", () => {
  const assistant = { role: "assistant", content: [], stopReason: "stop" } as unknown as AgentMessage;
  const rows: [string, string, (context: AgentContext, signal: AbortSignal) => Promise<unknown>][] = [
    [
      "continue on an empty context",
      "empty_context",
      (context, signal) => runAgentLoopContinue(context, { model }, () => {}, signal, scriptedModel([])),
    ],
    [
      "continue after an answer",
      "cannot_continue_from_assistant",
      (context, signal) => runAgentLoopContinue({ ...context, messages: [assistant] }, { model }, () => {}, signal, scriptedModel([])),
    ],
    ["no prompts", "no_prompts", (context, signal) => runAgentLoop([], context, { model }, () => {}, signal, scriptedModel([]))],
  ];
  it.each(rows)("leaves no listener and no timer: %s", async (_name, code, start) => {
    const live = new AbortController();
    for (const signal of [live.signal, AbortSignal.abort()]) {
      const error = await start({ systemPrompt: "", messages: [] }, signal).catch((reason: unknown) => reason);
      expect(TurnLoopError.is(error) && error.code).toBe(code);
    }
    expect(getEventListeners(live.signal, "abort")).toHaveLength(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
