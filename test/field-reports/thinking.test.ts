/** Field reports V: the sign that it is working. SPEC 9.2, 9.3, 9.4, 9.6. */
import { type StreamFn, ThinkingCard, type ThinkingOptions, withThinkingCard } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { makeTool } from "../helpers.js";
import { advance, call, play, sleep, watchConditions } from "./conditions.js";

watchConditions();

/** A run whose wait is shown, with what was shown and what the tools did, in one list. */
function shown(script: ScriptedAnswer[], options: Parameters<typeof play>[1] = {}, thinking: ThinkingOptions = {}) {
  const log: string[] = [];
  const onProgress: ThinkingOptions["onProgress"] = ({ state, outcome }) => void log.push(outcome ? `${state} ${outcome}` : state);
  const streamFn: StreamFn = withThinkingCard(scriptedModel(script), { ...thinking, onProgress });
  return { log, playing: play(streamFn, options) };
}

describe("field reports V: the sign that it is working", () => {
  it("F95 complete and heartbeat without start, complete twice, start twice: never a throw, one complete for each start", async () => {
    const states: string[] = [];
    const card = new ThinkingCard({ onProgress: ({ state }) => void states.push(state) });
    card.complete();
    expect(card.heartbeat()).toBe(false);
    card.dispose();
    expect(states).toEqual([]);
    expect(card.start()).toBe(card.start());
    card.complete();
    card.complete();
    expect(card.heartbeat()).toBe(false);
    expect(states).toEqual(["start", "complete"]);
    await play(["so that there is a run"]);
  });

  it("F95 a tool that ends does not touch the card of the call that follows", async () => {
    const { log, playing } = shown([[call("a", "x")], { content: ["Hi"], delayMs: 40_000 }], { tools: [makeTool("x", () => "ran")] });
    await advance(40_000);
    await playing;
    expect(log).toEqual(["start", "complete delta", "start", "heartbeat", "complete delta"]);
  });

  const slowTool = makeTool("x", async () => {
    await sleep(90_000);
    return "ran";
  });

  it("F96 an answer of a tool call only ends the wait; no heartbeat while the tool runs 90 s", async () => {
    const { log, playing } = shown([[call("a", "x")], "Hi"], { tools: [slowTool] });
    await advance(89_999);
    expect(log).toEqual(["start", "complete delta"]);
    await advance(1);
    await playing;
    expect(log).toEqual(["start", "complete delta", "start", "complete delta"]);
  });

  it("F96 a call without arguments, which has no delta at all, ends it too", async () => {
    const { log, playing } = shown([{ content: [{ toolCall: "x", rawArgs: "" }] }, "Hi"], { tools: [slowTool] });
    await advance(90_000);
    await playing;
    expect(log).toEqual(["start", "complete done", "start", "complete delta"]);
  });

  it("F96 no heartbeat while an approval is pending", async () => {
    const config = {
      beforeToolCall: async () => {
        await sleep(90_000);
        return { block: true };
      },
    };
    const { log, playing } = shown([[call("a", "x")], "Hi"], { tools: [slowTool], config });
    await advance(90_000);
    await playing;
    expect(log).toEqual(["start", "complete delta", "start", "complete delta"]);
  });

  it("F96 a run that ends without a word says so", async () => {
    for (const [script, last] of [
      [{ content: [] }, "complete done"],
      [{ fault: { kind: "end" } }, "complete error"],
      [{ errorMessage: "turn limit" }, "complete error"],
    ] as [ScriptedAnswer, string][]) {
      const { log, playing } = shown([script]);
      await playing;
      expect(log).toEqual(["start", last]);
    }
  });

  it.each(["LLM_HEARTBEAT_DISABLED", "DREW_LLM_HEARTBEAT_DISABLED"])("F96 %s: no timer at all", async (name) => {
    vi.stubEnv(name, "1");
    const timers = vi.spyOn(globalThis, "setInterval");
    const { log, playing } = shown([[call("a", "x")], "Hi"], { tools: [slowTool] });
    await advance(90_000);
    await playing;
    vi.unstubAllEnvs();
    expect(timers).not.toHaveBeenCalled();
    expect(log).toEqual(["start", "complete delta", "start", "complete delta"]);
  });
});
