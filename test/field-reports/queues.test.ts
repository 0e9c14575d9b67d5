/** Field reports O and Q: steering and follow-ups, limits. SPEC 4.4, 6.3, 7.2. */
import { type AgentEvent, type AgentLoopConfig, type AgentMessage, userMessage } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { deferred, makeTool, resultsOf, textOf } from "../helpers.js";
import { call, deepFreeze, hostQueue, macrotasks, type PlayOptions, play, userTexts, watchConditions } from "./conditions.js";

watchConditions();

const x = makeTool("x", () => "ran");
const roles = ({ messages }: { messages: AgentMessage[] }) => messages.map(({ role }) => role);

describe("field reports O: steering and follow-ups", () => {
  const endings: [string, ScriptedAnswer[], PlayOptions, string][] = [
    ["an abort", [() => ({ fault: { kind: "stall" } })], {}, "aborted"],
    ["a failed answer", [{ errorMessage: "overloaded" }], {}, "error"],
    ["shouldStopAfterTurn", ["text"], { config: { shouldStopAfterTurn: () => true } }, "stopped"],
    ["a hook that throws", ["text"], { config: { prepareNextTurn: () => Promise.reject(new Error("x")) } }, "error"],
  ];

  it.each(endings)(
    "F72 F76 what was not polled stays queued after %s, and the next run delivers it once",
    async (_name, answers, options, outcome) => {
      const controller = new AbortController();
      const queue = hostQueue();
      queue.texts.push("F");
      const running = play(answers, {
        signal: controller.signal,
        config: { ...options.config, getSteeringMessages: queue.poll, getFollowUpMessages: queue.poll },
      });
      await macrotasks();
      if (outcome === "aborted") controller.abort("stop");
      const first = await running;
      expect(first.outcome).toBe(outcome);
      expect(queue.texts).toEqual(["F"]);
      const second = await play(["one", "two"], { messages: first.messages, config: { getFollowUpMessages: queue.poll } });
      expect(userTexts(second.requests[0])).toEqual(["go", "go"]);
      expect(userTexts(second.requests[1])).toEqual(["go", "go", "F"]);
      expect(queue.texts).toEqual([]);
    },
  );

  it("F72 a batch that is blocked whole goes on, and the follow-up comes at the natural end", async () => {
    const queue = hostQueue();
    queue.texts.push("F");
    const config: Partial<AgentLoopConfig> = { beforeToolCall: () => ({ block: true }), getFollowUpMessages: queue.poll };
    const played = await play([[call("a", "x"), call("b", "x")], "sorry", "ok"], { tools: [x], config });
    expect(played.executed).toEqual([]);
    expect(roles(played)).toEqual(["user", "assistant", "toolResult", "toolResult", "assistant", "user", "assistant"]);
    expect(played.requests.map(userTexts)).toEqual([["go"], ["go"], ["go", "F"]]);
  });

  it.each(["getSteeringMessages", "getFollowUpMessages"] as const)(
    "F72 an abort during a poll of %s loses nothing: one closing turn holds what it took",
    async (name) => {
      const controller = new AbortController();
      const polled = deferred<AgentMessage[]>();
      const asked = deferred();
      const poll = (): Promise<AgentMessage[]> => {
        asked.resolve();
        return polled.promise;
      };
      const running = play(["text", "never asked for"], { signal: controller.signal, config: { [name]: poll } });
      await asked.promise;
      controller.abort("stop");
      await macrotasks();
      polled.resolve(deepFreeze([userMessage("one"), userMessage("two")]));
      const played = await running;
      expect(played.outcome).toBe("aborted");
      expect(played.requests).toHaveLength(1);
      expect(played.messages.slice(2)).toMatchObject([
        { role: "user", content: "one" },
        { role: "user", content: "two" },
        { role: "assistant", content: [], stopReason: "aborted" },
      ]);
    },
  );

  it("F72 an abort during a poll that takes nothing adds no turn", async () => {
    const controller = new AbortController();
    const getSteeringMessages = async (): Promise<AgentMessage[]> => {
      controller.abort("stop");
      return [];
    };
    const played = await play(["text"], { signal: controller.signal, config: { getSteeringMessages } });
    expect(played.outcome).toBe("aborted");
    expect(roles(played)).toEqual(["user", "assistant"]);
  });

  it("F73 a message sent while a tool runs is in the very next request", async () => {
    const queue = hostQueue();
    const steered = makeTool("x", (id) => {
      if (id === "a") queue.texts.push("halt");
      return "ran";
    });
    const played = await play([[call("a", "x")], [call("b", "x")], [call("c", "x")], "done"], {
      tools: [steered],
      config: { getSteeringMessages: queue.poll },
    });
    expect(played.requests.map(userTexts)).toEqual([["go"], ["go", "halt"], ["go", "halt"], ["go", "halt"]]);
    expect(played.requests[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "user"]);
  });

  it.each([
    ["all", [["go"], ["go", "1", "2", "3"]]],
    ["one-at-a-time", [["go"], ["go", "1"], ["go", "1", "2"], ["go", "1", "2", "3"]]],
  ] as const)("F74 three steering messages of one batch keep their order (%s)", async (mode, expected) => {
    const queue = hostQueue(mode);
    const steered = makeTool("x", () => {
      queue.texts.push("1", "2", "3");
      return "ran";
    });
    const answers = [[call("a", "x")], ...expected.slice(1).map(() => "ok")];
    const played = await play(answers, { tools: [steered], config: { getSteeringMessages: queue.poll } });
    expect(played.requests.map(userTexts)).toEqual(expected);
    expect(played.outcome).toBe("completed");
  });

  it.each([
    ["all", [["go"], ["go", "A", "B"], ["go", "A", "B", "S"]]],
    ["one-at-a-time", [["go"], ["go", "A"], ["go", "A", "S"], ["go", "A", "S", "B"]]],
  ] as const)("F75 follow-ups come at the end, steering before them, each once and in order (%s)", async (mode, expected) => {
    const steering = hostQueue(mode);
    const followUps = hostQueue(mode);
    const answers: ScriptedAnswer[] = [
      () => {
        followUps.texts.push("A", "B");
        return "first";
      },
      () => {
        steering.texts.push("S");
        return "answer to A";
      },
      ...expected.slice(2).map(() => "ok"),
    ];
    const config = { getSteeringMessages: steering.poll, getFollowUpMessages: followUps.poll };
    const played = await play(answers, { config });
    expect(played.requests.map(userTexts)).toEqual(expected);
    expect(played.outcome).toBe("completed");
  });

  it("F76 a follow-up queued inside the last turn_end is delivered, one queued inside agent_end stays queued", async () => {
    const queue = hostQueue();
    let turnEnds = 0;
    const onEvent = (event: AgentEvent): void => {
      if (event.type === "turn_end" && ++turnEnds === 1) queue.texts.push("at turn_end");
      if (event.type === "agent_end") queue.texts.push("at agent_end");
    };
    const played = await play(["one", "two"], { onEvent, config: { getFollowUpMessages: queue.poll } });
    expect(played.requests.map(userTexts)).toEqual([["go"], ["go", "at turn_end"]]);
    expect(queue.texts).toEqual(["at agent_end"]);
  });
});

describe("field reports Q: limits", () => {
  it("F81 a host's turn limit ends the run with everything in hand, and the run can be continued", async () => {
    const answers: ScriptedAnswer[] = Array.from({ length: 5 }, (_, i) => [call(`t${i}`, "x")]);
    const first = await play([...answers, "never asked for"], { tools: [x], config: { shouldStopAfterTurn: ({ turn }) => turn === 5 } });
    expect(first.outcome).toBe("stopped");
    expect(first.end.error).toBeUndefined();
    expect(first.executed).toHaveLength(5);
    expect(roles(first).slice(-2)).toEqual(["assistant", "toolResult"]);
    const second = await play(["done"], { messages: first.messages, continuing: true, tools: [x] });
    expect(second.outcome).toBe("completed");
    expect(second.requests[0]?.messages).toEqual(first.messages);
    expect(second.messages).toHaveLength(1);
  });

  it("F82 a tool that is polled with the same arguments is not cut off", async () => {
    let polls = 0;
    const poll = makeTool("poll", () => (++polls < 5 ? "pending" : "done"));
    const answers: ScriptedAnswer[] = Array.from({ length: 5 }, (_, i) => [call(`p${i}`, "poll", { job: 1 })]);
    const played = await play([...answers, "ready"], { tools: [poll] });
    expect(resultsOf(played).map(textOf)).toEqual(["pending", "pending", "pending", "pending", "done"]);
    expect(played.outcome).toBe("completed");
    expect(textOf(played.messages[played.messages.length - 1])).toBe("ready");
  });
});
