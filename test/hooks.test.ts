import { type AgentLoopConfig, type AgentMessage, type AssistantMessage, type StreamFn, type StreamOptions, userMessage } from "turnloop";
import { Type } from "turnloop/schema";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { makeTool, model, outline, resultsOf, run, textOf } from "./helpers.js";

const echo = makeTool("echo", (_id, args) => JSON.stringify(args));
const typed = makeTool("typed", (_id, args) => JSON.stringify(args), {
  parameters: Type.Object({ p: Type.Number(), q: Type.Optional(Type.String()) }),
});

describe("the request", () => {
  it("is made by transformContext, then convertToLlm, then pairing; the transcript stays", async () => {
    // SPEC 6.1, 2.6 (F08)
    const order: string[] = [];
    const { requests, messages } = await run([[{ toolCall: "echo", id: "a" }], "done"], {
      tools: [echo],
      messages: [userMessage("old")],
      config: {
        transformContext: (all) => {
          order.push(`transform ${all.length}`);
          return all.filter((message) => message.role !== "assistant");
        },
        convertToLlm: async (all) => {
          order.push(`convert ${all.length}`);
          return all as never;
        },
      },
    });
    expect(order).toEqual(["transform 2", "convert 2", "transform 4", "convert 3"]);
    expect(requests[1]?.messages.map((message) => message.role)).toEqual(["user", "user"]);
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
  });

  it("asks for the key anew for each call and the current provider; config.apiKey is the fallback", async () => {
    // SPEC 6.1
    const seen: unknown[] = [];
    const keys = ["k1", undefined];
    const scripted = scriptedModel([[{ toolCall: "echo" }], "done"]);
    const streamFn: StreamFn = (asked, context, options) => {
      seen.push([asked.id, options]);
      return scripted(asked, context, options);
    };
    const getApiKey = vi.fn(async () => keys.shift());
    const other = { id: "other", provider: "elsewhere" };
    await run(streamFn, {
      tools: [echo],
      config: { getApiKey, apiKey: "fallback", streamOptions: { temperature: 0.5 }, prepareNextTurn: () => ({ model: other }) },
    });
    expect(seen).toEqual([
      ["test-model", { temperature: 0.5, apiKey: "k1", signal: expect.any(AbortSignal) }],
      ["other", { temperature: 0.5, apiKey: "fallback", signal: expect.any(AbortSignal) }],
    ]);
    expect(getApiKey.mock.calls).toEqual([["test-provider"], ["elsewhere"]]);
  });

  it("carries no hook and no key that was not given", async () => {
    const seen: StreamOptions[] = [];
    const scripted = scriptedModel(["x"]);
    await run((asked, context, options) => {
      seen.push(options as StreamOptions);
      return scripted(asked, context, options);
    });
    expect(Object.keys(seen[0] ?? {})).toEqual(["signal"]);
  });

  it.each<[string, Partial<AgentLoopConfig>, AgentMessage[], string]>([
    ["empty", { convertToLlm: () => [] }, [], "is empty"],
    ["empty of all but custom messages", {}, [{ role: "note" } as never], "is empty"],
    ["ended by an assistant message", { transformContext: (all) => [...all, answer("hm")] }, [], "ends in an assistant message"],
    ["not an array", { convertToLlm: () => "all" as never }, [], "convertToLlm must return an array of messages"],
    ["of unknown roles", { convertToLlm: (all) => [...all, { role: "note" }] as never }, [], '"role":"note"'],
    ["transformed into nothing", { transformContext: () => undefined as never }, [], "transformContext must return an array"],
  ])("that is %s is an error turn without a model call", async (_what, config, prompts, text) => {
    // SPEC 6.1 (F97)
    const { events, outcome, requests, end } = await run(["never"], { config, ...(prompts.length > 0 && { prompts }) });
    expect([outcome, requests.length]).toEqual(["error", 0]);
    expect(end.error?.message).toContain(text);
    expect(outline(events).slice(-4)).toEqual(["message_start assistant", "message_end assistant", "turn_end", "agent_end error"]);
  });

  it("gives hooks and StreamFns arrays of their own", async () => {
    // SPEC 6.2
    const grab = (all: unknown[]): void => {
      all.push("junk");
      all.shift();
    };
    const scripted = scriptedModel([[{ toolCall: "echo" }], "done"]);
    const lengths: number[] = [];
    const { messages, outcome } = await run(
      (asked, context, options) => {
        lengths.push(context.messages.length);
        const stream = scripted(asked, context, options);
        grab(context.messages);
        grab(context.tools ?? []);
        return stream;
      },
      {
        tools: [echo],
        config: {
          beforeToolCall: ({ context }) => grab(context.messages),
          afterToolCall: ({ context }) => grab([...(context.tools ?? [])]),
          prepareNextTurn: ({ context, newMessages, toolResults }) => {
            grab(context.messages);
            grab(newMessages);
            grab(toolResults);
          },
          shouldStopAfterTurn: ({ newMessages }) => {
            grab(newMessages);
            return false;
          },
        },
      },
    );
    expect([lengths, messages.map((message) => message.role), outcome]).toEqual([
      [1, 3],
      ["user", "assistant", "toolResult", "assistant"],
      "completed",
    ]);
  });

  it("kept by a StreamFn does not change later, however long the conversation is", async () => {
    // a request is what it was when it was made, also when it is looked at only afterwards
    const kept: { messages: unknown[] }[] = [];
    const scripted = scriptedModel([[{ toolCall: "echo" }], [{ toolCall: "echo" }], "done"]);
    const old = Array.from({ length: 300 }, (_, i) => userMessage(`m${i}`));
    for (const messages of [[], old]) {
      kept.length = 0;
      scripted.requests.length = 0;
      await run(
        (asked, context, options) => {
          kept.push(context);
          const copy = { ...context, systemPrompt: "changed" };
          expect(copy.messages).toHaveLength(context.messages.length);
          return scripted(asked, copy, options);
        },
        { tools: [echo], messages },
      );
      expect(kept.map((context) => context.messages.length - messages.length)).toEqual([1, 3, 5]);
      expect(JSON.parse(JSON.stringify(kept[0]))).toMatchObject({ messages: expect.any(Array) });
    }
  });
});

describe("hooks that throw", () => {
  const fail = () => {
    throw new Error("hook broke");
  };
  it.each(["transformContext", "convertToLlm", "getApiKey"])("%s: an error turn", async (hook) => {
    // SPEC 6.3 (F51)
    for (const broken of [fail, async () => fail(), () => Promise.reject("hook broke")]) {
      const { events, outcome, end, messages } = await run(["never"], { config: { [hook]: broken } });
      expect([outcome, end.error?.message]).toEqual(["error", "hook broke"]);
      expect(messages[1]).toMatchObject({ role: "assistant", stopReason: "error", errorMessage: "hook broke", content: [] });
      expect(outline(events).filter((line) => line.startsWith("message_start"))).toEqual(["message_start user", "message_start assistant"]);
    }
  });

  it.each(["prepareNextTurn", "shouldStopAfterTurn", "getSteeringMessages", "getFollowUpMessages"])(
    "%s: the run ends with outcome error",
    async (hook) => {
      // SPEC 6.3 (F51)
      for (const broken of [fail, async () => fail()]) {
        const { outcome, end, messages } = await run(["said"], { config: { [hook]: broken } });
        expect([outcome, end.error?.message, messages.length]).toEqual(["error", `${hook} failed: hook broke`, 2]);
      }
    },
  );

  it("polls that return no messages: the run ends with outcome error", async () => {
    for (const returned of ["text", [null], [{}]]) {
      const { outcome, end } = await run(["said"], { config: { getSteeringMessages: () => returned as never } });
      expect([outcome, end.error?.message]).toEqual(["error", expect.stringContaining("getSteeringMessages failed")]);
    }
    expect((await run(["said"], { config: { getFollowUpMessages: () => undefined as never } })).outcome).toBe("completed");
  });

  it("beforeToolCall: the call is blocked", async () => {
    // SPEC 5.8: fail closed
    const execute = vi.fn(() => "ran");
    const { messages, outcome } = await run([[{ toolCall: "t" }], "done"], {
      tools: [makeTool("t", execute)],
      config: { beforeToolCall: fail },
    });
    expect(execute).not.toHaveBeenCalled();
    expect(resultsOf({ messages }).map((result) => [result.isError, textOf(result)])).toEqual([
      [true, "Tool call blocked: beforeToolCall failed: hook broke"],
    ]);
    expect(outcome).toBe("completed");
  });

  it("afterToolCall: that call becomes an error result, its usage kept, its siblings untouched", async () => {
    // SPEC 5.12 (F65)
    const usage = {
      input: 1,
      output: 2,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 3,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    };
    const tool = makeTool("t", () => ({ content: [{ type: "text", text: "secret" }], usage }));
    const { messages } = await run(
      [
        [
          { toolCall: "t", id: "a" },
          { toolCall: "t", id: "b" },
        ],
        "done",
      ],
      {
        tools: [tool],
        config: { afterToolCall: ({ toolCall }) => (toolCall.id === "a" ? fail() : undefined) },
      },
    );
    const [a, b] = resultsOf({ messages });
    expect([a?.isError, a?.usage, textOf(a).includes("secret"), textOf(a).includes("hook broke")]).toEqual([true, usage, false, true]);
    expect([b?.isError, textOf(b)]).toEqual([false, "secret"]);
  });
});

describe("beforeToolCall", () => {
  it.each([undefined, null, {}, { block: false }, { block: "yes" }, { block: 1 }, "block", { suspend: false }])(
    "that answers %j lets the call run",
    async (decision) => {
      // SPEC 5.8: only block === true blocks
      const { messages } = await run([[{ toolCall: "echo" }], "done"], {
        tools: [echo],
        config: { beforeToolCall: () => decision as never },
      });
      expect(resultsOf({ messages })[0]?.isError).toBe(false);
    },
  );

  it("sees the validated arguments; edits returned or made in place reach the tool, the transcript keeps what the model sent", async () => {
    // SPEC 5.8, 5.7 (F62)
    const edits = [(args: any) => ({ args: { ...args, q: "returned" } }), (args: any) => void Object.assign(args, { q: "in place" })];
    for (const edit of edits) {
      const { messages, events } = await run([[{ toolCall: "typed", args: { p: "5" } }], "done"], {
        tools: [typed],
        config: {
          beforeToolCall: ({ args, toolCall, assistantMessage }) => {
            expect(args).toEqual({ p: 5 });
            expect(toolCall.arguments).toEqual({ p: "5" });
            toolCall.arguments["p"] = "vandalised";
            assistantMessage.content.length = 0;
            return edit(args) as never;
          },
        },
      });
      expect(textOf(resultsOf({ messages })[0])).toMatch(/^\{"p":5,"q":"(returned|in place)"\}$/);
      expect((messages[1] as AssistantMessage).content).toMatchObject([{ arguments: { p: "5" } }]);
      expect(events.find((event) => event.type === "tool_execution_start")?.args).toEqual({ p: "5" });
    }
  });

  it("cannot make a tool run with arguments that break its schema", async () => {
    // SPEC 5.8 (F63)
    for (const edit of [
      (args: any) => void Object.assign(args, { p: "DROP" }),
      (args: any) => void Reflect.deleteProperty(args, "p"),
      () => ({ args: { p: {} } }),
      () => ({ args: null }),
      () => ({ args: [] }),
    ]) {
      const { messages } = await run([[{ toolCall: "typed", args: { p: 1 } }], "done"], {
        tools: [typed],
        config: { beforeToolCall: ({ args }) => edit(args) as never },
      });
      expect(resultsOf({ messages })[0]).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("Invalid arguments") }],
      });
    }
  });

  it("may leave what a transforming schema made of the arguments alone", async () => {
    // SPEC 5.8: unchanged arguments are not validated a second time
    const received: unknown[] = [];
    const tool = makeTool("t", (_id, args) => `${received.push(args)}`, {
      parameters: z.object({ at: z.string().transform((text) => new Date(text)) }),
    });
    await run([[{ toolCall: "t", args: { at: "2026-01-01" } }], "done"], { tools: [tool], config: { beforeToolCall: () => undefined } });
    expect(received).toEqual([{ at: new Date("2026-01-01") }]);
  });
});

describe("afterToolCall", () => {
  it("runs for every execution that was entered, never for others", async () => {
    // SPEC 5.12 (F64)
    const seen: unknown[] = [];
    const boom = makeTool("boom", () => {
      throw new Error("x");
    });
    await run(
      [
        [
          { toolCall: "boom", id: "thrown" },
          { toolCall: "nope", id: "unknown" },
          { toolCall: "echo", id: "blocked" },
          { toolCall: "echo", id: "fine" },
        ],
        "done",
      ],
      {
        tools: [boom, echo],
        config: {
          beforeToolCall: ({ toolCall }) => ({ block: toolCall.id === "blocked" }),
          afterToolCall: ({ toolCall, isError, args }) => void seen.push([toolCall.id, isError, args]),
        },
      },
    );
    expect(seen.sort()).toEqual([
      ["fine", false, {}],
      ["thrown", true, {}],
    ]);
  });

  it("replaces the fields it gives, whole, in event, message and request", async () => {
    // SPEC 5.12 (F92)
    const tool = makeTool("t", () => ({ content: [{ type: "text", text: "x".repeat(100_000) }], details: { a: 1, b: 2 }, isError: true }));
    const { events, messages, requests } = await run([[{ toolCall: "t" }], "done"], {
      tools: [tool],
      config: { afterToolCall: async () => ({ content: [{ type: "text", text: "cut" }], details: { c: 3 }, isError: false }) },
    });
    const [result] = resultsOf({ messages });
    expect(result).toMatchObject({ content: [{ text: "cut" }], isError: false });
    expect(result?.details).toEqual({ c: 3 });
    expect(events.find((event) => event.type === "tool_execution_end")).toMatchObject({
      result: { content: [{ text: "cut" }] },
      isError: false,
    });
    expect(requests[1]?.messages[2]).toMatchObject({ content: [{ text: "cut" }] });
    const kept = await run([[{ toolCall: "t" }], "done"], { tools: [tool], config: { afterToolCall: () => ({ terminate: true }) } });
    expect(resultsOf(kept)[0]).toMatchObject({ isError: true, details: { a: 1, b: 2 } });
    expect(kept.outcome).toBe("terminated");
  });
});

describe("between turns", () => {
  it("prepareNextTurn may replace context, model and stream options; what it leaves out stays", async () => {
    // SPEC 6.4
    const options: unknown[] = [];
    const scripted = scriptedModel([[{ toolCall: "echo" }], [{ toolCall: "echo" }], [{ toolCall: "echo" }], "done"]);
    const steps = [
      { context: { messages: [userMessage("summary")], systemPrompt: "second" } },
      { model: { id: "m3", provider: "p3" }, streamOptions: { temperature: 1 } },
      { model: undefined, context: { tools: [] } },
    ];
    await run(
      (asked, context, given) => {
        options.push([asked.id, context.systemPrompt, context.messages.length, context.tools?.length ?? 0, given?.temperature]);
        return scripted(asked, context, given);
      },
      { tools: [echo], systemPrompt: "first", config: { prepareNextTurn: () => steps.shift() as never } },
    );
    expect(options).toEqual([
      ["test-model", "first", 1, 1, undefined],
      ["test-model", "second", 1, 1, undefined],
      ["m3", "second", 3, 1, 1],
      ["m3", "second", 5, 0, 1],
    ]);
  });

  it("a replacement context leaves the new messages of the run as they are", async () => {
    const { messages, outcome } = await run([[{ toolCall: "echo" }], "done"], {
      tools: [echo],
      config: { prepareNextTurn: () => ({ context: { messages: [userMessage("only")] } }) },
    });
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    expect(outcome).toBe("completed");
    const bad = await run([[{ toolCall: "echo" }], "never"], {
      tools: [echo],
      config: { prepareNextTurn: () => ({ context: { messages: "all" as never } }) },
    });
    expect(bad.end.error?.message).toContain("context.messages must be an array");
  });

  it("shouldStopAfterTurn is told the turn and all new messages, and stops before any poll", async () => {
    // SPEC 4.4 (h), 6 (F81)
    const poll = vi.fn(() => []);
    const turns: unknown[] = [];
    const { outcome, messages } = await run([[{ toolCall: "echo" }], [{ toolCall: "echo" }], "never"], {
      tools: [echo],
      config: {
        getSteeringMessages: poll,
        getFollowUpMessages: poll,
        shouldStopAfterTurn: async ({ turn, newMessages, toolResults, message }) => {
          turns.push([turn, newMessages.length, toolResults.length, message.stopReason]);
          return turn === 2;
        },
      },
    });
    expect(turns).toEqual([
      [1, 3, 1, "toolUse"],
      [2, 5, 1, "toolUse"],
    ]);
    expect([outcome, messages.length, poll.mock.calls.length]).toEqual(["stopped", 5, 1]);
  });
});

it("timestamps come from config.now, so that a run can be replayed", async () => {
  // SPEC 2.2
  let clock = 100;
  const { messages } = await run([[{ toolCall: "echo" }], "done"], {
    tools: [echo],
    prompts: [userMessage("go", { timestamp: 1 })],
    config: { now: () => ++clock, model },
  });
  expect(messages.map((message) => (message as { timestamp: number }).timestamp)).toEqual([1, 101, 102, 103]);
});

it.each<[string, () => unknown]>([
  [
    "throws",
    () => {
      throw new Error("clock");
    },
  ],
  ["gives a promise", async () => 1],
  ["gives a bigint", () => 1n],
  ["gives NaN", () => Number.NaN],
  ["gives a text", () => "2026-01-01"],
  ["gives nothing", () => undefined],
])("a clock that %s costs the run neither its end nor its timestamps", async (_what, now) => {
  // SPEC 4.5, 2.1, 2.2
  const before = Date.now();
  const { outcome, messages } = await run([[{ toolCall: "echo" }], "done"], { tools: [echo], config: { now: now as () => number } });
  const times = JSON.parse(JSON.stringify(messages)).map(({ timestamp }: { timestamp: number }) => timestamp >= before);
  expect([outcome, times]).toEqual(["completed", [true, true, true, true]]);
});

function answer(text: string): AssistantMessage {
  return { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" } as AssistantMessage;
}
