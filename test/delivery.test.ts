import { type AgentEvent, AssistantMessageBuilder, runAgentLoop, type StreamFn, type TurnLoopError, userMessage } from "turnloop";
import { assertEventSequence, scriptedModel } from "turnloop/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { aborted, deferred, makeTool, model, outline, resultsOf, run, textOf } from "./helpers.js";

afterEach(() => {
  vi.useRealTimers();
});

const context = { systemPrompt: "", messages: [] };

/** Runs against a sink of the test's own, which may fail. */
async function runWith(
  sink: (event: AgentEvent) => void | Promise<void>,
  streamFn: StreamFn,
  extra: { tools?: any[]; signal?: AbortSignal; config?: object } = {},
) {
  const events: AgentEvent[] = [];
  const error = await runAgentLoop(
    [userMessage("go")],
    { ...context, tools: extra.tools ?? [] },
    { model, ...extra.config },
    (event) => {
      events.push(event);
      return sink(event);
    },
    extra.signal,
    streamFn,
  ).then(
    () => undefined,
    (rejected: TurnLoopError) => rejected,
  );
  return { events, error };
}

describe("delivery", () => {
  it("never enters the sink again before it has settled, also with tools in parallel", async () => {
    // SPEC 4.7
    let inside = 0;
    let most = 0;
    const busy = makeTool("busy", async (_id, _args, _signal, onUpdate) => {
      onUpdate({ content: [] });
      await Promise.resolve();
      onUpdate({ content: [] });
      return "ok";
    });
    await run([Array.from({ length: 5 }, () => ({ toolCall: "busy" })), "done"], {
      tools: [busy],
      onEvent: async () => {
        most = Math.max(most, ++inside);
        await Promise.resolve();
        await Promise.resolve();
        inside--;
      },
    });
    expect(most).toBe(1);
  });

  it("queues what the sink itself causes, in order", async () => {
    // SPEC 4.7: an event caused inside the sink is not delivered inside it
    let update: ((partial: { content: [] }) => void) | undefined;
    let inside = false;
    const started = deferred();
    const tool = makeTool("t", async (_id, _args, _signal, onUpdate) => {
      update = onUpdate;
      onUpdate({ content: [] });
      await started.promise;
      return "ok";
    });
    let updates = 0;
    await run([[{ toolCall: "t" }], "done"], {
      tools: [tool],
      onEvent: (event) => {
        expect(inside).toBe(false);
        inside = true;
        if (event.type === "tool_execution_update" && ++updates === 1) {
          update?.({ content: [] });
          started.resolve();
        }
        inside = false;
      },
    });
    expect(updates).toBe(2);
  });

  it("pulls no stream event while the sink is busy, and drops none", async () => {
    // SPEC 4.7 (F79)
    let pulled = 0;
    let ahead = 0;
    let seen = 0;
    async function* streamFn() {
      const builder = new AssistantMessageBuilder(model);
      for (const event of Array.from({ length: 50 }, () => builder.text("x")).flat()) {
        pulled++;
        yield event;
      }
      for (const event of builder.done()) {
        if (event.type !== "done") pulled++;
        yield event;
      }
    }
    const { messages } = await run(streamFn, {
      onEvent: async (event) => {
        if (event.type !== "message_update" && event.type !== "message_start") return;
        await Promise.resolve();
        if (event.type === "message_update" || event.message.role === "assistant") seen++;
        ahead = Math.max(ahead, pulled - seen);
      },
    });
    expect(ahead).toBe(0);
    expect(seen).toBe(pulled);
    expect(textOf(messages[1])).toBe("x".repeat(50));
  });

  it("gives snapshots that never change, whatever the StreamFn does to its partial", async () => {
    // SPEC 4.8
    const message: any = {
      role: "assistant",
      content: [],
      api: "",
      provider: "",
      model: "",
      usage: { input: 1, cost: {} },
      stopReason: "stop",
      timestamp: 1,
    };
    async function* streamFn(): any {
      yield { type: "start", partial: message };
      message.content.push({ type: "toolCall", id: "a", name: "t", arguments: { list: [1] } });
      yield { type: "toolcall_start", contentIndex: 0, partial: message };
      message.content[0].arguments.list.push(2);
      message.usage.input = 2;
      yield { type: "toolcall_delta", contentIndex: 0, delta: "2", partial: message };
      message.content[0].name = "t2";
      message.content[0].arguments.list.push(3);
      yield { type: "toolcall_end", contentIndex: 0, toolCall: message.content[0], partial: message };
      message.content.length = 0;
      message.content.push({ type: "text", text: "final" });
      yield { type: "done", reason: "stop", message };
      message.content[0].text = "changed later";
    }
    const { events, messages } = await run(streamFn);
    message.content[0].text = "changed much later";
    const updates = events.filter((event) => event.type === "message_update");
    expect(updates.map(({ message: { content, usage } }) => [content, usage.input])).toEqual([
      [[{ type: "toolCall", id: "a", name: "t", arguments: { list: [1] } }], 1],
      [[{ type: "toolCall", id: "a", name: "t", arguments: { list: [1, 2] } }], 2],
      [[{ type: "toolCall", id: "a", name: "t2", arguments: { list: [1, 2, 3] } }], 2],
    ]);
    expect(events.find((event) => event.type === "message_start" && event.message.role === "assistant")).toMatchObject({
      message: { content: [] },
    });
    expect(textOf(messages[1])).toBe("final");
  });

  it("keeps the transcript and the tools' arguments from what a listener writes into events", async () => {
    // SPEC 4.8
    const received: unknown[] = [];
    const tool = makeTool("t", (_id, args) => {
      received.push(structuredClone(args));
      return { content: [{ type: "text", text: "result" }], usage: { input: 1 } as never };
    });
    const vandal = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      for (const key of Object.keys(value)) {
        const part = (value as Record<string, unknown>)[key];
        if (typeof part === "object") vandal(part);
        else (value as Record<string, unknown>)[key] = "vandalised";
      }
    };
    const answers = () => scriptedModel([[{ text: "call" }, { toolCall: "t", args: { a: { b: ["c"] } }, id: "x" }], "done"]);
    const clean = await runAgentLoop(
      [userMessage("go", { timestamp: 1 })],
      { ...context, tools: [tool] },
      { model, now: () => 1 },
      () => {},
      undefined,
      answers(),
    );
    const streamFn = answers();
    const written = await runAgentLoop(
      [userMessage("go", { timestamp: 1 })],
      { ...context, tools: [tool] },
      { model, now: () => 1 },
      vandal,
      undefined,
      streamFn,
    );
    expect(written).toEqual(clean);
    expect(received).toEqual([{ a: { b: ["c"] } }, { a: { b: ["c"] } }]);
    expect(streamFn.requests[1]?.messages).toEqual(clean.slice(0, 3));
  });

  it("costs no await when the sink returns nothing", async () => {
    // SPEC 4.7: the events of one synchronous stretch arrive in one
    const ticks: number[] = [];
    let tick = 0;
    const promise = run(["x"], { onEvent: () => void ticks.push(tick) });
    tick++;
    await promise;
    expect(ticks.filter((at) => at === 0).length).toBe(4);
  });
});

describe("a failing sink", () => {
  const kinds: AgentEvent["type"][] = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "turn_end",
    "agent_end",
  ];
  const ways = {
    throws: () => {
      throw new Error("sink broke");
    },
    rejects: () => Promise.reject(new Error("sink broke")),
  };
  for (const [way, fail] of Object.entries(ways)) {
    it.each(kinds)(`that ${way} at %s: the events still close, the run rejects once, nothing new starts`, async (kind) => {
      // SPEC 4.10
      let calls = 0;
      let failed = false;
      let executed = 0;
      const tool = makeTool("t", (_id, _args, _signal, onUpdate) => {
        expect(failed).toBe(false);
        executed++;
        onUpdate({ content: [] });
        return "ok";
      });
      const scripted = scriptedModel([[{ text: "x" }, { toolCall: "t", id: "a" }], "end"]);
      const streamFn: StreamFn = (...args) => {
        expect(failed).toBe(false);
        calls++;
        return scripted(...args);
      };
      const { events, error } = await runWith(
        (event) => {
          if (event.type !== kind || failed) return undefined;
          failed = true;
          return fail();
        },
        streamFn,
        { tools: [tool] },
      );
      expect(error).toMatchObject({ code: "sink_failed", cause: { message: "sink broke" } });
      assertEventSequence(events);
      const end = events.at(-1) as Extract<AgentEvent, { type: "agent_end" }>;
      if (kind !== "agent_end") expect(end).toMatchObject({ outcome: "error", error: { message: expect.stringContaining("sink broke") } });
      expect(error?.messages).toEqual(end.messages);
      expect(calls).toBeLessThanOrEqual(kind === "agent_end" ? 2 : 1);
      expect(executed).toBeLessThanOrEqual(1);
    });
  }

  it("at a tool's update leaves running tools alone and ends the run after the batch", async () => {
    // SPEC 4.10 (F78)
    const finished: string[] = [];
    const tool = makeTool("t", async (id, _args, signal, onUpdate) => {
      await Promise.resolve();
      onUpdate({ content: [] });
      await Promise.resolve();
      expect(signal.aborted).toBe(false);
      finished.push(id);
      return "ok";
    });
    const { events, error } = await runWith(
      (event) => {
        if (event.type === "tool_execution_update") throw new Error("update");
      },
      scriptedModel([
        [
          { toolCall: "t", id: "a" },
          { toolCall: "t", id: "b" },
        ],
        "never",
      ]),
      { tools: [tool] },
    );
    expect(finished).toEqual(["a", "b"]);
    expect(events.filter((event) => event.type === "tool_execution_end").map((event) => event.isError)).toEqual([false, false]);
    expect(outline(events).at(-1)).toBe("agent_end error");
    expect(error).toMatchObject({ code: "sink_failed" });
  });

  it("at a tool's update starts no call that still waits for its turn", async () => {
    // SPEC 4.10: no tool starts after the failure, whatever the mode
    for (const config of [{ toolExecution: "sequential" }, { maxParallelToolCalls: 1 }]) {
      const started: string[] = [];
      const tool = makeTool("t", async (id, _args, _signal, onUpdate) => {
        started.push(id);
        onUpdate({ content: [] });
        return "ok";
      });
      const { events } = await runWith(
        (event) => {
          if (event.type === "tool_execution_update") throw new Error("update");
        },
        scriptedModel([
          [
            { toolCall: "t", id: "a" },
            { toolCall: "t", id: "b" },
          ],
        ]),
        { tools: [tool], config },
      );
      expect(started).toEqual(["a"]);
      assertEventSequence(events);
      const end = events.at(-1) as Extract<AgentEvent, { type: "agent_end" }>;
      expect(resultsOf(end).map(textOf)).toEqual([
        "ok",
        "Not executed: the run was stopped because its event sink failed before this call started.",
      ]);
    }
  });

  it("aborts tools that are running when a closing event fails", async () => {
    // SPEC 4.10
    const fast = makeTool("fast", () => "ok");
    const slow = makeTool("slow", async (_id, _args, signal) => {
      await aborted(signal);
      return "noticed";
    });
    const { events, error } = await runWith(
      (event) => {
        if (event.type === "tool_execution_end" && event.toolName === "fast") throw new Error("end");
      },
      scriptedModel([
        [
          { toolCall: "slow", id: "a" },
          { toolCall: "fast", id: "b" },
        ],
      ]),
      { tools: [fast, slow] },
    );
    assertEventSequence(events);
    expect(error).toMatchObject({ code: "sink_failed" });
    expect(resultsOf(error as never).map((result) => [textOf(result), result.isError])).toEqual([
      ["noticed", true],
      ["ok", false],
    ]);
  });

  it("leaves no call without a result when a tool fails with the reason of the abort, as fetch does", async () => {
    // SPEC 4.10, 5.2
    const fast = makeTool("fast", () => "ok");
    const slow = makeTool("slow", async (_id, _args, signal) => {
      await aborted(signal);
      throw signal.reason;
    });
    const { events, error } = await runWith(
      (event) => {
        if (event.type === "tool_execution_end" && event.toolName === "fast") throw new Error("end");
      },
      scriptedModel([[{ toolCall: "slow" }, { toolCall: "fast" }]]),
      { tools: [fast, slow] },
    );
    assertEventSequence(events);
    expect(resultsOf(error as never).map((result) => [textOf(result), result.isError])).toEqual([
      ['Tool "slow" was aborted (the event sink failed) and may have partly run: the event sink failed', true],
      ["ok", false],
    ]);
  });

  it("that never settles is given up after the grace that follows an abort", async () => {
    // SPEC 7.2
    vi.useFakeTimers();
    const controller = new AbortController();
    const promise = runWith((event) => (event.type === "turn_start" ? new Promise(() => {}) : undefined), scriptedModel(["x"]), {
      signal: controller.signal,
    });
    await vi.advanceTimersByTimeAsync(10_000);
    controller.abort("enough");
    await vi.advanceTimersByTimeAsync(249);
    let settled = false;
    promise.then(() => {
      settled = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(settled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    const { events, error } = await promise;
    expect(outline(events)).toEqual(["agent_start", "turn_start"]);
    expect(error).toMatchObject({ code: "sink_failed", message: expect.stringContaining("250 ms") });
    expect(error?.messages?.map((message) => message.role)).toEqual(["user", "assistant"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("that settles within the grace hears everything", async () => {
    // SPEC 7.2: the grace counts from the later of the abort and the delivery
    vi.useFakeTimers();
    const controller = new AbortController();
    const slow = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 200));
    const promise = runWith((event) => (event.type === "agent_start" ? undefined : slow()), scriptedModel(["x"]), {
      signal: controller.signal,
    });
    await vi.advanceTimersByTimeAsync(100);
    controller.abort();
    await vi.advanceTimersByTimeAsync(5000);
    const { events, error } = await promise;
    expect(error).toBeUndefined();
    expect(outline(events).at(-1)).toBe("agent_end aborted");
    expect(vi.getTimerCount()).toBe(0);
  });
});
