/** Agent's option `thinking`. */
import { Agent, type AgentOptions, type ThinkingEvent, type ThinkingOptions } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { makeTool, model, outline } from "../helpers.js";
import { advance, sinkOf, watchTimers } from "./helpers.js";

watchTimers();

const x = makeTool("x", () => "ran");
const hanging: ScriptedAnswer = { content: ["Hi"], fault: { kind: "stall" } };

function agentOf(script: ScriptedAnswer[], options: Partial<AgentOptions> = {}) {
  const streamFn = scriptedModel(script);
  const agent = new Agent({ model, streamFn, tools: [x], ...options });
  const sink = sinkOf();
  agent.on("thinking", (event) => void sink.options.onProgress?.(event));
  return { agent, streamFn, heard: sink };
}

describe("thinking", () => {
  it("true: on hears each call's card", async () => {
    // SPEC 9.2, 8.4
    const { agent, heard } = agentOf([[{ toolCall: "x" }], { content: ["Hi"], delayMs: 31_000 }], { thinking: true });
    const running = agent.prompt("go");
    await advance(31_000);
    expect((await running).outcome).toBe("completed");
    expect(heard.lines()).toEqual([
      "1 start 0",
      "1 complete 0 delta",
      "2 start 0",
      "2 heartbeat 30000 Thinking... (30s)",
      "2 complete 31000 delta",
    ]);
  });

  it.each([undefined, false])("%s: nothing, and no timer", async (thinking) => {
    // SPEC 9.2
    const { agent, heard } = agentOf(["Hi"], { thinking });
    await agent.prompt("go");
    expect(heard.lines()).toEqual([]);
  });

  it("options: the sink and on hear the same events", async () => {
    // SPEC 9.2, 9.1
    const sink = sinkOf({ title: "Wait", name: "answer", heartbeatMs: 1000, maxHeartbeats: 1, showAfterMs: 300, createId: () => "card" });
    const { agent, heard } = agentOf([{ content: ["Hi"], delayMs: 5000 }], { thinking: sink.options });
    const running = agent.prompt("go");
    await advance(5000);
    await running;
    expect(sink.lines()).toEqual(["1 start 300", "1 heartbeat 1000 Wait (1s)", "1 complete 5000 delta"]);
    expect(heard.events).toEqual(sink.events);
    expect(heard.events[0]).toEqual({ state: "start", cardId: "card", name: "answer", title: "Wait", elapsedMs: 300 });
  });

  it("options that are an object of a class of the host's", async () => {
    // SPEC 9.2
    class Waiting implements ThinkingOptions {
      readonly #log: string[] = [];
      readonly heartbeatMs = 1000;
      get title(): string {
        return `Wait ${this.#log.length}`;
      }
      get log(): string[] {
        return this.#log;
      }
      onProgress({ state, title, elapsedMs }: ThinkingEvent): void {
        this.#log.push(`${state} ${title} ${elapsedMs}`);
        if (state === "start") throw new Error("no screen");
      }
      onError(error: unknown): void {
        this.#log.push(String(error));
      }
      now(): number {
        return 7 + this.#log.length;
      }
      createId(): string {
        return `id ${this.#log.length}`;
      }
    }
    const thinking = new Waiting();
    const { agent, heard } = agentOf(["Hi"], { thinking });
    await agent.prompt("go");
    expect(thinking.log).toEqual(["start Wait 0 0", "Error: no screen", "complete Wait 0 2"]);
    expect(heard.events.map(({ cardId }) => cardId)).toEqual(["id 0", "id 0"]);
  });

  it("a sink that is broken is heard of by its own onError; a complete that is sent twice is heard once", async () => {
    // SPEC 9.2, 9.5
    const errors: string[] = [];
    const listenerErrors: unknown[] = [];
    const thinking: ThinkingOptions = {
      onProgress: () => Promise.reject(new Error("closed")),
      onError: (_error, { state }) => void errors.push(state),
    };
    const { agent, heard } = agentOf(["Hi"], { thinking, onListenerError: (error) => void listenerErrors.push(error) });
    await agent.prompt("go");
    await advance(0);
    expect(heard.lines()).toEqual(["1 start 0", "1 complete 0 delta"]);
    expect([errors, listenerErrors]).toEqual([["start", "complete", "complete"], []]);
  });

  it.each<[string, () => unknown]>([
    ["throws", () => expect.fail("no screen")],
    ["rejects", () => Promise.reject(new Error("no screen"))],
  ])("a listener that %s is reported to onListenerError, once for each event, and harms nobody", async (_name, listener) => {
    // SPEC 8.4, 9.5
    const reported: unknown[] = [];
    const sink = sinkOf({ onError: () => expect.fail("not the sink's failure") });
    const streamFn = scriptedModel(["Hi"]);
    const onListenerError: AgentOptions["onListenerError"] = (error, event) => void reported.push([(error as Error).message, event]);
    const agent = new Agent({ model, streamFn, thinking: sink.options, onListenerError });
    agent.on("thinking", listener as () => void);
    const heard: ThinkingEvent[] = [];
    agent.on("thinking", (event) => void heard.push(event));
    expect((await agent.prompt("go")).outcome).toBe("completed");
    await advance(0);
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 delta"]);
    expect(heard).toEqual(sink.events);
    expect(reported).toEqual(sink.events.map((event) => ["no screen", event]));
  });

  it("a listener that writes to an event does not change what the sink hears", async () => {
    // SPEC 9.1, 4.8
    const sink = sinkOf();
    const { agent } = agentOf(["Hi"], { thinking: sink.options });
    agent.on("thinking", (event) => void Object.assign(event, { cardId: "x", title: "y", outcome: "z" }));
    await agent.prompt("go");
    expect(sink.lines()).toEqual(["1 start 0", "1 complete 0 delta"]);
    expect(sink.events[0]).toMatchObject({ title: "Thinking..." });
  });

  it("subscribe does not hear it; state and events of the run are as without", async () => {
    // SPEC 8.4, 9.8
    const heard: unknown[] = [];
    const script: ScriptedAnswer[] = [[{ toolCall: "x" }], "Hi"];
    for (const thinking of [undefined, true]) {
      const { agent } = agentOf(script, { thinking, now: () => 1 });
      const types: string[] = [];
      agent.subscribe((event) => void types.push(...outline([event], { updates: true })));
      const result = await agent.prompt("go");
      heard.push({ types, result, messages: agent.messages });
    }
    expect(heard[1]).toEqual(heard[0]);
  });
});

describe("an abort", () => {
  it.each([0, 1])("after %s events of a model that hangs: complete before the run ends, then silence", async (afterEvents) => {
    // SPEC 9.2, 9.4
    const { agent, heard } = agentOf([{ content: ["Hi"], fault: { kind: "stall", afterEvents } }], { thinking: true });
    const order: string[] = [];
    agent.on("thinking", ({ state, outcome }) => void order.push(`${state} ${outcome}`));
    agent.on("agent_end", ({ outcome }) => void order.push(`agent_end ${outcome}`));
    const running = agent.prompt("go");
    await advance(31_000);
    agent.abort("enough");
    expect(heard.lines()).toEqual(["1 start 0", "1 heartbeat 30000 Thinking... (30s)", "1 complete 31000 aborted"]);
    await running;
    await advance(100_000);
    expect(order).toEqual(["start undefined", "heartbeat undefined", "complete aborted", "agent_end aborted"]);
  });

  it.each(["start", "heartbeat"] as const)(
    "by a listener of the %s: everybody hears in order, the model is asked no more",
    async (when) => {
      // SPEC 9.3, 9.5, 7.6
      const sink = sinkOf();
      const { agent, streamFn } = agentOf([hanging, "Hi"], { thinking: sink.options });
      agent.on("thinking", ({ state }) => void (state === when && agent.abort("enough")));
      const later: string[] = [];
      agent.on("thinking", ({ state }) => void later.push(state));
      const running = agent.prompt("go");
      await advance(30_000);
      expect((await running).outcome).toBe("aborted");
      const states = when === "start" ? ["start", "complete"] : ["start", "heartbeat", "complete"];
      expect(later).toEqual(states);
      expect(sink.events.map(({ state }) => state)).toEqual(states);
      expect(streamFn.requests.length).toBe(when === "start" ? 0 : 1);
    },
  );

  it("and a retry is another call", async () => {
    // SPEC 9.2
    const { agent, heard } = agentOf([hanging, "Hi"], { thinking: true });
    const running = agent.prompt("go");
    await advance(10);
    agent.abort();
    await running;
    await agent.retry();
    expect(heard.lines()).toEqual(["1 start 0", "1 complete 10 aborted", "2 start 0", "2 complete 0 delta"]);
  });
});

describe("a card is no message", () => {
  it("nothing of it is in the transcript, in a request or in the events of the run", async () => {
    // SPEC 9.8
    const thinking: ThinkingOptions = { title: "CARD-TITLE", name: "CARD-NAME", createId: () => "CARD-ID" };
    const { agent, streamFn, heard } = agentOf([[{ toolCall: "x" }], { errorMessage: "busy" }, "Hi"], { thinking });
    const all: unknown[] = [];
    agent.subscribe((event) => void all.push(event));
    await agent.prompt("go");
    await agent.retry();
    expect(heard.events.length).toBe(6);
    expect(JSON.stringify([agent.messages, streamFn.requests, all])).not.toContain("CARD");
    expect(agent.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
  });

  it("its options do not reach the model", async () => {
    // SPEC 9.8, 6.1
    const streamFn = vi.fn(scriptedModel(["Hi"]));
    const agent = new Agent({ model, streamFn, thinking: true, streamOptions: { temperature: 0 } });
    await agent.prompt("go");
    expect(Object.keys(streamFn.mock.calls[0]?.[2] ?? {}).sort()).toEqual(["signal", "temperature"]);
  });
});
