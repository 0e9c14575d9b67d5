/** Field reports P: sinks that fail, are slow, or call back into the run. SPEC 4.7, 4.9, 4.10, 7.6. */
import { type AgentEvent, type AgentMessage, agentLoop, TurnLoopError } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { aborted, makeTool, outline, resultsOf, textOf } from "../helpers.js";
import { call, hostQueue, macrotasks, type Played, play, Stage, watchConditions } from "./conditions.js";

watchConditions();

const roles = ({ messages }: { messages: AgentMessage[] }) => messages.map(({ role }) => role);

describe("field reports P: sinks that fail, are slow, or call back", () => {
  const script = (): ScriptedAnswer[] => [
    [{ text: "let me see" }, call("a", "x"), call("b", "x")],
    [{ thinking: "so" }, { text: "ok" }],
  ];
  const progress = makeTool("x", async (id, _args, _signal, onUpdate) => {
    await Promise.resolve(); // by then both calls run
    onUpdate({ content: [{ type: "text", text: `half of ${id}` }] });
    await Promise.resolve();
    return id;
  });
  const modes = ["parallel", "sequential"] as const;
  /** Plays the script once for every event of it, doing something at that event; a message is steered into the second turn. */
  const atEvery = async (
    toolExecution: (typeof modes)[number],
    act: () => void | Promise<void>,
    newSignal = () => undefined as AbortSignal | undefined,
  ) => {
    const plays: { n: number; at: AgentEvent; played: Played }[] = [];
    for (let n = 0, length = 1; n < length; n++) {
      const queue = hostQueue();
      queue.texts.push("steered");
      let count = 0;
      const played = await play(script(), {
        tools: [progress],
        config: { toolExecution, getSteeringMessages: queue.poll },
        onEvent: () => (count++ === n ? act() : undefined),
        signal: newSignal(),
      });
      const delivered = played.messages.filter((message) => textOf(message) === "steered").length;
      expect(delivered + queue.texts.length, `messages queued or delivered at event ${n}`).toBe(1);
      plays.push({ n, at: played.events[n] as AgentEvent, played });
      length = Math.max(length, played.events.length);
    }
    expect(plays.length).toBeGreaterThan(30);
    return plays;
  };

  it.each(modes.flatMap((mode) => [["throws", mode] as const, ["rejects", mode] as const]))(
    "F78 a sink that %s at any event ends the run once, with the closing events and what was done (%s)",
    async (how, mode) => {
      const failure = new Error("display broke");
      const plays = await atEvery(mode, () => {
        if (how === "throws") throw failure;
        return Promise.reject(failure);
      });
      for (const { n, at, played } of plays) {
        expect(TurnLoopError.is(played.rejection), `${n} ${at.type}`).toBe(true);
        expect(played.rejection).toMatchObject({ code: "sink_failed", cause: failure });
        if (at.type !== "agent_end") expect(played.outcome).toBe("error");
        expect(played.executed.every((id) => resultsOf(played).some(({ toolCallId }) => toolCallId === id))).toBe(true);
        const later = played.events.slice(n + 1).map(({ type }) => type);
        expect(later).not.toContain("message_update");
        expect(later).not.toContain("tool_execution_update");
        if (at.type === "tool_execution_update" && mode === "parallel") expect(resultsOf(played).map(textOf)).toEqual(["a", "b"]);
      }
    },
  );

  it("F78 a sink that fails at an update of a tool leaves the tools alone and ends the run after the batch", async () => {
    const signals: AbortSignal[] = [];
    const tool = makeTool("x", async (id, _args, signal, onUpdate) => {
      signals.push(signal);
      await macrotasks();
      onUpdate({ content: [] });
      await macrotasks();
      return `${id}: ${signal.aborted}`;
    });
    const onEvent = (event: AgentEvent): void => {
      if (event.type === "tool_execution_update") throw new Error("display broke");
    };
    const played = await play([[call("a", "x"), call("b", "x")], "never asked for"], { tools: [tool], onEvent });
    expect(resultsOf(played).map(textOf)).toEqual(["a: false", "b: false"]);
    expect(resultsOf(played).map(({ isError }) => isError)).toEqual([false, false]);
    expect(played.requests).toHaveLength(1);
    expect(played.rejection?.code).toBe("sink_failed");
    expect(signals.every(({ aborted }) => !aborted)).toBe(true);
  });

  it("F78 a sink that fails at the end of a call aborts the tools in flight", async () => {
    const seen: unknown[] = [];
    const tool = makeTool("x", async (_id, _args, signal) => {
      seen.push(await aborted(signal));
      return "stopped";
    });
    const onEvent = (event: AgentEvent): void => {
      if (event.type === "tool_execution_end") throw new Error("display broke");
    };
    const played = await play([[call("a", "quick"), call("b", "x")]], {
      tools: [tool, makeTool("quick", async () => "quick")],
      onEvent,
    });
    expect(seen).toHaveLength(1);
    expect(resultsOf(played).map(({ isError }) => isError)).toEqual([false, true]);
  });

  it("F78 a sink that fails at every event is offered the closing events and is heard once", async () => {
    let failures = 0;
    const onEvent = (): void => {
      throw new Error(`failure ${++failures}`);
    };
    const played = await play(script(), { tools: [progress], onEvent });
    expect(played.rejection).toMatchObject({ code: "sink_failed", cause: { message: "failure 1" } });
    expect(played.requests).toEqual([]);
    expect(played.outcome).toBe("error");
    expect(roles(played)).toEqual(["user", "assistant"]);
  });

  const deltas = 2000;
  const manyDeltas = () => scriptedModel(["d".repeat(deltas)], { chunkSize: 1 });

  it("F79 while the sink is busy nothing is pulled, it is never entered twice, and nothing is dropped", async () => {
    let busy = false;
    let pulledWhileBusy = 0;
    let enteredTwice = 0;
    let received = 0;
    const model = manyDeltas();
    const streamFn: typeof model = Object.assign(
      async function* (...request: Parameters<typeof model>) {
        for await (const event of await model(...request)) {
          if (busy) pulledWhileBusy++;
          yield event;
        }
      },
      { requests: [] },
    );
    const onEvent = async (event: AgentEvent): Promise<void> => {
      if (busy) enteredTwice++;
      busy = true;
      for (let i = 0; i < 5; i++) await Promise.resolve();
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") received++;
      busy = false;
    };
    const played = await play(streamFn, { onEvent, keepUpdates: false });
    expect({ pulledWhileBusy, enteredTwice, received }).toEqual({ pulledWhileBusy: 0, enteredTwice: 0, received: deltas });
    expect(textOf(played.messages[1])).toBe("d".repeat(deltas));
  });

  it("F79 parallel tools with progress do not enter a slow sink twice", async () => {
    let busy = 0;
    let most = 0;
    const onEvent = async (): Promise<void> => {
      most = Math.max(most, ++busy);
      await Promise.resolve();
      busy--;
    };
    const played = await play(script(), { tools: [progress], onEvent });
    expect(most).toBe(1);
    expect(outline(played.events, { updates: true }).filter((line) => line.startsWith("tool_execution_update"))).toHaveLength(2);
  });

  it("F79 a consumer of the iterable form that pauses holds the model back", async () => {
    let pulled = 0;
    const model = manyDeltas();
    const stage = new Stage(async function* (...request) {
      for await (const event of await model(...request)) {
        pulled++;
        yield event;
      }
    });
    const { prompts, context, config, signal, streamFn } = stage;
    const stream = agentLoop(prompts, context, config, signal, streamFn);
    let updates = 0;
    for await (const event of stream) {
      stage.events.push(event);
      if (event.type !== "message_update" || ++updates % 500 !== 0) continue;
      const before = pulled;
      await macrotasks();
      expect(pulled - before).toBeLessThanOrEqual(1);
      expect(pulled - updates).toBeLessThanOrEqual(3);
    }
    const played = stage.check(await stream.result());
    expect(textOf(played.messages[1])).toHaveLength(deltas);
    expect(updates).toBe(deltas + 2); // with the start and the end of the block
  });

  it.each(modes)("F80 an abort from inside the sink, at any event, ends the run in order (%s)", async (mode) => {
    let controller = new AbortController();
    const newSignal = (): AbortSignal => {
      controller = new AbortController();
      return controller.signal;
    };
    const plays = await atEvery(mode, () => controller.abort("from the sink"), newSignal);
    for (const { n, at, played } of plays) {
      expect([n, played.outcome]).toEqual([n, at.type === "agent_end" ? "completed" : "aborted"]);
    }
  });

  it("F80 a run started from inside the sink of another, on the same inputs, disturbs neither", async () => {
    const inner: Promise<unknown>[] = [];
    const played = await play(script(), {
      tools: [progress],
      onEvent: (event) => {
        if (event.type === "turn_end") inner.push(play(script(), { tools: [progress] }).then(roles));
      },
    });
    const whole = ["user", "assistant", "toolResult", "toolResult", "assistant"];
    expect(roles(played)).toEqual(whole);
    expect(await Promise.all(inner)).toEqual([whole, whole]);
  });
});
