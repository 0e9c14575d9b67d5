/** Field reports D, E and F: tools that hang, throw or return oddly, and their progress. SPEC 5.10, 5.11, 5.13, 7.4. */
import { type AgentEvent, type AgentTool, agentLoop, type ToolResultMessage } from "turnloop";
import { describe, expect, it } from "vitest";
import { aborted, makeTool, outline, resultsOf, textOf } from "../helpers.js";
import { abortError, advance, call, macrotasks, play, Stage, sleep, watchConditions } from "./conditions.js";

watchConditions();

const never = makeTool("never", () => new Promise(() => {}));

describe("field reports D: tools that hang", () => {
  it.each(["parallel", "sequential"] as const)(
    "F17 a tool that ignores the abort is given up after abortGraceMs (%s)",
    async (toolExecution) => {
      const controller = new AbortController();
      let settled = false;
      const running = play([[call("a", "never")]], {
        tools: [never],
        signal: controller.signal,
        config: { toolExecution, abortGraceMs: 100 },
      }).finally(() => {
        settled = true;
      });
      await advance(3_600_000); // without an abort the loop waits
      expect(settled).toBe(false);
      controller.abort("stop");
      await advance(99);
      expect(settled).toBe(false);
      await advance(1);
      const played = await running;
      expect(played.outcome).toBe("aborted");
      expect(resultsOf(played)).toMatchObject([{ toolCallId: "a", isError: true }]);
      expect(textOf(resultsOf(played)[0])).toMatch(/aborted \(stop\).*may still be running/);
      expect(outline(played.events).slice(-5)).toEqual([
        "tool_execution_end a",
        "message_start toolResult",
        "message_end toolResult",
        "turn_end",
        "agent_end aborted",
      ]);
    },
  );

  it("F21 a time limit aborts that call alone, names itself, and ignores the late value", async () => {
    const reasons: unknown[] = [];
    let ticks = 0;
    const tools: AgentTool[] = [
      makeTool("obeys", async (_id, _args, signal, onUpdate) => {
        const timer = setInterval(() => ticks++, 10);
        reasons.push(await aborted(signal));
        clearInterval(timer);
        onUpdate({ content: [{ type: "text", text: "too late" }] });
        throw abortError();
      }),
      makeTool("ignores", async () => {
        await sleep(80);
        return "late";
      }),
      makeTool("just", () => sleep(29).then(() => "in time")),
      makeTool(
        "patient",
        async (_id, _args, signal) => {
          await sleep(60);
          return `aborted: ${signal.aborted}`;
        },
        { timeoutMs: 1000 },
      ),
    ];
    const batch = ["obeys", "ignores", "just", "patient"].map((name) => call(name, name));
    const running = play([batch, "ok"], { tools, config: { toolTimeoutMs: 30 } });
    await advance(60);
    const played = await running;
    expect(played.outcome).toBe("completed");
    expect(resultsOf(played).map(({ toolCallId, isError }) => [toolCallId, isError])).toEqual([
      ["obeys", true],
      ["ignores", true],
      ["just", false],
      ["patient", false],
    ]);
    const texts = resultsOf(played).map(textOf);
    for (const text of texts.slice(0, 2)) expect(text).toMatch(/30 ms.*may still be running/);
    expect(texts.slice(2)).toEqual(["in time", "aborted: false"]);
    expect(String(reasons[0])).toMatch(/30 ms/);
    expect(played.events.some(({ type }) => type === "tool_execution_update")).toBe(false);
    const before = ticks;
    await advance(100); // the late value comes, the interval is gone
    expect(ticks).toBe(before);
  });

  it("F22 the result says whether the tool stopped, may go on, or never began", async () => {
    const controller = new AbortController();
    let working = true;
    let count = 0;
    const tools: AgentTool[] = [
      makeTool("stops", async (_id, _args, signal) => {
        await aborted(signal);
        throw abortError();
      }),
      makeTool("goesOn", async () => {
        for (; working; count++) await sleep(10);
        return "done after all";
      }),
    ];
    const batch = [call("a", "stops"), call("b", "goesOn"), call("c", "stops")];
    const running = play([batch], { tools, signal: controller.signal, config: { maxParallelToolCalls: 2 } });
    await macrotasks();
    controller.abort("stop");
    await advance(250);
    const played = await running;
    const before = count;
    await advance(100);
    expect(count).toBe(before + 10); // the abandoned tool does go on
    working = false;
    await advance(10);
    const texts = resultsOf(played).map(textOf);
    expect(played.executed).toEqual(["a", "b"]);
    expect(texts[0]).toMatch(/may have partly run/);
    expect(texts[1]).toMatch(/may still be running or may have taken effect/);
    expect(texts[2]).toMatch(/Not executed/);
    expect(new Set(texts).size).toBe(3);
  });
});

describe("field reports E: odd throws and odd returns", () => {
  const unreadable = Object.defineProperty(new Error("x"), "message", {
    get: () => {
      throw new Error("no message for you");
    },
  });
  const odd: [string, unknown, RegExp][] = [
    ["an Error", new Error("boom"), /^boom$/],
    ["a string", "boom", /^boom$/],
    ["undefined", undefined, /undefined/],
    ["an empty string", "", /./],
    ["a symbol", Symbol("boom"), /boom/],
    ["an object without prototype", Object.assign(Object.create(null), { code: 7 }), /7/],
    ["an Error whose message cannot be read", unreadable, /./],
    ["a bigint", 7n, /7/],
  ];

  it.each(odd)("F24 a tool that throws %s, at once or later, gives an error result and the run goes on", async (_name, thrown, text) => {
    const tools = [
      makeTool("now", () => {
        throw thrown;
      }),
      makeTool("later", () => Promise.reject(thrown)),
    ];
    const played = await play([[call("a", "now"), call("b", "later")], "ok"], { tools });
    expect(played.outcome).toBe("completed");
    expect(played.requests).toHaveLength(2);
    for (const result of resultsOf(played)) {
      expect(result.isError).toBe(true);
      expect(textOf(result)).toMatch(text);
    }
  });

  const throwingGetter = {
    get content(): never {
      throw new Error("unreadable");
    },
  };
  const returns: [string, unknown, boolean, unknown][] = [
    ["undefined", undefined, true, /"odd".*undefined/],
    ["null", null, true, /"odd".*null/],
    ["a number", 42, true, /"odd".*42/],
    ["true", true, true, /"odd".*true/],
    ["an array", [{ type: "text", text: "x" }], true, /"odd"/],
    ["a content that is a number", { content: 5 }, true, /"odd"/],
    ["a content that throws", throwingGetter, true, /"odd".*unreadable/],
    ["a string", "plain string", false, [{ type: "text", text: "plain string" }]],
    ["an empty string", "", false, [{ type: "text", text: "" }]],
    ["{}", {}, false, []],
    ["no content", { content: undefined }, false, []],
    ["an empty content", { content: [] }, false, []],
    ["a content that is a string", { content: "x" }, false, [{ type: "text", text: "x" }]],
    ["a content of strings", { content: ["x", "y"] }, false, ["x", "y"].map((text) => ({ type: "text", text }))],
  ];

  it.each(returns)("F25 a tool that returns %s gives one well-formed result", async (_name, value, isError, expected) => {
    for (const execute of [() => value, async () => value] as AgentTool["execute"][]) {
      const played = await play([[call("a", "odd")], "ok"], { tools: [makeTool("odd", execute)] });
      const [result, ...more] = resultsOf(played) as [ToolResultMessage];
      expect(more).toEqual([]);
      expect(result.isError).toBe(isError);
      if (isError) expect(textOf(result)).toMatch(expected as RegExp);
      else expect(result.content).toEqual(expected);
      expect(played.requests[1]?.messages[2]).toEqual(result);
      expect(played.outcome).toBe("completed");
    }
  });

  it("F25 blocks that are neither text nor image are replaced, not sent", async () => {
    const content = [null, 5, { type: "audio", data: "x" }, { type: "text" }, { type: "image", data: "x" }, { type: "text", text: "kept" }];
    const played = await play([[call("a", "odd")], "ok"], { tools: [makeTool("odd", () => ({ content }) as never)] });
    const [result] = resultsOf(played) as [ToolResultMessage];
    expect(result.content.map(({ type }) => type)).toEqual(content.map(() => "text"));
    for (const block of result.content) expect(block).toMatchObject({ text: expect.stringMatching(/./) });
    expect(result.content[5]).toEqual({ type: "text", text: "kept" });
  });

  it("F26 details that JSON cannot hold are passed on as they are; a thrown cycle is a text", async () => {
    const circular: Record<string, unknown> = { name: "socket" };
    circular.self = circular;
    const failure = Object.assign(new Error("boom", { cause: circular }), { socket: circular });
    const text = [{ type: "text" as const, text: "ok" }];
    const tools: AgentTool[] = [
      makeTool("circular", (_id, _args, _signal, onUpdate) => {
        onUpdate({ content: [], details: circular });
        return { content: text, details: circular };
      }),
      makeTool("bigint", () => ({ content: text, details: 10n })),
      makeTool("throws", () => {
        throw failure;
      }),
      makeTool("throwsPlain", () => {
        throw circular;
      }),
    ];
    const batch = ["circular", "bigint", "throws", "throwsPlain"].map((name) => call(name, name));
    const played = await play([batch, "ok"], { tools });
    expect(played.outcome).toBe("completed");
    expect(played.end.messages).toHaveLength(7);
    const [a, b, c, d] = resultsOf(played);
    expect(a?.details).toBe(circular);
    expect(b?.details).toBe(10n);
    expect(textOf(c)).toBe("boom");
    expect(textOf(d)).toMatch(/socket/);
    const shown = played.events.flatMap((event): unknown[] => {
      if (event.type === "tool_execution_update") return [event.partialResult.details];
      if (event.type === "tool_execution_end" && event.toolCallId === "circular") return [event.result.details];
      if (event.type === "turn_end") return event.toolResults.slice(0, 1).map(({ details }) => details);
      return event.type === "agent_end" ? [resultsOf(event)[0]?.details] : [];
    });
    expect(shown).toHaveLength(4);
    for (const details of shown) expect(details).toBe(circular);
  });

  it.each([250, 10])(
    "F27 tools that reject after the abort, with nobody listening, reject into nothing (grace %i ms)",
    async (abortGraceMs) => {
      const controller = new AbortController();
      const late = makeTool("late", async () => {
        await sleep(50);
        throw new Error("too late");
      });
      const stage = new Stage([[call("a", "late"), call("b", "late")], "never asked for"], {
        tools: [late],
        signal: controller.signal,
        config: { abortGraceMs },
      });
      const { prompts, context, config, signal, streamFn } = stage;
      const iterator = agentLoop(prompts, context, config, signal, streamFn)[Symbol.asyncIterator]();
      for (let started = 0; started < 2; ) if ((await iterator.next()).value?.type === "tool_execution_start") started++;
      void iterator.next(); // lets the tools begin; from here on nobody reads
      await macrotasks();
      expect(stage.executed).toEqual(["a", "b"]);
      controller.abort("gone");
      await advance(1000);
      stage.check([], undefined, { left: true });
      expect(stage.requests).toHaveLength(1);
    },
  );
});

describe("field reports E: streams nobody waits for", () => {
  it("F27 a refused event stream tells the first next(), and its result() rejects into nothing", async () => {
    const stage = new Stage(["never asked for"], { prompts: [] });
    const { prompts, context, config, signal, streamFn } = stage;
    const iterator = agentLoop(prompts, context, config, signal, streamFn)[Symbol.asyncIterator]();
    const refusal = await iterator.next().catch((error) => error);
    expect(refusal.code).toBe("no_prompts");
    stage.check([], refusal);
  });
});

describe("field reports F: progress updates", () => {
  const part = (text: string) => ({ content: [{ type: "text" as const, text }] });

  it("F28 progress is told in order before the end, and the result is what the tool returned", async () => {
    const tool = makeTool("x", async (_id, _args, _signal, onUpdate) => {
      onUpdate(part("p1"));
      await Promise.resolve();
      onUpdate(part("p2"));
      sleep(10).then(() => onUpdate(part("after the end")));
      return part("r");
    });
    const running = play([[call("a", "x")], { content: ["ok"], delayMs: 20 }], { tools: [tool] });
    await advance(20);
    const played = await running;
    expect(outline(played.events, { updates: true }).filter((line) => line.startsWith("tool_"))).toEqual([
      "tool_execution_start a",
      "tool_execution_update a",
      "tool_execution_update a",
      "tool_execution_end a",
    ]);
    const updates = played.events.filter((event) => event.type === "tool_execution_update");
    expect(updates).toMatchObject([{ partialResult: part("p1") }, { partialResult: part("p2") }]);
    expect(resultsOf(played).map(textOf)).toEqual(["r"]);
  });

  it("F30 the progress of parallel tools is live, in order, and carries its own call's id and args", async () => {
    const seen: string[] = [];
    const tool = makeTool("x", async (id, args, _signal, onUpdate) => {
      for (let i = 1; i <= 3; i++) {
        await sleep(args.every);
        onUpdate(part(`${id}${i}`));
      }
      return "done";
    });
    const onEvent = (event: AgentEvent): void => {
      if (event.type === "tool_execution_update") {
        seen.push(textOf(event.partialResult));
        expect(event.args).toEqual({ every: event.toolCallId === "a" ? 20 : 30 });
        expect(textOf(event.partialResult)[0]).toBe(event.toolCallId);
      } else if (event.type === "tool_execution_end") seen.push(`end ${event.toolCallId}`);
    };
    const running = play([[call("a", "x", { every: 20 }), call("b", "x", { every: 30 })], "ok"], { tools: [tool], onEvent });
    await advance(45);
    expect(seen).toEqual(["a1", "b1", "a2"]); // at 20, 30, 40 ms: live
    await advance(45);
    const played = await running;
    expect([...seen].sort()).toEqual(["a1", "a2", "a3", "b1", "b2", "b3", "end a", "end b"]);
    for (const id of ["a", "b"]) {
      expect(seen.filter((entry) => entry.includes(id))).toEqual([`${id}1`, `${id}2`, `${id}3`, `end ${id}`]);
    }
    expect(resultsOf(played).map(({ toolCallId }) => toolCallId)).toEqual(["a", "b"]);
  });
});
