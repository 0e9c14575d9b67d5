import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { type AgentMessage, type Message, pairToolCalls, type ToolResultMessage } from "turnloop";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type Disturbance,
  type Ended,
  Journal,
  type Plan,
  type PlannedCall,
  playPlain,
  playProcess,
  type Settling,
} from "./durable-host.js";
import { holding } from "./holding.js";
import { counter, runsOf, timeoutOf } from "./runs.js";

/** Of each of two tests. */
const RUNS = Math.ceil(runsOf("lives", "TURNLOOP_LIVES_RUNS") / 2);
const holds = holding(RUNS, counter("durable lives"));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const rarely = <T>(n: number, value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { freq: n });
const calls = (...does: PlannedCall["does"][]): fc.Arbitrary<PlannedCall> =>
  fc
    .record({
      does: fc.constantFrom(...does),
      takes: fc.nat(15),
      hook: fc.constantFrom("nothing", "nothing", "nothing", "blocks", "edits", "suspends"),
    })
    .map((call) => ({ ...call, takes: 2 * call.takes + Number(call.does === "aborts") })); // nothing ends in the instant of an abort
const plans = (abort: boolean, call: fc.Arbitrary<PlannedCall>): fc.Arbitrary<Plan> =>
  fc.record({
    turns: fc.array(fc.array(call, { minLength: 1, maxLength: 4 }), { maxLength: 3 }),
    ending: fc.constantFrom("text", "text", "error", "throw", "length"),
    abortsAnswer: abort ? rarely(1, fc.nat(6)) : fc.constant(null),
    abortsAfterTurn: abort ? rarely(1, fc.nat(2)) : fc.constant(null),
    steering: fc.uniqueArray(fc.nat(4), { maxLength: 2 }),
    toolExecution: fc.constantFrom("parallel", "parallel", "sequential"),
    maxParallelToolCalls: fc.constantFrom(1, 2, 9),
    remote: fc.boolean(),
  });
/** One for each process; some are left alone. */
const disturbances: fc.Arbitrary<(Disturbance | null)[]> = fc.array(
  rarely(4, fc.record({ step: fc.nat(5), when: fc.constantFrom("before", "during", "done", "recorded", "ended", "refused") })),
  { maxLength: 5 },
);

const reached = { gone: 0, failed: 0, aborted: 0, completed: 0, again: 0 };

interface Life {
  ended: Ended;
  journal: Journal;
  wrong: string[];
}

/** From process to process with nothing but the journal, to the end; then once more, from the whole journal. */
async function live(plan: Plan, disturbed: readonly (Disturbance | null)[], settling: Settling): Promise<Life> {
  const journal = new Journal();
  const wrong: string[] = [];
  let ended: Ended | undefined;
  for (let n = 0; !ended; n++) {
    const given = await playProcess(plan, journal, disturbed[n] ?? null, settling);
    const isInterrupted = given?.error?.includes("was not recorded");
    reached.gone += Number(!given);
    reached.failed += Number(isInterrupted ?? false);
    // only what is in the journal counts: the engine calls the conversation anew
    if (given && !isInterrupted) ended = given;
    if (n > disturbed.length) return { ended: given as Ended, journal, wrong: [`it does not end: ${given?.error}`] };
  }
  if (ended.outcome === "aborted" || ended.outcome === "completed") reached[ended.outcome]++;

  const asked = journal.processes.at(-1)?.asked;
  const replayed = await playProcess(plan, journal, null, settling);
  if (!isDeepStrictEqual(replayed, ended)) wrong.push(`the replay of all records ends with ${JSON.stringify(replayed)}`);
  const steps = journal.processes.at(-1)?.asked;
  if (!isDeepStrictEqual(steps, asked)) wrong.push(`the replay has the steps ${steps}, not ${asked}`);
  return { ended, journal, wrong: [...wrong, ...wrongExecutions(journal), ...lostRecords(journal, ended.messages)] };
}

/** A recorded step never runs again; an interrupted one does, under the key it had: the step's name. */
function wrongExecutions({ processes }: Journal): string[] {
  const wrong: string[] = [];
  const seen = new Set<string>();
  for (const { ran, keys, recordedBefore } of processes) {
    for (const name of [...ran, ...keys]) if (recordedBefore.includes(name)) wrong.push(`${name} runs again though it is recorded`);
    for (const list of [ran, keys]) if (new Set(list).size < list.length) wrong.push(`a step runs twice in one process: ${list}`);
    for (const key of keys) {
      if (!ran.includes(key)) wrong.push(`a tool is executed with the key ${key}, which is no step of its process: ${ran}`);
      reached.again += Number(seen.has(key));
      seen.add(key);
    }
  }
  return wrong;
}

/** Each recorded result is in the transcript, as it was recorded but for what afterToolCall adds. */
function lostRecords({ records }: Journal, messages: readonly AgentMessage[]): string[] {
  const wrong: string[] = [];
  const results = messages.filter(({ role }) => role === "toolResult") as ToolResultMessage[];
  for (const [name, json] of records) {
    if (!name.includes("/tool:")) continue;
    const { result } = JSON.parse(json) as { result: ToolResultMessage };
    const holds = ({ content }: ToolResultMessage): boolean => result.content.every((block, i) => isDeepStrictEqual(block, content[i]));
    if (!results.some(holds)) wrong.push(`the record of ${name} is not in the transcript: ${json}`);
  }
  const paired = pairToolCalls(messages as Message[]);
  if (paired.length !== messages.length) wrong.push("the transcript lacks a result, or has one too many");
  return wrong;
}

/** Steps that run again are recorded later. */
const untimed = (messages: readonly AgentMessage[]): AgentMessage[] => messages.map((message) => ({ ...message, timestamp: 0 }));

function compare(ended: Ended, expected: Ended): string[] {
  if (ended.outcome === expected.outcome && isDeepStrictEqual(untimed(ended.messages), untimed(expected.messages))) return [];
  return [
    `${ended.outcome} with ${JSON.stringify(ended.messages)}`,
    `expected ${expected.outcome} with ${JSON.stringify(expected.messages)}`,
  ];
}

const inOrder: Settling = () => 0;

/** `slowly`: time passes in between. */
function anyOrder(seed: number, slowly: boolean): Settling {
  let state = seed;
  return (waiting) => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    const pick = Math.floor((state / 2 ** 31) * (waiting + Number(slowly)));
    return pick < waiting ? pick : undefined;
  };
}

// SPEC 16.1 to 16.4, 15.2, 15.3
describe("a conversation whose process ends at any step", () => {
  it(`ends as if nothing had happened and no engine were there, whatever order records come back in (${RUNS} runs)`, {
    timeout: timeoutOf(RUNS),
  }, async () => {
    const scenario = fc.tuple(plans(false, calls("text", "text", "image", "throws", "deaf")), disturbances, fc.nat());
    await holds(scenario, async ([plan, disturbed, seed]) => {
      const { ended, wrong } = await live(plan, disturbed, anyOrder(seed, true));
      return [...wrong, ...compare(ended, await playPlain(plan))];
    });
  });

  it(`and so when its caller aborts it (${RUNS} runs)`, { timeout: timeoutOf(RUNS) }, async () => {
    const scenario = fc.tuple(plans(true, calls("text", "image", "throws", "deaf", "aborts")), disturbances, fc.nat());
    await holds(scenario, async ([plan, disturbed, seed]) => {
      const { ended, journal, wrong } = await live(plan, disturbed, inOrder);
      if (!plan.remote) {
        const shuffled = await playProcess(plan, journal, null, anyOrder(seed, false));
        if (shuffled?.outcome !== ended.outcome) wrong.push(`in another order its records end with ${JSON.stringify(shuffled)}`);
        wrong.push(...lostRecords(journal, shuffled?.messages ?? []), ...wrongExecutions(journal));
      }
      // what is recorded moves the abort among those that run again: where calls wait for others, where one alone was
      // interrupted, and where a worker hears of the caller's abort but not of a recorded one
      const waits = plan.toolExecution === "parallel" && plan.maxParallelToolCalls < 4;
      const isAlone = disturbed.some((disturbance) => disturbance?.when === "ended" || disturbance?.when === "refused");
      return waits || isAlone || plan.remote ? wrong : [...wrong, ...compare(ended, await playPlain(plan))];
    });
    for (const [what, times] of Object.entries(reached)) expect(times, what).toBeGreaterThan(RUNS / 20);
  });
});
