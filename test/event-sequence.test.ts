import type { AgentEvent, AgentMessage, ToolResultMessage } from "turnloop";
import { userMessage } from "turnloop";
import { assertEventSequence, recordEvents } from "turnloop/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { answer, deepFreeze, done, streams, toolCall } from "./hand-written.js";
import { continueRun, makeTool, type RunOptions, run } from "./helpers.js";

type Sequence = AgentEvent[];
type Damage = (events: Sequence) => unknown[];

const tools = ["a", "b"].map((name) => makeTool(name, () => name));
const calls = [
  { toolCall: "a", id: "c1" },
  { toolCall: "b", id: "c2" },
  { toolCall: "none", id: "c3" },
];

const progress = (name: string) =>
  makeTool(name, (_id, _args, _signal, update) => {
    update({ content: [] });
    return name;
  });

async function sequence(answers: Parameters<typeof run>[0], options: RunOptions = {}): Promise<Sequence> {
  return (await run(answers, { tools, ...options })).events;
}

describe("recordEvents", () => {
  // SPEC 13.2
  it("is a sink that keeps every event in order, as it was when it came", async () => {
    const recorder = recordEvents();
    const seen: string[] = [];
    const { events } = await run(["hello, world and more of it"], {
      onEvent: (event) => {
        expect(recorder(event)).toBeUndefined();
        seen.push(JSON.stringify(event));
      },
    });
    expect(recorder.events).toEqual(events);
    expect(recorder.events.map((event) => JSON.stringify(event))).toEqual(seen);
    expect(recorder.events.length).toBeGreaterThan(8);
    expect(recordEvents().events).toEqual([]);
  });
});

describe("assertEventSequence accepts", () => {
  const steer = () => {
    let polls = 0;
    return () => (polls++ === 0 ? [userMessage("steer"), { role: "note" } as unknown as AgentMessage] : []);
  };

  // SPEC 13.2, 4.6
  it.each<[string, () => Promise<Sequence>]>([
    ["a text", () => sequence(["x"])],
    [
      "several prompts",
      () => sequence(["x"], { prompts: [userMessage("1"), { role: "note" } as unknown as AgentMessage, userMessage("2")] }),
    ],
    ["a continued run", async () => (await continueRun(["x"], { messages: [userMessage("1")] })).events],
    ["tool turns", () => sequence([calls, [{ text: "y" }, ...calls.slice(0, 1)], "end"])],
    ["a sequential batch", () => sequence([calls, "end"], { config: { toolExecution: "sequential" } })],
    ["progress of a tool", () => sequence([[{ toolCall: "p" }], "end"], { tools: [progress("p")] })],
    [
      "steering and follow-ups",
      () => sequence([calls, "x", "y"], { config: { getSteeringMessages: steer(), getFollowUpMessages: steer() } }),
    ],
    [
      "an error turn with calls in it",
      () => sequence(streams([{ type: "error", reason: "error", error: answer([toolCall("a", {})], { stopReason: "error" }) }])),
    ],
    ["an error after a tool turn", () => sequence([calls, { errorMessage: "x" }])],
    ["cut calls", () => sequence([{ content: calls, stopReason: "length" }, "end"])],
    ["ids that recur in later turns", () => sequence([calls, calls, "end"])],
    ["an answer without updates", () => sequence(streams([done([])]))],
    ["an aborted run", () => sequence(["x"], { signal: AbortSignal.abort() })],
    ["a restarted stream", () => sequence([{ content: ["a long enough text"], fault: { kind: "restart", afterEvents: 3 } }])],
  ])("%s", async (_name, make) => {
    const events = deepFreeze(await make());
    expect(() => assertEventSequence(events)).not.toThrow();
    expect(() => assertEventSequence(JSON.parse(JSON.stringify(events)))).not.toThrow();
  });
});

describe("assertEventSequence refuses", () => {
  let valid: Sequence;
  beforeAll(async () => {
    valid = structuredClone(await sequence([{ content: ["text ", ...calls] }, "the end"], { tools: [progress("a"), tools[1]!] }));
  });

  const indexOf = (events: Sequence, type: string, nth = 0, id?: string) => {
    const found = events.flatMap((event, i) =>
      event.type === type && (id === undefined || (event as { toolCallId?: string }).toolCallId === id) ? [i] : [],
    );
    const index = found[nth];
    if (index === undefined) throw new Error(`no ${type} ${nth}`);
    return index;
  };
  const edit = (events: Sequence, index: number, change: (event: any) => void) => {
    const copy = structuredClone(events);
    change(copy[index]);
    return copy;
  };
  const without =
    (...at: [type: string, nth?: number, id?: string]): Damage =>
    (events) =>
      events.filter((_event, i) => i !== indexOf(events, ...at));
  const twice =
    (...at: [type: string, nth?: number, id?: string]): Damage =>
    (events) =>
      events.flatMap((event, i) => (i === indexOf(events, ...at) ? [event, event] : [event]));
  const swapped =
    (a: [string, number?, string?], b: [string, number?, string?]): Damage =>
    (events) => {
      const copy = events.slice();
      const [i, j] = [indexOf(events, ...a), indexOf(events, ...b)];
      [copy[i], copy[j]] = [copy[j]!, copy[i]!];
      return copy;
    };
  const moved =
    (from: [string, number?, string?], behind: [string, number?, string?]): Damage =>
    (events) => {
      const event = events[indexOf(events, ...from)]!;
      const rest = events.filter((other) => other !== event);
      const target = rest.indexOf(events[indexOf(events, ...behind)]!);
      return [...rest.slice(0, target + 1), event, ...rest.slice(target + 1)];
    };
  const changed =
    (type: string, nth: number, change: (event: any) => void): Damage =>
    (events) =>
      edit(events, indexOf(events, type, nth), change);

  // SPEC 13.2, 4.6: messages in order are: 0 prompt, 1 answer, 2 to 4 results, 5 answer
  it.each<[string, Damage]>([
    ["nothing at all", () => []],
    ["a run without a turn", (events) => [events[0], { type: "agent_end", messages: [], outcome: "completed" }]],
    ["no agent_start", without("agent_start")],
    ["two agent_starts", twice("agent_start")],
    ["no agent_end", without("agent_end")],
    ["two agent_ends", twice("agent_end")],
    ["something after agent_end", (events) => [...events, events[1]]],
    ["a run that was cut off in a turn", (events) => events.slice(0, indexOf(events, "turn_end"))],
    ["a run that was cut off in a message", (events) => events.slice(0, indexOf(events, "message_update", 1))],
    ["no turn_start", without("turn_start", 1)],
    ["two turn_starts", twice("turn_start", 0)],
    ["no turn_end", without("turn_end", 0)],
    ["no last turn_end", without("turn_end", 1)],
    ["two turn_ends", twice("turn_end", 0)],
    ["a prompt before the turn", moved(["turn_start", 0], ["message_end", 0])],
    [
      "a prompt after the answer",
      (events) => {
        const [start, end] = [indexOf(events, "message_start", 0), indexOf(events, "message_end", 0)];
        const prompt = events.slice(start, end + 1);
        const rest = [...events.slice(0, start), ...events.slice(end + 1)];
        const at = indexOf(rest, "message_end", 0);
        return [...rest.slice(0, at + 1), ...prompt, ...rest.slice(at + 1)];
      },
    ],
    [
      "a turn without an answer",
      (events) => events.filter((_event, i) => i < indexOf(events, "message_start", 5) || i > indexOf(events, "message_end", 5)),
    ],
    [
      "two answers in a turn",
      (events) => [
        ...events.slice(0, indexOf(events, "turn_end", 1)),
        events[indexOf(events, "message_start", 5)]!,
        events[indexOf(events, "message_end", 5)]!,
        ...events.slice(indexOf(events, "turn_end", 1)),
      ],
    ],
    ["no message_start", without("message_start", 1)],
    ["two message_starts", twice("message_start", 1)],
    ["no message_end", without("message_end", 1)],
    ["two message_ends", twice("message_end", 1)],
    ["an update of a user message", (events) => [...events.slice(0, 3), events[indexOf(events, "message_update")]!, ...events.slice(3)]],
    ["an update before the message_start", moved(["message_start", 1], ["message_update", 0])],
    ["an update after the message_end", moved(["message_update", 0], ["message_end", 1])],
    [
      "a message that ends as another role",
      changed("message_end", 0, (event) => {
        event.message.role = "assistant";
      }),
    ],
    ["no tool_execution_start", without("tool_execution_start", 0, "c2")],
    ["two tool_execution_starts", twice("tool_execution_start", 0, "c1")],
    ["no tool_execution_end", without("tool_execution_end", 0, "c3")],
    ["two tool_execution_ends", twice("tool_execution_end", 0, "c1")],
    ["an end before its start", swapped(["tool_execution_start", 0, "c1"], ["tool_execution_end", 0, "c1"])],
    ["a tool update before the start", moved(["tool_execution_update"], ["message_end", 1])],
    ["a tool update after the end", moved(["tool_execution_update"], ["tool_execution_end", 0, "c1"])],
    ["a tool event inside the answer", moved(["tool_execution_start", 0, "c1"], ["message_start", 1])],
    ["a tool event before the answer", moved(["tool_execution_start", 0, "c1"], ["turn_start", 0])],
    ["a tool event after the turn", moved(["tool_execution_end", 0, "c3"], ["turn_end", 0])],
    [
      "tool events of an id the answer does not have",
      changed("tool_execution_start", 0, (event) => {
        event.toolCallId = "c9";
      }),
    ],
    [
      "a result before its call has ended",
      (events) => {
        const end = events[indexOf(events, "tool_execution_end", 0, "c3")]!;
        const rest = events.filter((event) => event !== end);
        const last = indexOf(rest, "message_end", 4);
        return [...rest.slice(0, last + 1), end, ...rest.slice(last + 1)];
      },
    ],
    [
      "no result",
      (events) => events.filter((_event, i) => i !== indexOf(events, "message_start", 3) && i !== indexOf(events, "message_end", 3)),
    ],
    [
      "a result twice",
      (events) =>
        events.flatMap((event, i) =>
          i === indexOf(events, "message_end", 3) ? [event, events[indexOf(events, "message_start", 3)]!, event] : [event],
        ),
    ],
    [
      "results out of source order",
      (events) => swapped(["message_start", 2], ["message_start", 3])(swapped(["message_end", 2], ["message_end", 3])(events) as Sequence),
    ],
    [
      "a result of no call",
      changed("message_end", 2, (event) => {
        event.message.toolCallId = "c9";
      }),
    ],
    [
      "a call more than was answered",
      changed("message_end", 1, (event) => {
        event.message.content.push(toolCall("a", {}, "c4"));
      }),
    ],
    [
      "results of a failed answer",
      changed("message_end", 1, (event) => {
        event.message.stopReason = "error";
      }),
    ],
    [
      "turn_end without one of the results",
      changed("turn_end", 0, (event) => {
        event.toolResults.pop();
      }),
    ],
    [
      "turn_end with the results out of order",
      changed("turn_end", 0, (event) => {
        event.toolResults.reverse();
      }),
    ],
    [
      "agent_end without one of the messages",
      changed("agent_end", 0, (event) => {
        event.messages.pop();
      }),
    ],
    [
      "agent_end with a message more",
      changed("agent_end", 0, (event) => {
        event.messages.push(userMessage("x"));
      }),
    ],
    [
      "agent_end with the messages out of order",
      changed("agent_end", 0, (event) => {
        event.messages.reverse();
      }),
    ],
    ["an event of no known type", (events) => [...events.slice(0, 2), { type: "surprise" }, ...events.slice(2)]],
    [
      "turn_end without results",
      changed("turn_end", 0, (event) => {
        delete event.toolResults;
      }),
    ],
    [
      "agent_end without messages",
      changed("agent_end", 0, (event) => {
        delete event.messages;
      }),
    ],
    [
      "a message_start without a message",
      changed("message_start", 1, (event) => {
        delete event.message;
      }),
    ],
    ["an event without a type", (events) => [...events.slice(0, 4), {}, ...events.slice(4)]],
    ["a hole", (events) => [...events.slice(0, 4), undefined, ...events.slice(4)]],
  ])("%s, in one line that names the position", (_name, damage) => {
    expect(() => assertEventSequence(valid)).not.toThrow();
    const damaged = damage(valid) as Sequence;
    expect(damaged).not.toEqual(valid);
    let text: string | undefined;
    try {
      assertEventSequence(deepFreeze(structuredClone(damaged)));
    } catch (error) {
      text = (error as Error).message;
    }
    expect(text).toMatch(/^[^\n]*\b\d+\b[^\n]*$/);
    const position = Number(/\d+/.exec(text ?? "")?.[0]);
    const first = damaged.findIndex((event, i) => JSON.stringify(event) !== JSON.stringify(valid[i]));
    expect(position).toBeGreaterThanOrEqual(Math.min(first < 0 ? damaged.length : first, damaged.length) - 1);
    expect(position).toBeLessThanOrEqual(damaged.length);
  });

  // SPEC 13.2
  it("every single event is missed, or seen when it comes twice", () => {
    const isUpdate = (event: AgentEvent) => event.type === "message_update" || event.type === "tool_execution_update";
    valid.forEach((event, i) => {
      if (isUpdate(event)) return;
      expect(() => assertEventSequence(valid.filter((_other, k) => k !== i)), `without ${i} ${event.type}`).toThrow(/\d/);
      expect(
        () => assertEventSequence(valid.flatMap((other, k) => (k === i ? [other, other] : [other]))),
        `twice ${i} ${event.type}`,
      ).toThrow(/\d/);
    });
    for (let end = 0; end < valid.length; end++) expect(() => assertEventSequence(valid.slice(0, end)), `cut at ${end}`).toThrow(/\d/);
  });

  // SPEC 13.2, 2.6
  it("two results of ids that only repeat in another turn are still counted by turn", async () => {
    const events = structuredClone(await sequence([calls.slice(0, 1), calls.slice(0, 1), "end"]));
    const results = events.flatMap((event, i) =>
      event.type === "message_start" && (event.message as ToolResultMessage).role === "toolResult" ? [i] : [],
    );
    expect(() => assertEventSequence(events)).not.toThrow();
    expect(() => assertEventSequence(events.filter((_event, i) => i !== results[1] && i !== results[1]! + 1))).toThrow(/c1/);
  });
});
