/** Field reports L and M: parallel batches, hooks and approvals. SPEC 5.8, 5.9, 5.12, 7.2. */
import { type AgentEvent, type AgentLoopConfig, type AgentTool, type AssistantMessage, userMessage } from "turnloop";
import { Type } from "turnloop/schema";
import { describe, expect, it } from "vitest";
import { aborted, deferred, makeTool, outline, resultsOf, textOf } from "../helpers.js";
import {
  abortError,
  advance,
  call,
  callsOf,
  hostQueue,
  macrotasks,
  play,
  recordingTools,
  sleep,
  userTexts,
  watchConditions,
} from "./conditions.js";

watchConditions();

describe("field reports L: parallel batches", () => {
  it("F58 the end of a quick call is told while a slow one still runs; the results come in source order", async () => {
    const tool = makeTool("wait", async (_id, { ms }) => sleep(ms).then(() => `${ms}`));
    const seen: string[] = [];
    const onEvent = (event: AgentEvent): void => void seen.push(...outline([event]));
    const running = play([[call("b", "wait", { ms: 200 }), call("a", "wait", { ms: 10 })], "ok"], { tools: [tool], onEvent });
    await advance(10);
    expect(seen.slice(-1)).toEqual(["tool_execution_end a"]);
    await advance(190);
    const played = await running;
    expect(outline(played.events).slice(6, 15)).toEqual([
      "tool_execution_start b",
      "tool_execution_start a",
      "tool_execution_end a",
      "tool_execution_end b",
      "message_start toolResult",
      "message_end toolResult",
      "message_start toolResult",
      "message_end toolResult",
      "turn_end",
    ]);
    expect(resultsOf(played).map(textOf)).toEqual(["200", "10"]);
  });

  it.each([
    ["one tool is sequential", "sequential", {}, 1],
    ["the run is sequential", "parallel", { toolExecution: "sequential" }, 1],
    ["at most 3 may run at once", "parallel", { maxParallelToolCalls: 3 }, 3],
    ["there is no limit", "parallel", {}, 12],
  ] as const)("F59 12 calls of 3 tools are all executed and answered when %s", async (_name, executionMode, config, most) => {
    let running = 0;
    let peak = 0;
    const execute: AgentTool["execute"] = async (id) => {
      peak = Math.max(peak, ++running);
      await sleep(id.charCodeAt(0) % 5); // they end in another order than they start
      running--;
      return id;
    };
    const tools = [makeTool("x", execute), makeTool("y", execute), makeTool("z", execute, { executionMode })];
    const ids = [..."abcdefghijkl"];
    const batch = ids.map((id, i) => call(id, ["x", "y", "z"][i % 3] as string));
    const playing = play([batch, "ok"], { tools, config });
    await advance(100);
    const played = await playing;
    expect(played.executed).toEqual(ids);
    expect(peak).toBe(most);
    expect(resultsOf(played).map(textOf)).toEqual(ids);
  });
});

describe("field reports M: hooks and approvals", () => {
  const x = makeTool("x", () => "ran");

  it.each(["beforeToolCall", "afterToolCall"] as const)(
    "F60 an abort does not wait for a %s that never answers, and a late answer is ignored",
    async (name) => {
      const controller = new AbortController();
      const asked = deferred<AbortSignal>();
      const approval = deferred<undefined>();
      const config: Partial<AgentLoopConfig> = {
        [name]: (_call: unknown, signal: AbortSignal) => {
          asked.resolve(signal);
          return approval.promise;
        },
      };
      const running = play([[call("a", "x"), call("b", "x")]], { tools: [x], signal: controller.signal, config });
      const signal = await asked.promise;
      expect(signal.aborted).toBe(false);
      controller.abort("never mind");
      expect(signal.reason).toBe("never mind");
      const first = await running; // the clock stands still
      expect(first.outcome).toBe("aborted");
      expect(resultsOf(first).map(({ toolCallId }) => toolCallId)).toEqual(["a", "b"]);
      if (name === "beforeToolCall") {
        for (const result of resultsOf(first)) expect(textOf(result)).toMatch(/Not executed: .*never mind/);
      } else expect(textOf(resultsOf(first)[0])).toBe("ran");

      approval.resolve(undefined);
      await macrotasks();
      expect(first.executed).toEqual(name === "beforeToolCall" ? [] : ["a", "b"]);
      const second = await play(["ok"], { tools: [x], messages: first.messages, prompts: [userMessage("go on")] });
      expect(second.outcome).toBe("completed");
    },
  );

  it("F60 a hook that rejects after the abort rejects into nothing", async () => {
    const controller = new AbortController();
    const beforeToolCall = async (_call: unknown, signal: AbortSignal): Promise<undefined> => {
      await aborted(signal);
      await sleep(10);
      throw abortError();
    };
    const running = play([[call("a", "x")]], { tools: [x], signal: controller.signal, config: { beforeToolCall } });
    await macrotasks();
    controller.abort("never mind");
    expect((await running).executed).toEqual([]);
    await advance(10);
  });

  it("F62 a hook's edit of the arguments reaches the tool; messages and events keep what the model said", async () => {
    const { got, tool } = recordingTools();
    const config: Partial<AgentLoopConfig> = {
      beforeToolCall: ({ args, toolCall, assistantMessage, context }) => {
        args.p = 2;
        args.deep.push("edited");
        toolCall.arguments.p = 3;
        toolCall.name = "y";
        assistantMessage.content.length = 0;
        context.messages.length = 0;
      },
    };
    const said = { p: 1, deep: ["said"] };
    const played = await play([[call("a", "x", said), call("b", "x", said)], "ok"], { tools: [tool("x")], config });
    expect(got).toEqual(Array(2).fill({ p: 2, deep: ["said", "edited"] }));
    for (const message of [played.messages[1], played.requests[1]?.messages[1], played.end.messages[1]]) {
      expect(callsOf(message as AssistantMessage)).toMatchObject(["a", "b"].map((id) => ({ id, name: "x", arguments: said })));
    }
    const starts = played.events.filter(({ type }) => type === "tool_execution_start");
    expect(starts).toMatchObject([{ args: said }, { args: said }]);
    expect(resultsOf(played).map(({ toolName }) => toolName)).toEqual(["x", "x"]);
  });

  const parameters = Type.Object({ p: Type.Number(), opt: Type.Optional(Type.Number()) });
  type Before = NonNullable<AgentLoopConfig["beforeToolCall"]>;
  const rewrites: [string, Before, RegExp][] = [
    ["returns a wrong type", () => ({ args: { p: "DROP" } }), /p: expected number, received "DROP"/],
    ["returns arguments without a required field", () => ({ args: {} }), /p: required, but missing/],
    ["returns no object", () => ({ args: "DROP" }), /expected object/],
    ["returns null as arguments", () => ({ args: null }), /expected object/],
    ["writes a wrong type in place", ({ args }) => void Object.assign(args, { p: "DROP" }), /p: expected number/],
    ["writes a wrong optional in place", ({ args }) => void Object.assign(args, { opt: "DROP" }), /opt: expected number/],
    ["deletes a required field in place", ({ args }) => void Reflect.deleteProperty(args, "p"), /p: required, but missing/],
    [
      "edits and throws",
      ({ args }) => {
        args.p = 7;
        throw new Error("no approval");
      },
      /blocked.*no approval/,
    ],
    [
      "throws",
      () => {
        throw undefined;
      },
      /blocked/,
    ],
  ];

  it.each(rewrites)("F63 a beforeToolCall that %s never gets the tool executed", async (_name, beforeToolCall, text) => {
    const tools = [makeTool("x", () => "ran", { parameters })];
    for (const config of [{ beforeToolCall }, { beforeToolCall: async (...asked: Parameters<Before>) => beforeToolCall(...asked) }]) {
      const played = await play([[call("a", "x", { p: 1 })], "ok"], { tools, config });
      expect(played.executed).toEqual([]);
      expect(resultsOf(played)).toMatchObject([{ isError: true }]);
      expect(textOf(resultsOf(played)[0])).toMatch(text);
      expect(played.outcome).toBe("completed");
    }
  });

  it("F63 rewritten arguments are coerced and defaulted as the model's are", async () => {
    const { got, tool } = recordingTools();
    const schema = Type.Object({ p: Type.Number(), n: Type.Optional(Type.Number({ default: 5 })) });
    await play([[call("a", "x", { p: 1 })], "ok"], {
      tools: [tool("x", schema)],
      config: { beforeToolCall: () => ({ args: { p: "7" } }) },
    });
    expect(got).toEqual([{ p: 7, n: 5 }]);
  });

  it("F63 arguments that a hook keeps and edits after its answer never reach a tool unvalidated", async () => {
    const { got, tool } = recordingTools();
    const kept: any[] = [];
    const beforeToolCall: Before = ({ args }) => {
      for (const earlier of kept) earlier.p = "DROP"; // those of a call that was approved before
      kept.push(args);
    };
    await play([[call("a", "x", { p: 1 }), call("b", "x", { p: 2 })], "ok"], {
      tools: [tool("x", parameters)],
      config: { beforeToolCall },
    });
    expect(got).toContainEqual({ p: 2 });
    for (const args of got) expect(args).toEqual({ p: expect.any(Number) });
  });

  it("F64 afterToolCall runs once for every call whose execute was entered, and for no other", async () => {
    const leases = new Set<string>();
    const after: [string, boolean][] = [];
    const tools = [
      x,
      makeTool("boom", () => {
        throw new Error("boom");
      }),
      makeTool("hang", () => new Promise(() => {}), { timeoutMs: 30 }),
      makeTool("needsP", () => "ran", { parameters }),
    ];
    const config: Partial<AgentLoopConfig> = {
      beforeToolCall: ({ toolCall }) => {
        if (toolCall.id === "blocked") return { block: true };
        leases.add(toolCall.id);
        return undefined;
      },
      afterToolCall: ({ toolCall, isError }) => {
        leases.delete(toolCall.id);
        after.push([toolCall.id, isError]);
      },
    };
    const batch = [call("ok", "x"), call("throws", "boom"), call("slow", "hang"), call("blocked", "x"), call("unknown", "nope")];
    const running = play([[...batch, call("invalid", "needsP")], "ok"], { tools, config });
    await advance(30);
    const played = await running;
    expect(played.executed).toEqual(["ok", "throws", "slow"]);
    expect(after).toEqual([
      ["ok", false],
      ["throws", true],
      ["slow", true],
    ]);
    expect(leases.size).toBe(0);
  });

  it("F64 afterToolCall does not run once the run is aborted", async () => {
    const controller = new AbortController();
    const after: string[] = [];
    const stops = makeTool("stops", async (_id, _args, signal) => {
      controller.abort("stop");
      await aborted(signal);
      throw abortError();
    });
    const config: Partial<AgentLoopConfig> = { afterToolCall: ({ toolCall }) => void after.push(toolCall.id) };
    const played = await play([[call("a", "stops"), call("b", "x")]], { tools: [stops, x], signal: controller.signal, config });
    expect(after).toEqual([]);
    expect(resultsOf(played)).toHaveLength(2);
  });

  it.each([
    ["a string", "mapping failed"],
    ["undefined", undefined],
    ["an Error", new Error("mapping failed")],
  ])("F65 an afterToolCall that throws %s spoils that call only, and says that it was executed", async (_name, thrown) => {
    const usage = {
      input: 1,
      output: 2,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 3,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 1 },
    };
    const tool = makeTool("x", () => ({ content: [{ type: "text", text: "ran" }], usage }));
    const config: Partial<AgentLoopConfig> = {
      afterToolCall: ({ toolCall }) => {
        if (toolCall.id === "a") throw thrown;
      },
    };
    const played = await play([[call("a", "x"), call("b", "x"), call("c", "x")], "ok"], { tools: [tool], config });
    expect(resultsOf(played).map(({ isError }) => isError)).toEqual([true, false, false]);
    expect(textOf(resultsOf(played)[0])).toMatch(/afterToolCall failed.*was executed/);
    expect(resultsOf(played)[0]?.usage).toEqual(usage);
    expect(resultsOf(played).slice(1).map(textOf)).toEqual(["ran", "ran"]);
    expect(played.requests).toHaveLength(2);
  });

  it("F66 a message queued while an approval is pending waits for the batch, and the approval stands", async () => {
    const queue = hostQueue();
    const asked = deferred();
    const approval = deferred<{ block: boolean }>();
    const beforeToolCall: Before = ({ toolCall }) => {
      if (toolCall.id !== "a") return undefined;
      asked.resolve();
      return approval.promise;
    };
    const running = play([[call("a", "x"), call("b", "x")], "ok"], {
      tools: [x],
      config: { beforeToolCall, getSteeringMessages: queue.poll },
    });
    await asked.promise;
    queue.texts.push("by the way");
    await macrotasks();
    expect(queue.texts).toEqual(["by the way"]);
    approval.resolve({ block: false });
    const played = await running;
    expect(played.executed).toEqual(["a", "b"]);
    expect(played.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "toolResult", "user", "assistant"]);
    expect(userTexts(played.requests[1])).toEqual(["go", "by the way"]);
    expect(queue.texts).toEqual([]);
  });
});
