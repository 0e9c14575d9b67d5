import fc from "fast-check";
import { type AgentMessage, type AgentTool, userMessage } from "turnloop";
import type { Step } from "turnloop/durable";
import type { Block, ScriptedAnswer } from "turnloop/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { type Entry, MemoryJournal, play, script, useClock, workTool } from "../adapters/durable-helpers.js";
import { counter, runsOf, timeoutOf } from "./runs.js";

beforeEach(useClock); // vitest calls what it returns

const RUNS = runsOf("durable", "TURNLOOP_DURABLE_RUNS");
const played = counter("durable");

/** Where a process is lost: at the n-th step it runs itself, before the work, or after it and before the record. */
interface Crash {
  at: number;
  when: "before" | "unrecorded";
}

interface Scenario {
  answers: ScriptedAnswer[];
  limit: number;
  sequential: boolean;
  steering: number[];
  crashes: Crash[];
}

const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ text: fc.string({ unit: "binary", maxLength: 20 }) }),
  fc.record({
    toolCall: fc.constantFrom("echo", "fails", "nobody"),
    args: fc.record({ ticks: fc.nat(3), note: fc.string({ unit: "binary", maxLength: 5 }) }),
  }),
);
const answer: fc.Arbitrary<ScriptedAnswer> = fc.oneof(
  { weight: 6, arbitrary: fc.array(block, { maxLength: 5 }) },
  { weight: 1, arbitrary: fc.record({ content: fc.array(block, { maxLength: 3 }), stopReason: fc.constantFrom("length", "odd") }) },
  {
    weight: 1,
    arbitrary: fc.record({
      content: fc.array(block, { maxLength: 3 }),
      fault: fc.record({ kind: fc.constantFrom("throw", "end", "restart", "reject"), afterEvents: fc.nat(5) }),
    }),
  },
);
const scenarios: fc.Arbitrary<Scenario> = fc.record({
  answers: fc.array(answer, { minLength: 1, maxLength: 3 }),
  limit: fc.constantFrom(1, 2, 9),
  sequential: fc.boolean(),
  steering: fc.array(fc.nat(2), { maxLength: 4 }),
  crashes: fc.array(fc.record({ at: fc.nat(4), when: fc.constantFrom<Crash["when"]>("before", "unrecorded") }), { maxLength: 4 }),
});

interface Life {
  messages: AgentMessage[] | undefined;
  entries: Entry[];
  /** The steps whose work was entered, and the key each tool was given. */
  entered: string[];
  keys: string[];
}

/** One process: all it knows comes from the scenario and the journal. */
async function live({ answers, limit, sequential, steering }: Scenario, before: readonly Entry[], crash?: Crash): Promise<Life> {
  const journal = new MemoryJournal(before);
  const life: Life = { messages: undefined, entries: [...before], entered: [], keys: [] };
  let lost = (): void => {};
  const gone = new Promise<"gone">((resolve) => {
    lost = () => resolve("gone");
  });
  let isGone = false;
  const never = (): Promise<never> => {
    isGone = true;
    lost();
    return new Promise(() => {});
  };
  const step: Step = async (name, fn, info) => {
    if (isGone) return never();
    const own = async (attempt?: { signal?: AbortSignal }): ReturnType<typeof fn> => {
      const isLast = crash !== undefined && life.entered.length === crash.at;
      if (isGone || (isLast && crash.when === "before")) return never();
      life.entered.push(name);
      const value = await fn(attempt);
      return isGone || isLast ? never() : value;
    };
    const value = await journal.step(name, own, info);
    if (!isGone) life.entries = [...journal.entries];
    return value;
  };
  const tool = (name: string, work: AgentTool["execute"]): AgentTool =>
    workTool(name, (...given) => {
      life.keys.push(String(given[4].idempotencyKey));
      return work(...given);
    });
  const echo = tool("echo", (_id, params) => ({ content: `echo ${JSON.stringify(params)}`, details: params }) as never);
  const fails = tool("fails", () => {
    throw new Error("it fails");
  });
  const waiting = [...steering];
  const steer = (): AgentMessage[] =>
    Array.from({ length: waiting.shift() ?? 0 }, (_, i) => userMessage(`also ${waiting.length}/${i}`, { timestamp: 2 }));
  const playing = play(step, {
    streamFn: script([...answers, ...steering.map(() => "And that."), "Done.", "Done."]),
    tools: [echo, fails],
    config: { maxParallelToolCalls: limit, toolExecution: sequential ? "sequential" : "parallel", getSteeringMessages: steer },
  });
  const ended = await Promise.race([playing, gone]);
  if (ended !== "gone") life.messages = ended.messages;
  return life;
}

// SPEC 16.2, 16.3, 16.4
describe("a durable run whose processes are lost", () => {
  it(`ends as an undisturbed one, and nothing that is recorded runs again (${RUNS} runs)`, { timeout: timeoutOf(RUNS) }, async () => {
    let lost = 0;
    const check = async (scenario: Scenario): Promise<void> => {
      played();
      const undisturbed = await live(scenario, []);
      let entries: Entry[] = [];
      for (const crash of [...scenario.crashes, undefined]) {
        const recorded = entries.map(({ name }) => name);
        const life = await live(scenario, entries, crash);
        expect(life.entered.filter((name) => recorded.includes(name))).toEqual([]);
        expect(new Set(life.entered).size).toBe(life.entered.length);
        const tools = life.entered.filter((name) => name.includes("/tool:"));
        expect(tools).toEqual(expect.arrayContaining(life.keys));
        entries = life.entries;
        if (life.messages) {
          expect(life.keys).toHaveLength(tools.length);
          expect(life.messages).toEqual(undisturbed.messages);
          expect([...entries].sort(byName)).toEqual([...undisturbed.entries].sort(byName));
        } else lost++;
        expect(life.messages !== undefined || crash !== undefined).toBe(true);
      }
    };
    await fc.assert(fc.asyncProperty(scenarios, check), { numRuns: RUNS });
    expect(lost).toBeGreaterThan(RUNS / 4);
  });
});

function byName(a: Entry, b: Entry): number {
  return a.name < b.name ? -1 : 1;
}
