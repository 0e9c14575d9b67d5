/** Field reports B and C: abort at awkward moments, and the listeners it leaves. SPEC 7, 4.9. */
import { getEventListeners } from "node:events";
import { type AgentEvent, agentLoop, userMessage } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { aborted, deferred, makeTool, outline, resultsOf, textOf } from "../helpers.js";
import { abortError, advance, answer, call, macrotasks, play, rawStream, Stage, watchConditions } from "./conditions.js";

watchConditions();

const never = <T>(): Promise<T> => new Promise(() => {});

describe("field reports B: abort at awkward moments", () => {
  it("F10 an abort inside a tool ends the run as aborted, with no further model call", async () => {
    const controller = new AbortController();
    const slow = makeTool("slow", async (_id, _args, signal) => {
      controller.abort();
      await aborted(signal);
      throw abortError();
    });
    const played = await play([[call("a", "slow")], "never asked for"], { tools: [slow], signal: controller.signal });
    expect(played.requests).toHaveLength(1);
    expect(played.outcome).toBe("aborted");
    expect(played.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult"]);
  });

  it.each([
    ["a string", "late", /late/],
    ["an Error", new Error("too late"), /too late/],
    ["a timeout", new DOMException("The operation timed out", "TimeoutError"), /timed out/],
    ["nothing", undefined, /abort/i],
    ["null", null, /./],
    ["an object", { code: 7 }, /7/],
    ["a symbol", Symbol("gone"), /gone/],
  ])("F12 a signal aborted before the run with %s as reason: the prompt is kept, the model is not called", async (_name, reason, text) => {
    const played = await play(["never asked for"], { signal: AbortSignal.abort(reason), prompts: [userMessage("x")] });
    expect(outline(played.events)).toEqual([
      "agent_start",
      "turn_start",
      "message_start user",
      "message_end user",
      "message_start assistant",
      "message_end assistant",
      "turn_end",
      "agent_end aborted",
    ]);
    expect(played.requests).toEqual([]);
    expect(played.messages).toMatchObject([{ content: "x" }, { role: "assistant", content: [], stopReason: "aborted" }]);
    expect(played.end.error?.message).toMatch(text);
    expect(played.end.error?.message).not.toContain("[object Object]");

    const next = await play(["ok"], { messages: played.messages, prompts: [userMessage("y")] });
    expect(next.requests[0]?.messages.map(({ role }) => role)).toEqual(["user", "user"]);
    expect(next.outcome).toBe("completed");
  });

  it("F13 an abort does not wait for an iterator whose next() and return() never settle", async () => {
    const controller = new AbortController();
    const partial = answer({ content: [{ type: "text", text: "Hel" }] });
    const stream = rawStream(
      [
        { type: "start", partial: answer({}) },
        { type: "text_delta", contentIndex: 0, delta: "Hel", partial },
      ],
      never,
    );
    const running = play(() => stream, { signal: controller.signal });
    await advance(20);
    expect(stream.seen).toEqual({ pulled: 3, returned: 0 });
    controller.abort("stop");
    const played = await running; // the clock stands still
    expect(stream.seen).toEqual({ pulled: 3, returned: 1 });
    expect(played.outcome).toBe("aborted");
    expect(played.messages[1]).toMatchObject({ stopReason: "aborted", content: [{ type: "text", text: "Hel" }] });
    expect(outline(played.events).slice(-4)).toEqual(["message_start assistant", "message_end assistant", "turn_end", "agent_end aborted"]);
  });

  it.each(["streamFn", "transformContext", "convertToLlm", "getApiKey"])(
    "F14 an abort does not wait for a %s that never settles",
    async (name) => {
      const controller = new AbortController();
      const entered = deferred();
      const hang = (): Promise<never> => {
        entered.resolve();
        return never();
      };
      const options = { signal: controller.signal, config: name === "streamFn" ? {} : { [name]: hang } };
      const running = play(name === "streamFn" ? hang : ["never asked for"], options);
      await entered.promise;
      controller.abort("stop");
      const played = await running;
      expect(played.outcome).toBe("aborted");
      expect(played.requests).toHaveLength(name === "streamFn" ? 1 : 0);
      expect(played.messages).toMatchObject([{ role: "user" }, { role: "assistant", content: [], stopReason: "aborted" }]);
    },
  );

  it.each(["resolve", "reject"])("F14 a StreamFn that comes to life after the abort (%s) changes nothing", async (how) => {
    const controller = new AbortController();
    const late = deferred<ReturnType<typeof rawStream>>();
    const stream = rawStream([{ type: "done", message: answer({ content: [{ type: "text", text: "late" }] }) }]);
    const running = play(() => late.promise, { signal: controller.signal });
    await macrotasks();
    controller.abort("stop");
    const played = await running;
    if (how === "resolve") late.resolve(stream);
    if (how === "reject") late.reject(new Error("too late"));
    await macrotasks();
    expect(stream.seen.pulled).toBe(0);
    expect(played.messages[1]).toMatchObject({ content: [], stopReason: "aborted" });
  });

  const chunks = () => scriptedModel([["a text in many deltas"].map((text) => ({ text })), "never asked for"], { chunkSize: 2 });

  it("F15 abort() inside the sink never throws and ends the run with one agent_end", async () => {
    const controller = new AbortController();
    let updates = 0;
    const onEvent = (event: AgentEvent): void => {
      if (event.type === "message_update" && ++updates === 2) controller.abort("from the listener");
    };
    const played = await play(chunks(), { signal: controller.signal, onEvent });
    expect(updates).toBe(2);
    expect(played.outcome).toBe("aborted");
    expect(textOf(played.messages[1])).toBe("a ");
  });

  it("F15 abort() from inside the iteration of an event stream ends it with the closing events", async () => {
    const controller = new AbortController();
    const stage = new Stage(chunks(), { signal: controller.signal });
    const { prompts, context, config, signal, streamFn } = stage;
    const stream = agentLoop(prompts, context, config, signal, streamFn);
    let updates = 0;
    for await (const event of stream) {
      stage.events.push(event);
      if (event.type === "message_update" && ++updates === 2) controller.abort("from the consumer");
    }
    const played = stage.check(await stream.result());
    expect(played.outcome).toBe("aborted");
    expect(played.requests).toHaveLength(1);
    expect(played.messages[1]).toMatchObject({ stopReason: "aborted" });
  });

  it.each(["asks for result()", "forgets the stream"])(
    "F16 a consumer that leaves the iteration early and %s leaves nothing running",
    async (then) => {
      let ran = 0;
      const stage = new Stage([[{ text: "first" }, call("a", "x")], "never asked for"], { tools: [makeTool("x", () => `${++ran}`)] });
      const { prompts, context, config, signal, streamFn } = stage;
      const stream = agentLoop(prompts, context, config, signal, streamFn);
      for await (const event of stream) if (event.type === "message_update") break;
      const messages = then === "asks for result()" ? await stream.result() : [];
      await macrotasks();
      expect(stage.requests).toHaveLength(1);
      expect(stage.options[0]?.signal?.aborted).toBe(true);
      expect(ran).toBe(0);
      if (messages.length > 0) expect(messages).toMatchObject([{ role: "user" }, { role: "assistant", stopReason: "aborted" }]);
      stage.check(messages, undefined, { left: true });
    },
  );

  it("F16 a consumer that leaves while a tool runs: the tool is told, and every call is answered", async () => {
    const reason = deferred<unknown>();
    const slow = makeTool("slow", async (_id, _args, signal) => {
      reason.resolve(await aborted(signal));
      return "stopped";
    });
    const stage = new Stage([[call("a", "slow"), call("b", "slow")], "never asked for"], { tools: [slow] });
    const { prompts, context, config, signal, streamFn } = stage;
    const stream = agentLoop(prompts, context, config, signal, streamFn);
    for await (const event of stream) if (event.type === "tool_execution_start" && event.toolCallId === "b") break;
    const messages = await stream.result();
    expect(resultsOf({ messages })).toMatchObject([
      { toolCallId: "a", isError: true },
      { toolCallId: "b", isError: true },
    ]);
    stage.check(messages, undefined, { left: true });
    expect(stage.requests).toHaveLength(1);
  });
});

describe("field reports C: abort listeners", () => {
  it("F19 40 turns and a batch of 30 parallel calls add one listener to the caller's signal, and no warning", async () => {
    const listening = makeTool("x", async (_id, _args, signal) => {
      signal.addEventListener("abort", () => {});
      return "ok";
    });
    const turns = Array.from({ length: 40 }, (_, i) => [call(`t${i}`, "x")]);
    const batch = Array.from({ length: 30 }, (_, i) => call(`p${i}`, "x"));
    const config = { beforeToolCall: async () => {}, afterToolCall: async () => {}, transformContext: async (all: never[]) => all };
    const played = await play([...turns, batch, "done"], { tools: [listening], config });
    expect(played.requests).toHaveLength(42);
    expect(played.executed).toHaveLength(70);
    expect(played.peakListeners).toBe(1);
  });

  it("F19 300 runs on one signal leave its listeners as they were, however the runs end", async () => {
    const { signal } = new AbortController();
    const answers: ScriptedAnswer[] = ["ok", { errorMessage: "overloaded" }, { fault: { kind: "throwSync" } }];
    for (let i = 0; i < 300; i++) {
      const played = await play([answers[i % 3] as ScriptedAnswer], { signal });
      expect(played.peakListeners).toBe(1);
    }
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  const last = answer({ content: [{ type: "text", text: "done" }] });

  it.each([
    ["no prompts", { prompts: [] }, "no_prompts"],
    ["two tools of one name", { tools: [makeTool("x", () => ""), makeTool("x", () => "")] }, "duplicate_tool"],
    ["an empty context", { continuing: true }, "empty_context"],
    ["an assistant message at the end", { continuing: true, messages: [userMessage("go"), last] }, "cannot_continue_from_assistant"],
  ])("F19 a run that is refused (%s) leaves no listener and no timer", async (_name, options, code) => {
    for (const signal of [new AbortController().signal, AbortSignal.abort("before")]) {
      const played = await play(["never asked for"], { ...options, signal });
      expect(played.rejection?.code).toBe(code);
    }
  });
});
