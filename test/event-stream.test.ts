import { getEventListeners } from "node:events";
import { type AgentEvent, type AgentMessage, agentLoop, agentLoopContinue, type StreamFn, userMessage } from "turnloop";
import { assertEventSequence, type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { makeTool, model, outline, textOf } from "./helpers.js";

afterEach(() => {
  vi.useRealTimers();
});

const context = { systemPrompt: "", messages: [] as AgentMessage[] };
const long = "a long answer in a good many pieces, so that there is something to leave";
const start = (answers: ScriptedAnswer[] | StreamFn, signal?: AbortSignal, tools = [makeTool("t", () => "ok")]) =>
  agentLoop([userMessage("go")], { ...context, tools }, { model }, signal, Array.isArray(answers) ? scriptedModel(answers) : answers);

async function collect(stream: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

describe("the iterable form", () => {
  it("gives the same events as the sink, and result() the same messages", async () => {
    // SPEC 4.9
    const stream = start([[{ toolCall: "t", id: "a" }], "done"]);
    const events = await collect(stream);
    assertEventSequence(events);
    expect(outline(events).at(-1)).toBe("agent_end completed");
    const messages = await stream.result();
    expect(messages.map(textOf)).toEqual(["go", "", "ok", "done"]);
    expect((events.at(-1) as Extract<AgentEvent, { type: "agent_end" }>).messages).toEqual(messages);
  });

  it("does nothing until it is asked", async () => {
    const streamFn = vi.fn(scriptedModel(["x"]));
    start(streamFn);
    await Promise.resolve();
    await Promise.resolve();
    expect(streamFn).not.toHaveBeenCalled();
  });

  it("is drained by result() alone", async () => {
    // SPEC 4.9
    expect((await start([long]).result()).map(textOf)).toEqual(["go", long]);
    const continued = agentLoopContinue({ ...context, messages: [userMessage("old")] }, { model }, undefined, scriptedModel(["new"]));
    expect((await continued.result()).map(textOf)).toEqual(["new"]);
  });

  it("loses no event when result() is asked right before, or in the middle of, an iteration", async () => {
    const before = start([long]);
    const promise = before.result();
    assertEventSequence(await collect(before));
    expect(await promise).toHaveLength(2);
    const middle = start([long]);
    const events: AgentEvent[] = [];
    for await (const event of middle) {
      events.push(event);
      if (events.length === 3) expect(await middle.result()).toHaveLength(2);
    }
    assertEventSequence(events);
  });

  it("pulls nothing from the model while the consumer is busy", async () => {
    // SPEC 4.9: back-pressure
    let pulled = 0;
    const scripted = scriptedModel([long], { chunkSize: 1 });
    const streamFn: StreamFn = async function* (...args) {
      for await (const event of await scripted(...args)) {
        pulled++;
        yield event;
      }
    };
    let updates = 0;
    for await (const event of start(streamFn)) {
      if (event.type !== "message_update") continue;
      updates++;
      for (let i = 0; i < 20; i++) await Promise.resolve();
      expect(pulled).toBe(updates + 1);
    }
    expect(updates).toBeGreaterThan(50);
  });

  it.each(["agent_start", "message_update", "tool_execution_start", "agent_end"] as const)(
    "aborts the run when it is left at %s",
    async (kind) => {
      // SPEC 4.9 (F16)
      const controller = new AbortController();
      const scripted = scriptedModel([[{ text: "x" }, { toolCall: "t" }], "second"]);
      const stream = start(scripted, controller.signal);
      for await (const event of stream) if (event.type === kind) break;
      const messages = await stream.result();
      if (kind === "agent_end") expect(messages).toHaveLength(4);
      else expect(scripted.requests.length).toBe(kind === "agent_start" ? 0 : 1);
      expect(await collect(stream)).toEqual([]);
      expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
    },
  );

  it("aborts the run when the consumer throws", async () => {
    const stream = start([long]);
    const consume = async () => {
      for await (const event of stream) if (event.type === "message_update") throw new Error("consumer");
    };
    await expect(consume()).rejects.toThrow("consumer");
    expect((await stream.result())[1]).toMatchObject({ stopReason: "aborted" });
  });

  it("is exempt from the sink's grace: a slow consumer finds the closing events", async () => {
    // SPEC 7.2
    vi.useFakeTimers();
    const controller = new AbortController();
    const iterator = start([long], controller.signal)[Symbol.asyncIterator]();
    const events: AgentEvent[] = [];
    for (let i = 0; i < 6; i++) events.push((await iterator.next()).value as AgentEvent);
    controller.abort();
    await vi.advanceTimersByTimeAsync(60_000);
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) events.push(next.value);
    assertEventSequence(events);
    expect(outline(events).at(-1)).toBe("agent_end aborted");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("answers many next() calls at once, in order, and says done ever after", async () => {
    const iterator = start(["x"])[Symbol.asyncIterator]();
    const results = await Promise.all(Array.from({ length: 20 }, () => iterator.next()));
    const events = results.filter((result) => !result.done).map((result) => result.value as AgentEvent);
    assertEventSequence(events);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it("leaves no rejection unhandled when nobody asks for the result", async () => {
    // SPEC 4.9, 14.3
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    const iterator = agentLoop([], context, { model }, undefined, scriptedModel([]))[Symbol.asyncIterator]();
    await iterator.next().catch(() => {});
    agentLoop([], context, { model }, undefined, scriptedModel([])).result();
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off("unhandledRejection", unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it("left before it began runs nothing", async () => {
    const streamFn = vi.fn(scriptedModel(["x"]));
    const stream = start(streamFn);
    const iterator = stream[Symbol.asyncIterator]();
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(streamFn).not.toHaveBeenCalled();
  });
});
