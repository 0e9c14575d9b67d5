import type { AgentEvent } from "turnloop";
import { assertEventSequence } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { makeTool, run } from "./helpers.js";
import { approve, cut, deny, resumed } from "./resume-helpers.js";

const call = (id: string) => ({ toolCall: "t", id });

async function suspendedRun(): Promise<AgentEvent[]> {
  const { events } = await run([[call("a"), call("b"), call("c")]], {
    tools: [makeTool("t", () => "ran")],
    config: { beforeToolCall: ({ toolCall }) => ({ suspend: toolCall.id === "b" }) },
  });
  return events;
}

async function resumedRun(): Promise<AgentEvent[]> {
  return (await resumed(cut(["a", "b", "c"], ["a"]), [approve("b"), deny("c")])).events;
}

/** The events with the last one changed. */
function ending(events: AgentEvent[], change: object): AgentEvent[] {
  return [...events.slice(0, -1), { ...(events.at(-1) as AgentEvent), ...change } as AgentEvent];
}

// SPEC 13.2, 4.6, 15.2, 15.3
describe("assertEventSequence", () => {
  it.each([
    ["suspended", suspendedRun, false],
    ["resumed", resumedRun, true],
  ])("of a %s run sees every event that is missing or comes twice", async (_name, make, isResumed) => {
    const valid = await make();
    assertEventSequence(JSON.parse(JSON.stringify(valid)), { resumed: isResumed });
    valid.forEach((event, i) => {
      if (event.type === "message_update") return;
      const without = valid.filter((_other, k) => k !== i);
      const twice = valid.flatMap((other, k) => (k === i ? [other, other] : [other]));
      for (const damaged of [without, twice])
        expect(() => assertEventSequence(damaged, { resumed: isResumed }), `${i} ${event.type}`).toThrow(/^Event \d+/);
    });
  });

  it("does not take a resumed run for a whole one, nor the other way round", async () => {
    const [suspended, again] = [await suspendedRun(), await resumedRun()];
    expect(() => assertEventSequence(again)).toThrow("before the turn's answer has ended");
    expect(() => assertEventSequence(suspended, { resumed: true })).toThrow("no assistant message here");
  });

  it("wants the calls that wait to be those that have their start only, and a run that says so", async () => {
    const events = await suspendedRun();
    const pendingOf = (id: string) => [{ toolCall: { type: "toolCall", id, name: "t", arguments: {} }, args: {} }];
    for (const [change, text] of [
      [{ pending: undefined }, "tool_execution_end of call b"],
      [{ pending: [] }, "tool_execution_end of call b"],
      [{ outcome: "completed" }, "agent_end with pending calls if suspended"],
      [{ pending: pendingOf("a") }, "no end and no result of the suspended call a"],
      [{ pending: pendingOf("x") }, "tool_execution_start of the suspended call x"],
    ] as const)
      expect(() => assertEventSequence(ending(events, change)), text).toThrow(text);
  });

  it("lets calls of a run that failed have their start only, but no more than that", async () => {
    const events = ending(await suspendedRun(), { outcome: "error", error: { message: "x" }, pending: undefined });
    expect(() => assertEventSequence(events)).not.toThrow();
    const isEndOf = (event: AgentEvent, id: string): boolean => event.type === "tool_execution_end" && event.toolCallId === id;
    expect(() => assertEventSequence(events.filter((event) => !isEndOf(event, "a")))).toThrow("the result of call a after its");
    // one after the other, what is behind the interrupted call is not begun
    const isOf = (event: AgentEvent, ...ids: string[]): boolean => {
      const { toolCallId, message } = event as { toolCallId?: string; message?: { toolCallId?: string } };
      return ids.includes(toolCallId ?? message?.toolCallId ?? "");
    };
    const cutOff = (...ids: string[]): AgentEvent[] =>
      events
        .filter((event) => !isOf(event, ...ids))
        .map((event) => {
          const keep = <T extends { toolCallId?: string }>(results: T[]): T[] =>
            results.filter(({ toolCallId }) => !ids.includes(toolCallId ?? ""));
          if (event.type === "turn_end") return { ...event, toolResults: keep(event.toolResults) };
          return event.type === "agent_end" ? { ...event, messages: keep(event.messages as { toolCallId?: string }[]) as never } : event;
        });
    expect(() => assertEventSequence(cutOff("c"))).not.toThrow();
    expect(() => assertEventSequence(cutOff("a"))).toThrow("tool_execution_start of call a");
  });
});
