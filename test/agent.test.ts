import { Agent, type AgentEvent, type AgentOptions, type StreamFn, userMessage } from "turnloop";
import { assertEventSequence, type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, describe, expect, it, vi } from "vitest";
import { aborted, deferred, makeTool, model, outline, textOf } from "./helpers.js";

afterEach(() => {
  vi.useRealTimers();
});

const echo = makeTool("echo", () => "ok");

function makeAgent(answers: ScriptedAnswer[] | StreamFn, options: Partial<AgentOptions> = {}) {
  const streamFn = Array.isArray(answers) ? scriptedModel(answers) : answers;
  const agent = new Agent({ model, streamFn, tools: [echo], onListenerError: () => {}, ...options });
  const events: AgentEvent[] = [];
  agent.subscribe((event) => void events.push(event));
  return {
    agent,
    events,
    requests: () => (streamFn as ReturnType<typeof scriptedModel>).requests.map(({ messages }) => messages.map(textOf)),
  };
}

describe("Agent", () => {
  it("runs prompts on the conversation it holds", async () => {
    // SPEC 8.1, 8.2
    const { agent, events, requests } = makeAgent(["one", { content: ["two"], usage: { input: 3, output: 4 } }]);
    const first = await agent.prompt("hello");
    expect([first.outcome, first.messages.map(textOf), agent.isRunning]).toEqual(["completed", ["hello", "one"], false]);
    assertEventSequence(events);
    const second = await agent.prompt([userMessage("a"), userMessage("b")]);
    expect(requests()).toEqual([["hello"], ["hello", "one", "a", "b"]]);
    expect(agent.messages.map(textOf)).toEqual(["hello", "one", "a", "b", "two"]);
    expect(second.usage.totalTokens).toBe(7);
  });

  it("takes a message with images, and a signal of the caller", async () => {
    const image = { type: "image" as const, data: "AA==", mimeType: "image/png" };
    const { agent } = makeAgent(["seen", "never"]);
    await agent.prompt("look", { images: [image] });
    expect(agent.messages[0]).toMatchObject({ content: [{ text: "look" }, image] });
    const { outcome } = await agent.prompt("again", { signal: AbortSignal.abort("late") });
    expect([outcome, agent.lastError?.message]).toEqual(["aborted", "Aborted: late"]);
  });

  it("refuses misuse and changes nothing", async () => {
    // SPEC 8.5
    const gate = deferred();
    const { agent } = makeAgent([() => gate.promise.then(() => "x"), "y"]);
    const running = agent.prompt("go");
    for (const call of [agent.prompt("again"), agent.continue(), agent.retry()])
      await expect(call).rejects.toMatchObject({ code: "busy", message: expect.stringContaining("steer") });
    expect(() => agent.reset()).toThrow(expect.objectContaining({ code: "busy" }));
    gate.resolve();
    await running;
    const before = agent.messages;
    for (const prompt of ["", [], userMessage("")]) await expect(agent.prompt(prompt)).rejects.toMatchObject({ code: "no_prompts" });
    expect(() => agent.steer("")).toThrow(expect.objectContaining({ code: "no_prompts" }));
    expect(() => {
      agent.steeringQueue.mode = "some" as never;
    }).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    await expect(agent.continue()).rejects.toMatchObject({ code: "cannot_continue_from_assistant" });
    expect(agent.messages).toBe(before);
    await expect(makeAgent([]).agent.continue()).rejects.toMatchObject({ code: "empty_context" });
    const { agent: broken } = makeAgent(undefined as never);
    broken.steer("kept");
    await expect(broken.prompt("x")).rejects.toMatchObject({ code: "no_stream_fn" });
    expect([broken.messages, broken.steeringQueue.size, broken.isRunning]).toEqual([[], 1, false]);
  });

  it("is up to date before its listeners hear of an event", async () => {
    // SPEC 8.2
    const { agent } = makeAgent([[{ text: "hm" }, { toolCall: "echo", id: "a" }], "done"]);
    const seen: unknown[] = [];
    agent.subscribe((event) => {
      const { messages, streamingMessage, pendingToolCalls, isRunning } = agent;
      if (event.type === "message_end") seen.push([messages.at(-1)?.role, streamingMessage]);
      if (event.type === "message_update") expect(textOf(streamingMessage)).toBe(textOf(event.message));
      if (event.type.startsWith("tool_execution")) seen.push([event.type, [...pendingToolCalls]]);
      if (event.type === "agent_end") seen.push(["end", isRunning]);
    });
    await agent.prompt("go");
    expect(seen).toEqual([
      ["user", undefined],
      ["assistant", undefined],
      ["tool_execution_start", ["a"]],
      ["tool_execution_end", []],
      ["toolResult", undefined],
      ["assistant", undefined],
      ["end", true],
    ]);
  });

  it("keeps its messages from those who read them and from listeners", async () => {
    const { agent } = makeAgent([[{ toolCall: "echo" }], { errorMessage: "down" }]);
    for (const kind of ["message_start", "message_end"] as const) {
      agent.on(kind, ({ message }) => {
        (message as { content?: unknown }).content = "vandalised";
        (message as { stopReason?: unknown }).stopReason = "stop";
        Reflect.deleteProperty(message, "content");
      });
    }
    await agent.prompt("go");
    expect(agent.messages.map(textOf)).toEqual(["go", "", "ok", ""]);
    expect(agent.messages.at(-1)).toMatchObject({ stopReason: "error" });
    expect(() => (agent.messages as unknown[]).push("junk")).toThrow(TypeError);
    expect(agent.messages).toBe(agent.messages);
  });

  it("changes of system prompt, model, tools and messages during a run count from the next turn on", async () => {
    // SPEC 8.2
    const seen: unknown[] = [];
    const scripted = scriptedModel([[{ toolCall: "echo" }], [{ toolCall: "late" }], "done"]);
    const { agent } = makeAgent((asked, context, options) => {
      seen.push([asked.id, context.systemPrompt, context.tools?.map(({ name }) => name), context.messages.length]);
      return scripted(asked, context, options);
    });
    agent.on("turn_end", () => {
      if (seen.length !== 1) return;
      agent.systemPrompt = "new";
      agent.model = { id: "other", provider: "p" };
      agent.tools.register(makeTool("late", () => "late ran"));
      agent.replaceMessages([userMessage("summary")]);
    });
    const { messages } = await agent.prompt("go");
    expect(seen).toEqual([
      ["test-model", undefined, ["echo"], 1],
      ["other", "new", ["echo", "late"], 1],
      ["other", "new", ["echo", "late"], 3],
    ]);
    expect(messages.map(textOf)).toEqual(["go", "", "ok", "", "late ran", "done"]);
    expect(agent.messages.map(textOf)).toEqual(["summary", "", "late ran", "done"]);
  });

  it("changes made by any hook between two turns count for the next one", async () => {
    // SPEC 8.2
    for (const hook of ["prepareNextTurn", "shouldStopAfterTurn", "getSteeringMessages", "getFollowUpMessages"]) {
      const seen: unknown[] = [];
      const scripted = scriptedModel([hook === "getFollowUpMessages" ? "x" : [{ toolCall: "echo" }], "done"]);
      const { agent } = makeAgent(
        (asked, context, options) => {
          seen.push([asked.id, context.systemPrompt, textOf(context.messages[0])]);
          return scripted(asked, context, options);
        },
        {
          [hook]: () => {
            if (seen.length > 1) return undefined;
            agent.systemPrompt = "new";
            agent.model = { id: "other", provider: "p" };
            agent.replaceMessages([userMessage("summary")]);
            return hook === "getFollowUpMessages" ? [userMessage("more")] : undefined;
          },
        },
      );
      await agent.prompt("go");
      expect(seen, hook).toEqual([
        ["test-model", undefined, "go"],
        ["other", "new", "summary"],
      ]);
    }
  });

  it("aborts, stays usable, and tells when it is idle", async () => {
    const { agent } = makeAgent([[{ toolCall: "wait" }], "fine"]);
    agent.tools.register(makeTool("wait", (_id, _args, signal) => aborted(signal).then(() => "stopped")));
    agent.abort("nothing runs");
    agent.on("tool_execution_start", () => agent.abort("enough"));
    const running = agent.prompt("go");
    const idle = agent.waitForIdle().then(() => agent.isRunning);
    expect(await running).toMatchObject({ outcome: "aborted", error: { message: "Aborted: enough" } });
    expect(await idle).toBe(false);
    agent.removeAllListeners();
    expect((await agent.prompt("go on")).outcome).toBe("completed");
    agent.reset();
    expect([agent.messages, agent.lastError]).toEqual([[], undefined]);
  });

  it("retries without the failed answer", async () => {
    // SPEC 8.1 (F54)
    const { agent, requests } = makeAgent([[{ toolCall: "echo" }], { errorMessage: "overloaded" }, "done"]);
    expect(await agent.prompt("go")).toMatchObject({ outcome: "error", error: { message: "overloaded" } });
    expect(agent.lastError?.message).toBe("overloaded");
    const { outcome, messages } = await agent.retry();
    expect([outcome, messages.map(textOf), agent.lastError]).toEqual(["completed", ["done"], undefined]);
    expect(requests()[2]).toEqual(requests()[1]);
    expect(agent.messages.map(textOf)).toEqual(["go", "", "ok", "done"]);
  });
});

describe("queues", () => {
  it("steering is taken after each turn, follow-ups at the end, one at a time", async () => {
    // SPEC 8.3 (F73, F75)
    const { agent, requests } = makeAgent([[{ toolCall: "echo" }], "A", "B", "C"]);
    agent.once("tool_execution_start", () => {
      agent.followUp("f1");
      agent.followUp("f2");
      agent.steer("s1");
      agent.steer("s2");
    });
    await agent.prompt("go");
    expect(agent.messages.map(textOf)).toEqual(["go", "", "ok", "s1", "A", "s2", "B", "f1", "C", "f2", ""]);
    expect(requests()[1]).toEqual(["go", "", "ok", "s1"]);
    expect(agent.lastError?.message).toBe("script exhausted");
  });

  it("mode all gives everything at once", async () => {
    // SPEC 8.3 (F74)
    const { agent } = makeAgent([[{ toolCall: "echo" }], "A", "B"], { steeringMode: "all", followUpMode: "all" });
    agent.once("tool_execution_start", () => {
      for (const text of ["s1", "s2", "s3"]) agent.steer(text);
      for (const text of ["f1", "f2"]) agent.followUp(text);
    });
    await agent.prompt("go");
    expect(agent.messages.map(textOf)).toEqual(["go", "", "ok", "s1", "s2", "s3", "A", "f1", "f2", "B"]);
  });

  it("steering queued before a run goes into its first request, right after the prompt", async () => {
    // SPEC 8.3
    const { agent, requests } = makeAgent(["x"]);
    agent.steer("by the way");
    await agent.prompt("go");
    expect(requests()).toEqual([["go", "by the way"]]);
  });

  it("messages survive aborts, errors and stops, and go out with the next run", async () => {
    // SPEC 8.3 (F72, F76)
    for (const ending of ["abort", "error", "stop"]) {
      const { agent } = makeAgent([...(ending === "abort" ? [] : [ending === "error" ? { errorMessage: "x" } : "x"]), "y", "z"], {
        shouldStopAfterTurn: () => ending === "stop",
      });
      agent.once("turn_start", () => {
        agent.steer("s");
        agent.followUp("f");
        if (ending === "abort") agent.abort();
      });
      await agent.prompt("go");
      expect([agent.steeringQueue.size, agent.followUpQueue.size]).toEqual([1, 1]);
      await agent.prompt("next");
      // stopped after every turn, or out of answers: what was not taken still waits
      const delivered = agent.messages.map(textOf).filter((text) => ["s", "f"].includes(text));
      expect([delivered, agent.followUpQueue.size]).toEqual(ending === "stop" ? [["s"], 1] : [["s", "f"], 0]);
    }
  });

  it("continue from an answer delivers steering, else a follow-up", async () => {
    // SPEC 8.5
    const { agent } = makeAgent(["x", "y", "z"]);
    agent.on("agent_end", () => agent.messages.length === 2 && agent.followUp("late"));
    await agent.prompt("go");
    expect(agent.followUpQueue.size).toBe(1);
    await agent.continue();
    agent.steer("now");
    await agent.continue();
    expect(agent.messages.map(textOf)).toEqual(["go", "x", "late", "y", "now", "z"]);
  });

  it("can be looked at, trimmed and emptied, and tell of each change", async () => {
    // SPEC 8.2, 8.4
    const { agent } = makeAgent(["x"]);
    const changes: unknown[] = [];
    agent.on("queue_change", ({ steering, followUp }) => changes.push([steering.map(textOf), followUp.map(textOf)]));
    const message = userMessage("b");
    agent.followUp("a");
    agent.followUp(message);
    expect(agent.followUpQueue.peek().map(textOf)).toEqual(["a", "b"]);
    expect([agent.followUpQueue.remove(message), agent.followUpQueue.remove(message)]).toEqual([true, false]);
    agent.steer("c");
    agent.steeringQueue.clear();
    agent.steeringQueue.clear();
    await agent.prompt("go");
    expect(changes).toEqual([
      [[], ["a"]],
      [[], ["a", "b"]],
      [[], ["a"]],
      [["c"], ["a"]],
      [[], ["a"]],
      [[], []],
    ]);
  });
});

describe("listeners", () => {
  const kinds = [
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
  ] as const;
  const noisy = makeTool("noisy", (_id, _args, _signal, onUpdate) => {
    onUpdate({ content: [] });
    return "ok";
  });
  const answers: ScriptedAnswer[] = [[{ text: "x" }, { toolCall: "noisy", id: "a" }], "done"];

  it.each(kinds)("that fail at %s reach neither the run nor the others, and are reported once", async (kind) => {
    // SPEC 8.4
    const clean = makeAgent(answers, { tools: [noisy], now: () => 1 });
    await clean.agent.prompt("go");
    for (const fail of [
      () => {
        throw new Error("listener");
      },
      () => Promise.reject(new Error("listener")),
    ]) {
      const reported: unknown[] = [];
      const { agent, events } = makeAgent(answers, {
        tools: [noisy],
        now: () => 1,
        onListenerError: (error, event) => reported.push([(error as Error).message, (event as AgentEvent).type]),
      });
      let on = 0;
      let subscribed = 0;
      agent.on(kind as "turn_start", fail);
      agent.on(kind as "turn_start", () => void on++);
      agent.subscribe((event) => (event.type === kind ? fail() : undefined));
      agent.subscribe((event) => {
        if (event.type === kind) subscribed++;
      });
      const { outcome } = await agent.prompt("go");
      await Promise.resolve();
      expect(outcome).toBe("completed");
      expect(events).toEqual(clean.events);
      const count = events.filter((event) => event.type === kind).length;
      expect([on, subscribed]).toEqual([count, count]);
      expect(reported).toEqual(Array.from({ length: 2 * count }, () => ["listener", kind]));
    }
  });

  it("of subscribe are awaited in order, before the run goes on", async () => {
    // SPEC 8.4: message_end of the answer is handled before its tools start
    const log: string[] = [];
    const { agent } = makeAgent([[{ toolCall: "t" }], "x"], { tools: [makeTool("t", () => `${log.push("tool")}`)] });
    for (const name of ["first", "second"]) {
      agent.subscribe(async (event) => {
        if (event.type !== "message_end" || event.message.role !== "assistant") return;
        await Promise.resolve();
        log.push(name);
      });
    }
    await agent.prompt("go");
    expect(log).toEqual(["first", "second", "tool", "first", "second"]);
  });

  it("can be taken back, also while an event is told", async () => {
    const { agent } = makeAgent(["x", "y"]);
    const heard: string[] = [];
    const listener = (): void => void heard.push("on");
    agent.on("agent_start", listener);
    agent.once("agent_start", () => void heard.push("once"));
    let stop: () => void = () => {};
    agent.subscribe((event) => (event.type === "agent_start" ? stop() : undefined));
    stop = agent.subscribe((event) => void heard.push(event.type));
    await agent.prompt("go");
    agent.off("agent_start", listener);
    await agent.prompt("again");
    expect(heard).toEqual(["on", "once"]);
  });

  it("that call the agent meet a clear refusal, not a dead end", async () => {
    // F80
    const { agent } = makeAgent(["x", "y"]);
    const refused: unknown[] = [];
    agent.subscribe((event) => {
      if (event.type === "turn_start") agent.prompt("inside").catch((error) => refused.push(error.code));
      if (event.type === "message_end" && agent.messages.length === 1) agent.steer("steered");
    });
    await agent.prompt("go");
    expect(refused).toEqual(["busy", "busy"]);
    expect(agent.messages.map(textOf)).toEqual(["go", "x", "steered", "y"]);
  });

  it("that never settle under an abort are reported once and hear nothing more of that run", async () => {
    // SPEC 7.2, 8.4
    vi.useFakeTimers();
    const reported: unknown[] = [];
    const { agent, events } = makeAgent(["x", "y"], { onListenerError: (error) => reported.push((error as Error).message) });
    const heard: string[] = [];
    agent.subscribe((event) => {
      heard.push(event.type);
      return heard.length === 2 ? new Promise<void>(() => {}) : undefined;
    });
    const running = agent.prompt("go");
    await vi.advanceTimersByTimeAsync(1000);
    agent.abort();
    await vi.advanceTimersByTimeAsync(250);
    expect((await running).outcome).toBe("aborted");
    assertEventSequence(events);
    expect(heard).toEqual(["agent_start", "turn_start"]);
    expect(reported).toEqual([expect.stringContaining("did not settle")]);
    expect((await agent.prompt("next")).outcome).toBe("completed");
    expect(heard.length).toBeGreaterThan(8);
    expect(vi.getTimerCount()).toBe(0);
    expect(outline(events).filter((line) => line.startsWith("agent_end"))).toEqual(["agent_end aborted", "agent_end completed"]);
  });
});
