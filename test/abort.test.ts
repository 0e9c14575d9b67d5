import { getEventListeners } from "node:events";
import { type AgentLoopConfig, type StreamFn, userMessage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { aborted, makeTool, outline, resultsOf, run, textOf } from "./helpers.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const never = (): Promise<never> => new Promise(() => {});
const echo = makeTool("echo", () => "ok");

/** Starts a run, aborts it `ms` later, and gives it `within` ms to end. */
async function abortAfter(
  answers: Parameters<typeof run>[0],
  options: Parameters<typeof run>[1],
  { ms = 20, within = 0, reason = "stop it" as unknown }: { ms?: number; within?: number; reason?: unknown } = {},
) {
  const controller = new AbortController();
  let ended = false;
  const promise = run(answers, { ...options, signal: controller.signal }).finally(() => {
    ended = true;
  });
  promise.catch(() => {});
  await vi.advanceTimersByTimeAsync(ms);
  expect(ended).toBe(false);
  controller.abort(reason);
  await vi.advanceTimersByTimeAsync(within);
  expect(ended).toBe(true);
  expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
  return promise;
}

describe("an abort ends the run promptly", () => {
  const silent: Record<string, StreamFn> = {
    "a streamFn that never resolves": () => never(),
    "an iterator whose next() and return() never settle": () => ({ [Symbol.asyncIterator]: () => ({ next: never, return: never }) }),
    "a return() that throws": () => ({
      [Symbol.asyncIterator]: () => ({
        next: never,
        return: () => {
          throw new Error("return");
        },
      }),
    }),
    "a return() that rejects": () => ({
      [Symbol.asyncIterator]: () => ({ next: never, return: () => Promise.reject(new Error("return")) }),
    }),
    "a result() that never settles": () => ({
      [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true, value: undefined }) }),
      result: never,
    }),
  };
  it.each(Object.entries(silent))("whatever ignores it: %s", async (_what, streamFn) => {
    // SPEC 7.2 (F13, F14)
    const { events, messages, outcome } = await abortAfter(streamFn, {});
    expect(outcome).toBe("aborted");
    expect(messages[1]).toMatchObject({ role: "assistant", content: [], stopReason: "aborted", errorMessage: "Aborted: stop it" });
    expect(outline(events).slice(-4)).toEqual(["message_start assistant", "message_end assistant", "turn_end", "agent_end aborted"]);
  });

  it.each(["transformContext", "convertToLlm", "getApiKey"] as const)("whatever ignores it: %s", async (hook) => {
    // SPEC 7.2 (F14)
    const { outcome, requests } = await abortAfter(["never"], { config: { [hook]: never } });
    expect([outcome, requests.length]).toEqual(["aborted", 0]);
  });

  it.each(["prepareNextTurn", "shouldStopAfterTurn"] as const)("whatever ignores it: %s", async (hook) => {
    // SPEC 7.2, 7.3: between turns, so there is no further turn
    const { outcome, events, end } = await abortAfter(["said", "never"], { config: { [hook]: never } });
    expect([outcome, end.error?.message]).toEqual(["aborted", "Aborted: stop it"]);
    expect(outline(events).slice(-2)).toEqual(["turn_end", "agent_end aborted"]);
  });

  it("whatever ignores it: beforeToolCall; a late answer changes nothing", async () => {
    // SPEC 7.2 (F60)
    let answer: ((decision: object) => void) | undefined;
    let given: AbortSignal | undefined;
    const execute = vi.fn(() => "ran");
    const { messages, outcome } = await abortAfter([[{ toolCall: "t" }], "never"], {
      tools: [makeTool("t", execute)],
      config: {
        beforeToolCall: (_call, signal) => {
          given = signal;
          return new Promise((resolve) => (answer = resolve));
        },
      },
    });
    answer?.({});
    await vi.advanceTimersByTimeAsync(1000);
    expect([outcome, given?.aborted, given?.reason, execute.mock.calls.length]).toEqual(["aborted", true, "stop it", 0]);
    expect(textOf(resultsOf({ messages })[0])).toBe("Not executed: the run was aborted (stop it) before this call started.");
  });

  it("whatever ignores it: afterToolCall; the tool's result is kept", async () => {
    // SPEC 7.2 (F60)
    const { messages, outcome } = await abortAfter([[{ toolCall: "echo" }], "never"], { tools: [echo], config: { afterToolCall: never } });
    expect([outcome, resultsOf({ messages }).map(textOf)]).toEqual(["aborted", ["ok"]]);
  });

  it("but waits for a poll that has begun: what it took from a queue goes into one closing turn", async () => {
    // SPEC 7.2, 7.3
    for (const hook of ["getSteeringMessages", "getFollowUpMessages"]) {
      const controller = new AbortController();
      const promise = run(["said", "never"], {
        signal: controller.signal,
        config: { [hook]: () => new Promise((resolve) => setTimeout(() => resolve([userMessage("taken")]), 5000)) },
      });
      await vi.advanceTimersByTimeAsync(10);
      controller.abort();
      await vi.advanceTimersByTimeAsync(5000);
      const { events, messages, requests, outcome } = await promise;
      expect([outcome, requests.length]).toEqual(["aborted", 1]);
      expect(messages.map(textOf)).toEqual(["go", "said", "taken", ""]);
      expect(outline(events).slice(-7)).toEqual([
        "turn_start",
        "message_start user",
        "message_end user",
        "message_start assistant",
        "message_end assistant",
        "turn_end",
        "agent_end aborted",
      ]);
    }
  });

  it("and after an empty poll there is no further turn", async () => {
    // SPEC 7.3
    const controller = new AbortController();
    const { events } = await run(["said"], {
      signal: controller.signal,
      config: {
        getSteeringMessages: async () => {
          controller.abort();
          return [];
        },
      },
    });
    expect(outline(events).slice(-2)).toEqual(["turn_end", "agent_end aborted"]);
  });
});

describe("an abort while an answer streams", () => {
  it("keeps the partial answer and calls return() once", async () => {
    // SPEC 7.3 (F13)
    const partial = { role: "assistant", content: [{ type: "text", text: "half an ans" }], stopReason: "stop" } as never;
    const closed = vi.fn(never);
    const events = [
      { type: "start", partial },
      { type: "text_delta", contentIndex: 0, delta: "half an ans", partial },
    ];
    const streamFn: StreamFn = () => ({
      [Symbol.asyncIterator]: () => ({
        next: () => (events.length > 0 ? Promise.resolve({ done: false, value: events.shift() as never }) : never()),
        return: closed,
      }),
    });
    const { messages, outcome } = await abortAfter(streamFn, {});
    expect(outcome).toBe("aborted");
    expect(messages[1]).toMatchObject({ content: [{ text: "half an ans" }], stopReason: "aborted" });
    expect(closed).toHaveBeenCalledTimes(1);
  });

  it("from inside the sink is safe and ends the run once", async () => {
    // SPEC 7.6 (F15)
    for (const kind of ["message_start", "message_update", "message_end", "turn_end", "agent_end", "agent_start"] as const) {
      const controller = new AbortController();
      const { events, outcome } = await run(["a longer answer in several pieces", "never"], {
        signal: controller.signal,
        onEvent: (event) => {
          if (event.type === kind) controller.abort();
        },
      });
      expect(outcome).toBe(kind === "agent_end" ? "completed" : "aborted");
      expect(events.filter((event) => event.type === "agent_end")).toHaveLength(1);
    }
  });

  it("executes none of the calls it had", async () => {
    // SPEC 7.3: a failed answer's calls are not answered, and later requests leave them out
    const execute = vi.fn(() => "ok");
    const partial = { role: "assistant", content: [{ type: "toolCall", id: "a", name: "t", arguments: {} }], stopReason: "stop" } as never;
    async function* streamFn(): AsyncGenerator<any> {
      yield { type: "start", partial };
      yield { type: "toolcall_start", contentIndex: 0, partial };
      await never();
    }
    const { messages } = await abortAfter(streamFn, { tools: [makeTool("t", execute)] });
    expect(execute).not.toHaveBeenCalled();
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant"]);
    const next = scriptedModel(["ok"]);
    await run(next, { messages });
    expect(next.requests[0]?.messages.map((message) => message.role)).toEqual(["user", "user"]);
  });
});

describe("an abort while tools run", () => {
  it("gives each the grace to settle; the signal decides, not what the tool made of it", async () => {
    // SPEC 7.4 (F01, F04, F17, F22)
    const tools = [
      makeTool("obeys", async (_id, _args, signal) => {
        await aborted(signal);
        throw Object.assign(new Error("cancelled"), { name: "AbortError" });
      }),
      makeTool("swallows", async (_id, _args, signal) => {
        await aborted(signal);
        return "The operation was aborted";
      }),
      makeTool("slow", async (_id, _args, signal) => {
        await aborted(signal);
        await new Promise((resolve) => setTimeout(resolve, 249));
        return "cleaned up";
      }),
      makeTool("ignores", never),
      makeTool("finished", () => "done before"),
    ];
    const { messages, outcome, requests, events } = await abortAfter(
      [tools.map(({ name }) => ({ toolCall: name, id: name })), "never"],
      { tools },
      { within: 250 },
    );
    expect([outcome, requests.length]).toEqual(["aborted", 1]);
    expect(resultsOf({ messages }).map((result) => [result.toolCallId, result.isError, textOf(result)])).toEqual([
      ["obeys", true, 'Tool "obeys" was aborted (stop it) and may have partly run: cancelled'],
      ["swallows", true, "The operation was aborted"],
      ["slow", true, "cleaned up"],
      [
        "ignores",
        true,
        'The run was aborted (stop it) and tool "ignores" did not stop in time: it may still be running or may have taken effect.',
      ],
      ["finished", false, "done before"],
    ]);
    expect(outline(events).at(-1)).toBe("agent_end aborted");
  });

  it("takes the grace from abortGraceMs", async () => {
    // SPEC 7.4
    const { messages } = await abortAfter(
      [[{ toolCall: "t" }]],
      { tools: [makeTool("t", never)], config: { abortGraceMs: 0 } },
      { within: 0 },
    );
    expect(textOf(resultsOf({ messages })[0])).toContain("may still be running");
  });

  it("starts no call that waits for its turn, in either mode", async () => {
    // SPEC 7.4 (F02)
    for (const config of [{ toolExecution: "sequential" }, { maxParallelToolCalls: 1 }] as Partial<AgentLoopConfig>[]) {
      const execute = vi.fn(async (_id: string, _args: unknown, signal: AbortSignal) => `heard ${await aborted(signal)}`);
      const { messages } = await abortAfter([["a", "b", "c"].map((id) => ({ toolCall: "t", id })), "never"], {
        tools: [makeTool("t", execute)],
        config,
      });
      expect(execute).toHaveBeenCalledTimes(1);
      expect(resultsOf({ messages }).map((result) => [result.toolCallId, textOf(result)])).toEqual([
        ["a", "heard stop it"],
        ["b", "Not executed: the run was aborted (stop it) before this call started."],
        ["c", "Not executed: the run was aborted (stop it) before this call started."],
      ]);
    }
  });

  it("does not run afterToolCall any more", async () => {
    // SPEC 5.12
    const after = vi.fn();
    await abortAfter([[{ toolCall: "t" }]], {
      tools: [makeTool("t", (_id, _args, signal) => aborted(signal).then(() => "x"))],
      config: { afterToolCall: after },
    });
    expect(after).not.toHaveBeenCalled();
  });

  it("ignores what a given up tool does later", async () => {
    // SPEC 5.10, 14.3 (F27)
    let late: (() => void) | undefined;
    let fail: ((error: Error) => void) | undefined;
    const tool = makeTool("t", (_id, _args, _signal, onUpdate) => {
      late = () => onUpdate({ content: [] });
      return new Promise((_resolve, reject) => (fail = reject));
    });
    const { events } = await abortAfter([[{ toolCall: "t" }]], { tools: [tool] }, { within: 250 });
    const count = events.length;
    late?.();
    fail?.(new Error("too late"));
    await vi.advanceTimersByTimeAsync(10);
    expect(events).toHaveLength(count);
  });
});

describe("signals", () => {
  it("that fired before the run: prompts in the transcript, no model call, no hook", async () => {
    // SPEC 7.5 (F12)
    const hook = vi.fn();
    const { events, messages, requests, outcome } = await run(["never"], {
      signal: AbortSignal.abort("late"),
      config: { transformContext: hook, getSteeringMessages: hook, prepareNextTurn: hook },
    });
    expect([outcome, requests.length, hook.mock.calls.length]).toEqual(["aborted", 0, 0]);
    expect(messages.map((message) => [message.role, textOf(message)])).toEqual([
      ["user", "go"],
      ["assistant", ""],
    ]);
    expect(outline(events)).toEqual([
      "agent_start",
      "turn_start",
      "message_start user",
      "message_end user",
      "message_start assistant",
      "message_end assistant",
      "turn_end",
      "agent_end aborted",
    ]);
  });

  it.each<[unknown, string]>([
    ["plain text", "plain text"],
    [new Error("an error"), "an error"],
    [{ code: 5 }, '{"code":5}'],
    [42, "42"],
    [Symbol("s"), "Symbol(s)"],
  ])("carry the caller's reason %s, readable in the text", async (reason, text) => {
    // SPEC 7.1, 7.6
    let inner: AbortSignal | undefined;
    const streamFn: StreamFn = (_model, _context, options) => {
      inner = options?.signal;
      return never();
    };
    const { messages } = await abortAfter(streamFn, {}, { reason });
    expect(messages[1]).toMatchObject({ errorMessage: `Aborted: ${text}` });
    expect(inner?.reason).toBe(reason);
  });

  it("without a reason say what the runtime says: that the operation was aborted", async () => {
    const controller = new AbortController();
    const { message } = AbortSignal.abort().reason as Error;
    expect(message).toMatch(/abort/);
    const { messages } = await run(["x"], { signal: controller.signal, onEvent: () => controller.abort() });
    expect(messages[1]).toMatchObject({ errorMessage: `Aborted: ${message}` });
  });

  it("may be those of a simulated browser", async () => {
    // SPEC 14.1: an environment may bring an AbortController that is not the runtime's own
    class ForeignController {
      signal = Object.assign(new EventTarget(), { aborted: false, reason: undefined as unknown });
      abort(reason: unknown): void {
        Object.assign(this.signal, { aborted: true, reason });
        this.signal.dispatchEvent(new Event("abort"));
      }
    }
    class ForeignSignal {
      listeners = new Set<() => void>();
      aborted = false;
      addEventListener = (_type: string, listener: () => void): void => void this.listeners.add(listener);
      removeEventListener = (_type: string, listener: () => void): void => void this.listeners.delete(listener);
    }
    for (const Foreign of [
      ForeignController,
      class {
        signal = new ForeignSignal();
        abort(): void {}
      },
    ]) {
      vi.stubGlobal("AbortController", Foreign);
      const { outcome } = await run([[{ toolCall: "echo" }], "done"], { tools: [echo] }).finally(() => vi.unstubAllGlobals());
      expect(outcome).toBe("completed");
    }
  });

  it("of the caller get one listener a run, removed on every ending", async () => {
    // SPEC 7.1 (F19)
    const controller = new AbortController();
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown): void => void warnings.push(warning);
    process.on("warning", onWarning);
    onTestFinished(() => void process.off("warning", onWarning));
    let most = 0;
    const tool = makeTool("t", async (_id, _args, signal) => {
      signal.addEventListener("abort", () => {});
      most = Math.max(most, getEventListeners(controller.signal, "abort").length);
      return "ok";
    });
    for (let i = 0; i < 300; i++) {
      await run(i % 3 === 0 ? [{ errorMessage: "x" }] : [[{ toolCall: "t" }], "done"], { tools: [tool], signal: controller.signal });
    }
    await run([Array.from({ length: 30 }, () => ({ toolCall: "t" })), ...Array.from({ length: 39 }, () => [{ toolCall: "t" }]), "done"], {
      tools: [tool],
      signal: controller.signal,
    });
    await run(["x"], {
      signal: controller.signal,
      onEvent: (event) => {
        if (event.type === "turn_start") throw new Error("sink");
      },
    }).catch(() => {});
    await vi.advanceTimersByTimeAsync(10);
    expect(most).toBe(1);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
    expect(warnings).toEqual([]);
  });

  it("an answer that is aborted on the provider's side ends the run as aborted", async () => {
    // SPEC 4.4 (d), 4.5
    const { outcome, messages } = await run([{ content: ["half"], stopReason: "aborted" }, "never"]);
    expect([outcome, messages.length]).toEqual(["aborted", 2]);
  });
});
