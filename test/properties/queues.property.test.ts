import fc from "fast-check";
import { Agent, type AgentMessage, type AgentRunResult, type QueueMode, userMessage } from "turnloop";
import { assertEventSequence, recordEvents, type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { makeTool, model, textOf } from "../helpers.js";
import { counter, runsOf, timeoutOf } from "./runs.js";

const RUNS = runsOf("queues", "TURNLOOP_QUEUE_RUNS");
const played = counter("queues");
/** Repeats a failure: the seed that it printed. */
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** What the host does at some moment: at a time of the clock, or inside of a listener at the n-th event. */
type Move =
  | { do: "steer" | "followUp"; role: "user" | "note" }
  | { do: "abort" | "clear" | "reset" }
  | { do: "mode"; queue: QueueName; mode: QueueMode }
  | { do: "remove"; queue: QueueName; index: number }
  | { do: "prompt" | "continue" | "retry"; aborted: boolean }
  | { do: "wait"; ms: number }
  | { do: "step"; microtasks: number };
type QueueName = "steering" | "followUp";

interface Plan {
  modes: [QueueMode, QueueMode];
  moves: Move[];
  /** Moves by the number of the event at which they are made, and how: inside of `on`, `subscribe` or `queue_change`. */
  inside: { at: number; way: "on" | "subscribe" | "queue_change"; move: Move }[];
  answers: number[];
  /** Which of its turns a run is stopped after, which event numbers a listener throws or is slow at. */
  stops: number[];
  throws: number[];
  slow: number[];
  /** What the host's own poll does, call by call. */
  polls: ("nothing" | "late" | "throws" | "null")[];
}

const queueNames = fc.constantFrom<QueueName>("steering", "followUp");
const modes = fc.constantFrom<QueueMode>("one-at-a-time", "all");
const moves: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom("steer", "followUp"),
      role: fc.constantFrom("user", "user", "user", "user", "user", "note"),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom("prompt", "prompt", "continue", "retry"), aborted: fc.nat(9).map((n) => n === 0) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("wait"), ms: fc.constantFrom(0, 1, 3, 7, 30) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("step"), microtasks: fc.nat(40) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("abort") }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("remove"), queue: queueNames, index: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("mode"), queue: queueNames, mode: modes }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("clear", "reset") }) },
) as fc.Arbitrary<Move>;
const marks = fc.array(fc.nat(60), { maxLength: 4 });
const plans: fc.Arbitrary<Plan> = fc.record({
  modes: fc.tuple(modes, modes),
  moves: fc.array(moves, { minLength: 4, maxLength: 24 }),
  inside: fc.array(
    fc.record({
      at: fc.nat(60),
      way: fc.constantFrom("on", "subscribe", "queue_change"),
      move: moves,
    }) as fc.Arbitrary<Plan["inside"][number]>,
    { maxLength: 6 },
  ),
  answers: fc.array(fc.nat(9), { minLength: 12, maxLength: 12 }),
  stops: fc.array(fc.nat(8), { maxLength: 3 }),
  throws: marks,
  slow: marks,
  polls: fc.array(fc.constantFrom("nothing", "nothing", "late", "throws", "null"), { maxLength: 6 }),
});

const ANSWERS: ScriptedAnswer[] = [
  "fine",
  [{ toolCall: "work" }],
  [{ toolCall: "work" }, { toolCall: "slow" }],
  { content: ["slow answer"], delayMs: 5 },
  { errorMessage: "overloaded" },
  { content: ["half"], fault: { kind: "throw", afterEvents: 2 } },
  { content: [], stopReason: "stop" },
  [{ toolCall: "nowhere" }],
  { content: ["x"], fault: { kind: "stall", afterEvents: 2 } },
  [{ text: "and" }, { toolCall: "slow" }],
];

/** How often what the property is about came up, so that it cannot hold for want of anything to hold for. */
const reached = { delivered: 0, waiting: 0, completed: 0, stopped: 0, aborted: 0, error: 0, terminated: 0, suspended: 0 };

/** Plays the plan. Gives what is wrong with what became of the messages. */
async function play(plan: Plan): Promise<string[]> {
  const wrong: string[] = [];
  let asked = 0;
  let turns = 0;
  let polled = 0;
  let events = 0;
  let made = 0;
  let calm = false;
  const pollHost = async (): Promise<AgentMessage[]> => {
    const kind = calm ? "nothing" : plan.polls[polled++ % (plan.polls.length || 1)];
    if (kind === "late") await new Promise((resolve) => setTimeout(resolve, 4));
    if (kind === "throws") throw new Error("poll");
    return kind === "null" ? (undefined as never) : [];
  };
  const agent = new Agent({
    model,
    streamFn: scriptedModel(
      Array.from(
        { length: 400 },
        (): ScriptedAnswer => () => (calm ? "calm" : (ANSWERS[plan.answers[asked++ % 12] as number] as ScriptedAnswer)),
      ),
    ),
    tools: [makeTool("work", () => "ok"), makeTool("slow", () => new Promise((resolve) => setTimeout(() => resolve("late"), 6)))],
    steeringMode: plan.modes[0],
    followUpMode: plan.modes[1],
    shouldStopAfterTurn: () => !calm && (plan.stops.includes(turns++ % 12) || turns % 30 === 29),
    getSteeringMessages: pollHost,
    getFollowUpMessages: pollHost,
    onListenerError: () => {},
  });
  const queues = { steering: agent.steeringQueue, followUp: agent.followUpQueue };
  /** What was queued and not taken back, in order; the text says which. */
  const sent: Record<QueueName, AgentMessage[]> = { steering: [], followUp: [] };
  const runs: Promise<unknown>[] = [];
  const recorder = recordEvents();

  const act = (move: Move): void => {
    if (move.do === "steer" || move.do === "followUp") {
      const text = `m${made++}`;
      const message = move.role === "user" ? userMessage(text) : ({ role: "note", content: text, timestamp: 0 } as never as AgentMessage);
      sent[move.do === "steer" ? "steering" : "followUp"].push(message);
      agent[move.do](message);
    } else if (move.do === "abort") agent.abort("enough");
    else if (move.do === "mode") queues[move.queue].mode = move.mode;
    else if (move.do === "remove") {
      const message = queues[move.queue].peek()[move.index];
      if (message && queues[move.queue].remove(message)) sent[move.queue].splice(sent[move.queue].indexOf(message), 1);
    } else if (move.do === "reset" && !agent.isRunning) {
      // what was delivered goes with what waits, but not what listeners queue meanwhile
      agent.reset();
      for (const name of ["steering", "followUp"] as const) {
        const left = [...queues[name].peek().map(textOf), ...agent.messages.map(textOf)];
        sent[name] = sent[name].filter((message) => left.includes(textOf(message)));
      }
    } else if (move.do === "clear") {
      for (const name of ["steering", "followUp"] as const) {
        const waiting = queues[name].peek();
        sent[name] = sent[name].filter((message) => !waiting.includes(message));
        queues[name].clear();
      }
    } else if (move.do === "prompt" || move.do === "continue" || move.do === "retry") {
      const signal = move.aborted ? { signal: AbortSignal.abort() } : {};
      const run: Promise<AgentRunResult> = move.do === "prompt" ? agent.prompt("go", signal) : agent[move.do](signal);
      const known = ["busy", "empty_context", "cannot_continue_from_assistant"];
      runs.push(run.catch((error) => void (known.includes(error.code) || wrong.push(`${move.do} rejected: ${error}`))));
    }
  };
  const at = (way: Plan["inside"][number]["way"]): void => {
    for (const entry of calm ? [] : plan.inside) if (entry.way === way && entry.at === events) act(entry.move);
  };
  let inQueueChange = false;
  agent.on("queue_change", ({ steering, followUp }) => {
    const now = [queues.steering.peek(), queues.followUp.peek()].map((list) => list.map(textOf).join());
    if (now.join("|") !== [steering, followUp].map((list) => list.map(textOf).join()).join("|"))
      wrong.push("queue_change tells of another state");
    if (inQueueChange) return;
    inQueueChange = true;
    at("queue_change");
    inQueueChange = false;
    if (plan.throws.includes(events)) throw new Error("listener");
  });
  agent.on("message_end", () => {
    at("on");
    if (plan.throws.includes(events)) throw new Error("listener");
  });
  agent.subscribe((event) => {
    recorder(event);
    events++;
    at("subscribe");
    if (plan.throws.includes(events)) throw new Error("listener");
    return plan.slow.includes(events) ? new Promise((resolve) => setTimeout(resolve, 2)) : undefined;
  });

  for (const move of plan.moves) {
    if (move.do === "wait") await vi.advanceTimersByTimeAsync(move.ms);
    else if (move.do === "step") for (let i = 0; i < move.microtasks; i++) await Promise.resolve();
    else act(move);
  }
  // no answer is left to stall, so every run comes to an end of its own
  for (let i = 0; i < 50 && agent.isRunning; i++) {
    await vi.advanceTimersByTimeAsync(1000);
    agent.abort("the plan is over");
  }
  await vi.advanceTimersByTimeAsync(1000);
  if (agent.isRunning) return ["a run never ended"];
  await Promise.all(runs);
  if (vi.getTimerCount() > 0) wrong.push(`${vi.getTimerCount()} timers are left`);

  const checkMessages = (when: string): void => {
    const delivered = agent.messages.map(textOf);
    for (const name of ["steering", "followUp"] as const) {
      const texts = sent[name].map(textOf);
      const arrived = delivered.filter((text) => texts.includes(text));
      const waiting = queues[name].peek().map(textOf);
      if ([...arrived, ...waiting].join() !== texts.join())
        wrong.push(`${when}, ${name}: queued ${texts}; delivered ${arrived}; waiting ${waiting}; transcript ${delivered}`);
    }
    const known = [...sent.steering, ...sent.followUp].map(textOf);
    const ghosts = delivered.filter((text) => /^m\d+$/.test(text) && !known.includes(text));
    if (ghosts.length > 0) wrong.push(`${when}: delivered though taken back: ${ghosts}`);
    reached.delivered += known.length - queues.steering.size - queues.followUp.size;
    reached.waiting += queues.steering.size + queues.followUp.size;
  };
  checkMessages("after the plan");
  // what waits goes out with runs that nothing disturbs
  calm = true;
  for (let i = 0; i < 60 && (i === 0 || queues.steering.size + queues.followUp.size > 0); i++) {
    const last = agent.prompt("at last"); // one is not enough: a note alone makes no request (SPEC 6.1)
    await vi.advanceTimersByTimeAsync(1000);
    await last;
  }
  checkMessages("at last");
  if (queues.steering.size + queues.followUp.size > 0) wrong.push("messages are stuck in their queue");
  let from = 0;
  recorder.events.forEach((event, index) => {
    if (event.type !== "agent_end") return;
    reached[event.outcome]++;
    assertEventSequence(recorder.events.slice(from, index + 1));
    from = index + 1;
  });
  return wrong;
}

// SPEC 8.3, 7.2: every queued message is delivered exactly once and in order, or still waits, or was taken back by the host
it(`no queued message is ever lost or delivered twice (${RUNS} runs)`, { timeout: timeoutOf(RUNS) }, async () => {
  const holds = fc.asyncProperty(plans, async (plan) => {
    played();
    return (await play(plan)).length === 0;
  });
  const { failed, seed, counterexample } = await fc.check(holds, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  if (!failed) {
    for (const what of ["delivered", "waiting", "completed", "stopped", "aborted", "error"] as const)
      expect(reached[what], what).toBeGreaterThan(RUNS / 50);
    return;
  }
  const [plan] = counterexample as [Plan];
  const wrong = await play(plan).catch((error: unknown) => [String(error)]);
  expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}\n${wrong.join("\n")}\n${JSON.stringify(plan)}`);
});

it.each<[string, unknown]>([
  ["something that is no message", [{ content: 5 }]],
  ["a message that cannot be read", [{ role: "user", content: {} }]],
  ["a text in place of a list", "hello"],
  ["a number in place of a list", 5],
])("%s from the host's own poll takes nothing out of the queues with it", async (_name, bad) => {
  // SPEC 8.3, 6.3
  for (const [hook, queue] of [
    ["getSteeringMessages", "steering"],
    ["getFollowUpMessages", "followUp"],
  ] as const) {
    const agent = new Agent({ model, streamFn: scriptedModel(["x", "y"]), [hook]: () => bad as never });
    agent.once("turn_end", () => (queue === "steering" ? agent.steer("kept") : agent.followUp("kept")));
    expect((await agent.prompt("go")).outcome).toBe("error");
    expect([agent.messages.map(textOf), agent[`${queue}Queue`].peek().map(textOf)], hook).toEqual([["go", "x"], ["kept"]]);
  }
});

it("a message that a run could not take in is refused when it is queued, not lost later", async () => {
  // SPEC 8.3, 14.4
  for (const odd of [{ role: "user", content: {} }, { role: "user", content: [null] }, { role: "user", content: 5 }, { role: "" }]) {
    const agent = new Agent({ model, streamFn: scriptedModel(["x", "y", "z"]), steeringMode: "all" });
    let refused = false;
    agent.once("turn_end", () => {
      try {
        agent.steer(odd as never);
      } catch {
        refused = true;
      }
      agent.steer("kept");
    });
    await agent.prompt("go");
    const all = [...agent.messages, ...agent.steeringQueue.peek()];
    expect(
      [all.filter((message) => textOf(message) === "kept").length, refused || all.some(({ role }, i) => i > 0 && role === odd.role)],
      JSON.stringify(odd),
    ).toEqual([1, true]);
  }
});
