import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Disturbance, type Plan, type PlannedCall, playSegment } from "./approvals.js";
import { holding } from "./holding.js";
import { answeredCalls, live, reached, undisturbed } from "./resume-life.js";
import { counter, runsOf, timeoutOf } from "./runs.js";

/** Of each of two tests. */
const RUNS = Math.ceil(runsOf("resume", "TURNLOOP_RESUME_RUNS") / 2);
const holds = holding(RUNS, counter("resume"));

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

// SPEC 15.2, 15.3, 15.4
describe("from process to process", () => {
  it(`what is approved ends as if nobody had been asked, also over crashes (${RUNS} runs)`, { timeout: timeoutOf(RUNS) }, async () => {
    await holds(fc.tuple(plans(fc.constant("approve")), disturbances("crash")), async ([plan, disturbed]) => {
      const { transcript, wrong } = await live(plan, disturbed, playSegment);
      const expected = await playSegment(undisturbed(plan), [], undefined);
      if (isDeepStrictEqual(transcript, JSON.parse(JSON.stringify(expected.transcript)))) return wrong;
      return [...wrong, `the transcript is ${JSON.stringify(transcript)}`, `expected ${JSON.stringify(expected.transcript)}`];
    });
  });

  it(`every call has one result and no recorded one runs again, whatever is decided, aborted and lost (${RUNS} runs)`, {
    timeout: timeoutOf(RUNS),
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
