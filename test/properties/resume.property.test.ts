import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { type AgentMessage, type AssistantMessage, type Message, pairToolCalls, type ToolCall, type ToolResultMessage } from "turnloop";
import { assertEventSequence } from "turnloop/testing";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { alias } from "../../vitest.config.js";
import { type Disturbance, nextStep, type Plan, type PlannedCall, playSegment, type Segment } from "./approvals.js";
import { counter, runsOf } from "./runs.js";

/** Of each of two tests. */
const RUNS = Math.ceil(runsOf("resume", "TURNLOOP_RESUME_RUNS") / 2);
const played = counter("resume");
/** Repeats a failure: the seed that it printed. */
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;

const often = (n: number) => fc.nat(n).map((value) => value === 0);
const calls = (decision: fc.Arbitrary<PlannedCall["decision"]>): fc.Arbitrary<PlannedCall> =>
  fc.record({ suspends: fc.boolean(), decision, throws: often(5), sequential: often(9), takes: fc.nat(6) });
const plans = (decision: fc.Arbitrary<PlannedCall["decision"]>): fc.Arbitrary<Plan> =>
  fc.record({
    turns: fc.array(fc.array(calls(decision), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
    via: fc.constantFrom("core", "agent"),
    toolExecution: fc.constantFrom("parallel", "parallel", "sequential"),
    maxParallelToolCalls: fc.constantFrom(1, 2, 9),
  });
/** One for each process; most are left alone. */
const disturbances = (...ways: Disturbance["by"][]): fc.Arbitrary<(Disturbance | null)[]> =>
  fc.array(fc.option(fc.record({ at: fc.nat(40), by: fc.constantFrom(...ways) })), { maxLength: 6 });

type Play = (plan: Plan, transcript: AgentMessage[], disturbance: Disturbance | undefined) => Promise<Segment> | Segment;

const reached = { suspended: 0, resumed: 0, crashed: 0, aborted: 0 };

/** From process to process, with nothing but the transcript's JSON in between. Gives the transcript and what is wrong. */
async function live(
  plan: Plan,
  disturbed: readonly (Disturbance | null)[],
  play: Play,
): Promise<{ transcript: AgentMessage[]; wrong: string[] }> {
  const wrong: string[] = [];
  let transcript: AgentMessage[] = [];
  for (let process = 0; nextStep(plan, transcript); process++) {
    if (process > 30) return { transcript, wrong: ["it never ends"] };
    const recorded = answeredCalls(transcript);
    const segment = await play(plan, transcript, disturbed[process] ?? undefined);
    const again = segment.executed.filter((key) => recorded.has(key));
    if (again.length > 0) wrong.push(`calls run again though their result is recorded: ${again}`);
    if (new Set(segment.executed).size < segment.executed.length) wrong.push(`a call runs twice in one process: ${segment.executed}`);
    if (segment.events.length > 0) assertEventSequence(segment.events, { resumed: segment.resumed });
    reached.resumed += Number(segment.resumed);
    if (segment.outcome === undefined) reached.crashed++;
    if (segment.outcome === "aborted" || segment.outcome === "suspended") reached[segment.outcome]++;
    transcript = JSON.parse(JSON.stringify(segment.transcript));
  }
  const paired = pairToolCalls(transcript as Message[]);
  if (paired.length !== transcript.length) wrong.push("the transcript lacks a result, or has one too many");
  return { transcript: paired, wrong };
}

/** The calls that have their result: `<turn>/<index>`. */
function answeredCalls(transcript: readonly AgentMessage[]): Set<string> {
  const answered = new Set<string>();
  let open: ToolCall[] = [];
  for (const message of transcript) {
    if (message.role === "assistant") open = (message as AssistantMessage).content.filter((block) => block.type === "toolCall");
    const call = open.find(({ id }) => message.role === "toolResult" && (message as ToolResultMessage).toolCallId === id);
    if (call) answered.add(`${call.arguments.turn}/${call.arguments.index}`);
  }
  return answered;
}

const undisturbed = (plan: Plan): Plan => ({
  ...plan,
  turns: plan.turns.map((turn) => turn.map((call) => ({ ...call, suspends: false }))),
});

async function holds<T>(arbitrary: fc.Arbitrary<T>, check: (value: T) => Promise<string[]>): Promise<void> {
  const property = fc.asyncProperty(arbitrary, async (value) => {
    played();
    return (await check(value)).length === 0;
  });
  const { failed, seed, counterexample } = await fc.check(property, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  if (!failed) return;
  const [value] = counterexample as [T];
  const wrong = await check(value).catch((error: unknown) => [String((error as Error).stack)]);
  expect.fail(`TURNLOOP_PROPERTY_SEED=${seed}\n${wrong.join("\n")}\n${JSON.stringify(value)}`);
}

// SPEC 15.2, 15.3, 15.4
describe("from process to process", () => {
  it(`what is approved ends as if nobody had been asked, also over crashes (${RUNS} runs)`, { timeout: 30_000 + RUNS * 30 }, async () => {
    await holds(fc.tuple(plans(fc.constant("approve")), disturbances("crash")), async ([plan, disturbed]) => {
      const { transcript, wrong } = await live(plan, disturbed, playSegment);
      const expected = await playSegment(undisturbed(plan), [], undefined);
      if (isDeepStrictEqual(transcript, JSON.parse(JSON.stringify(expected.transcript)))) return wrong;
      return [...wrong, `the transcript is ${JSON.stringify(transcript)}`, `expected ${JSON.stringify(expected.transcript)}`];
    });
  });

  it(`every call has one result and no recorded one runs again, whatever is decided, aborted and lost (${RUNS} runs)`, {
    timeout: 30_000 + RUNS * 30,
  }, async () => {
    const decisions = fc.constantFrom<PlannedCall["decision"]>("approve", "edit", "deny", "result");
    await holds(fc.tuple(plans(decisions), disturbances("crash", "abort")), async ([plan, disturbed]) => {
      const { transcript, wrong } = await live(plan, disturbed, playSegment);
      const answered = answeredCalls(transcript).size;
      const asked = plan.turns.flat().length;
      return answered === asked ? wrong : [...wrong, `${answered} of ${asked} calls have a result`];
    });
    for (const [what, times] of Object.entries(reached)) expect(times, what).toBeGreaterThan(RUNS / 20);
  });
});

// SPEC 15.2, 15.3: the same with a new process for each step
describe("in processes of their own", () => {
  let folder = "";
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "turnloop-"));
    await build({
      configFile: false,
      logLevel: "silent",
      resolve: { alias },
      ssr: { noExternal: true },
      build: { ssr: join(import.meta.dirname, "approvals-process.ts"), outDir: folder, target: "node20", minify: false },
    });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const inProcess: Play = (plan, transcript, disturbance) => {
    const input = JSON.stringify({ plan, transcript, disturbance });
    const { stdout, stderr, status } = spawnSync(process.execPath, [join(folder, "approvals-process.js")], { input, encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    return { ...JSON.parse(stdout), events: [] };
  };
  const call = (suspends: boolean, more: Partial<PlannedCall> = {}): PlannedCall => ({
    suspends,
    decision: "approve",
    throws: false,
    sequential: false,
    takes: 2,
    ...more,
  });
  const plan = (via: Plan["via"], ...turns: PlannedCall[][]): Plan => ({ turns, via, toolExecution: "parallel", maxParallelToolCalls: 9 });

  it.each<[string, Plan, (Disturbance | null)[]]>([
    ["approved in the next process", plan("core", [call(false), call(true), call(false)]), []],
    ["asked in two turns, through an Agent", plan("agent", [call(true)], [call(true), call(false)]), []],
    [
      "gone while tools run, and again while the approved ones do",
      plan("core", [call(false), call(true)], [call(true)]),
      [
        { at: 12, by: "crash" },
        { at: 2, by: "crash" },
      ],
    ],
  ])("%s", async (_name, planned, disturbed) => {
    const { transcript, wrong } = await live(planned, disturbed, inProcess);
    expect(wrong).toEqual([]);
    expect(transcript).toEqual((await playSegment(undisturbed(planned), [], undefined)).transcript);
  });
});
