import {
  Agent,
  type AgentEvent,
  type AgentMessage,
  initialView,
  reduceEvents,
  type ThinkingEvent,
  toWireEvent,
  userMessage,
  type ViewState,
} from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { deepFreeze, said } from "./hand-written.js";
import { deferred, makeTool, model, type RunOptions, resumeRun, run } from "./helpers.js";
import { approve, cut, deny } from "./resume-helpers.js";

type Event = Parameters<typeof reduceEvents>[1];

/** The views after each event; every view is deep-frozen before the next event, so a write would throw. */
function views(events: readonly Event[], from: ViewState = initialView(), at?: (index: number) => number): ViewState[] {
  const all = [deepFreeze(from)];
  events.forEach((event, i) => void all.push(deepFreeze(reduceEvents(all[i] as ViewState, event, at?.(i)))));
  return all;
}

const viewOf = (events: readonly Event[], from?: ViewState): ViewState => views(events, from).at(-1) as ViewState;
const call = (id: string) => ({ toolCall: "t", id, args: { of: id } });
const statuses = ({ toolCalls }: ViewState) => toolCalls.map(({ toolCallId, status }) => `${toolCallId} ${status}`);

function example(script: ScriptedAnswer[], options: RunOptions = {}) {
  return run(script, { tools: [makeTool("t", (id) => `did ${id}`)], ...options });
}

// SPEC 15.1
describe("a run as a view", () => {
  it("after each event it shows what there is", async () => {
    const tool = makeTool("t", (id, _args, _signal, onUpdate) => `${id} ${onUpdate({ content: [{ type: "text", text: "half" }] })}`);
    const { events, messages } = await run([[{ text: "hm" }, call("a")], "done"], { tools: [tool] });
    const seen = views(events).map((view) => {
      const { messages: all, streamingMessage, toolCalls, outcome } = view;
      const shown = toolCalls.map(({ status, progress }) => `${status}${progress ? ` ${progress.content[0].text}` : ""}`);
      return [all.length, streamingMessage?.content.length, shown.join(), outcome];
    });
    const distinct = seen.filter((row, i) => i === 0 || String(row) !== String(seen[i - 1]));
    expect(distinct).toEqual([
      [0, undefined, "", undefined],
      [1, undefined, "", undefined],
      [1, 0, "", undefined],
      [1, 1, "", undefined],
      [1, 2, "", undefined],
      [2, undefined, "", undefined],
      [2, undefined, "running", undefined],
      [2, undefined, "running half", undefined],
      [2, undefined, "completed half", undefined],
      [3, undefined, "completed half", undefined],
      [3, 0, "completed half", undefined],
      [3, 1, "completed half", undefined],
      [4, undefined, "completed half", undefined],
      [4, undefined, "completed half", "completed"],
    ]);
    expect(viewOf(events)).toEqual({
      messages,
      toolCalls: [
        { toolCallId: "a", toolName: "t", args: { of: "a" }, status: "completed", progress: { content: [{ type: "text", text: "half" }] } },
      ],
      queues: { steering: [], followUp: [] },
      outcome: "completed",
    });
  });

  it("is pure: the same events give the same view, frozen or not; an event and a view are never written to", async () => {
    const { events } = await example([[call("a"), call("b")], "done"]);
    expect(viewOf(events.map((event) => deepFreeze(event)))).toEqual(viewOf(structuredClone(events)));
  });

  it("what an event does not change is the same object as before", async () => {
    const { events } = await example([[call("a"), call("b")], { content: [{ thinking: "hm" }, "done"] }], {
      messages: [userMessage("earlier"), said("x")],
    });
    const all = views(events, initialView([userMessage("earlier"), said("x")]));
    const changing: Record<string, (keyof ViewState)[]> = {
      agent_start: [],
      turn_start: [],
      turn_end: [],
      message_start: ["streamingMessage"],
      message_update: ["streamingMessage"],
      message_end: ["streamingMessage", "messages"],
      tool_execution_start: ["toolCalls"],
      tool_execution_end: ["toolCalls"],
      agent_end: ["outcome"],
    };
    events.forEach((event, i) => {
      const [before, after] = [all[i] as ViewState, all[i + 1] as ViewState];
      const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof ViewState)[];
      for (const key of keys) if (!changing[event.type]?.includes(key)) expect(after[key], `${key} at ${event.type}`).toBe(before[key]);
      before.messages.forEach((message, at) => void expect(after.messages[at]).toBe(message));
      const sameCalls = before.toolCalls.filter((known, at) => after.toolCalls[at] === known).length;
      expect(sameCalls).toBeGreaterThanOrEqual(before.toolCalls.length - 1);
    });
    const turnEnd = events.findIndex(({ type }) => type === "turn_end");
    expect(all[turnEnd + 1]).toBe(all[turnEnd]);
  });

  it("is plain JSON, and goes on from its JSON", async () => {
    const { events } = await example([[call("a"), { toolCall: "nowhere", id: "b" }], { errorMessage: "overloaded" }]);
    for (let at = 0; at <= events.length; at++) {
      const view = viewOf(events.slice(0, at));
      expect(JSON.parse(JSON.stringify(view))).toEqual(view);
      const restored = viewOf(JSON.parse(JSON.stringify(events.slice(at))), JSON.parse(JSON.stringify(view)));
      expect(restored).toEqual(viewOf(events));
    }
  });

  it("times are those it is given: start and end of each call; without `at` none", async () => {
    const { events } = await example([[call("a")], "done"]);
    const [timed] = (views(events, initialView(), (i) => i).at(-1) as ViewState).toolCalls;
    const indexOf = (type: string) => events.findIndex((event) => event.type === type);
    expect(timed).toMatchObject({ startedAt: indexOf("tool_execution_start"), endedAt: indexOf("tool_execution_end") });
    expect(JSON.stringify(viewOf(events).toolCalls)).not.toMatch(/At"/);
    const start: Event = { type: "tool_execution_start", toolCallId: "a", toolName: "t", args: {} };
    expect(reduceEvents(initialView(), start, 0).toolCalls[0]?.startedAt).toBe(0);
  });

  it("a failed call is failed; the call that an event changes is the newest of its id", async () => {
    const script = [[call("a")], [call("a"), { toolCall: "nowhere", id: "b" }], "done"];
    const { events } = await example(script, { tools: [makeTool("t", () => "ran")] });
    const seen = views(events).map(statuses).map(String);
    expect([...new Set(seen)]).toEqual([
      "",
      "a running",
      "a completed",
      "a completed,a running",
      "a completed,a running,b running",
      "a completed,a running,b failed",
      "a completed,a completed,b failed",
    ]);
  });

  it("outcome and error are those of the last run, and gone when another one begins", async () => {
    const failed = await example([{ errorMessage: "overloaded", errorInfo: { kind: "overloaded", retryable: true } }]);
    const view = viewOf(failed.events);
    expect([view.outcome, view.error]).toEqual(["error", { message: "overloaded", info: { kind: "overloaded", retryable: true } }]);
    const again = reduceEvents(view, { type: "agent_start" });
    for (const key of ["outcome", "error", "pending"]) expect(again).not.toHaveProperty(key);
    expect(again.messages).toBe(view.messages);
  });

  it("an answer that begins again takes the place of what it had (3.3)", async () => {
    const { events } = await example([{ content: ["one two three four five six"], fault: { kind: "restart", afterEvents: 3 } }]);
    for (const log of [events, events.map(toWireEvent)]) {
      const texts = views(log).map(({ streamingMessage }) =>
        streamingMessage?.content.map((block) => "text" in block && block.text).join("|"),
      );
      const distinct = texts.filter((text, i) => text !== texts[i - 1]);
      expect(distinct).toEqual(["", "one two three fo", "", "one two three fo", "one two three four five six", undefined]);
    }
  });

  it("thinking shows the open card and is gone once it is complete; one that is not shown completes nothing", () => {
    const card = (state: ThinkingEvent["state"], cardId: string, elapsedMs = 0): Event => ({
      type: "thinking",
      event: { state, cardId, name: "llm_response", title: "Thinking...", elapsedMs },
    });
    const log = [card("start", "1"), card("heartbeat", "1", 30), card("complete", "1"), card("start", "2"), card("complete", "1")];
    expect(views(log).map(({ thinking }) => thinking && `${thinking.cardId} ${thinking.elapsedMs}`)).toEqual([
      undefined,
      "1 0",
      "1 30",
      undefined,
      "2 0",
      "2 0",
    ]);
    const end: Event = { type: "agent_end", messages: [], outcome: "aborted" };
    expect(viewOf([...log, end])).not.toHaveProperty("thinking");
  });

  it("queue_change shows what is queued; an event of a later version changes nothing", () => {
    const steering = [userMessage("s", { timestamp: 1 })];
    const view = viewOf([{ type: "queue_change", steering, followUp: [] }]);
    expect(view.queues).toEqual({ steering, followUp: [] });
    expect(reduceEvents(view, { type: "something_new" } as never)).toBe(view);
  });

  it("initialView holds a copy of the list", () => {
    const messages: AgentMessage[] = [userMessage("x")];
    const view = initialView(messages);
    messages.push(said("y"));
    expect(view.messages.length).toBe(1);
    expect(initialView()).toEqual({ messages: [], toolCalls: [], queues: { steering: [], followUp: [] } });
  });
});

// SPEC 15.1: a UI that attaches in the middle
describe("attaching", () => {
  it.each(["live", "wire"] as const)(
    "at any event of a %s run, with the messages so far, it ends as if it had been there",
    async (kind) => {
      const tool = makeTool("t", (id, _args, _signal, onUpdate) => `did ${id} ${onUpdate({ content: [] })}`);
      const { events } = await run([[{ text: "well" }, call("a"), call("b")], "done"], { tools: [tool] });
      const log = kind === "live" ? events : events.map(toWireEvent);
      const whole = views(log);
      for (let at = 0; at <= log.length; at++) {
        const { messages } = whole[at] as ViewState;
        const late = viewOf(log.slice(at), initialView(messages));
        expect({ ...late, toolCalls: [] }).toEqual({
          ...(whole.at(-1) as ViewState),
          toolCalls: [],
          ...(at === log.length && { outcome: undefined }),
        });
        for (const { toolCallId, args, status } of late.toolCalls) expect([args, status]).toEqual([{ of: toolCallId }, "completed"]);
      }
    },
  );

  it("wire updates of an answer whose start it has not seen wait for the answer's end", async () => {
    const { events } = await example(["some text that comes in pieces"]);
    const log = events.map(toWireEvent);
    const at = log.findIndex(({ type }) => type === "message_update");
    expect(views(log.slice(at)).some(({ streamingMessage }) => streamingMessage)).toBe(false);
    expect(viewOf(log.slice(at)).messages.length).toBe(1);
  });

  it("an end of a call that nobody knows is shown with what there is", () => {
    const end: Event = { type: "tool_execution_end", toolCallId: "x", toolName: "t", result: { content: [] }, isError: true };
    expect(viewOf([end]).toolCalls).toEqual([{ toolCallId: "x", toolName: "t", args: {}, status: "failed" }]);
  });
});

// SPEC 15.1, 15.2, 15.3, 15.5
describe("calls that wait", () => {
  const suspending: RunOptions = {
    config: {
      beforeToolCall: ({ toolCall: { id } }) => (id === "b" ? { suspend: true, reason: "ask", args: { edited: true } } : undefined),
    },
  };

  async function suspended() {
    const record = await example([[call("a"), call("b")]], suspending);
    return { record, view: viewOf(record.events) };
  }

  it("are suspended, with the arguments that were asked about, and pending until another run begins", async () => {
    const { record, view } = await suspended();
    expect(statuses(view)).toEqual(["a completed", "b suspended"]);
    expect([view.toolCalls[1]?.args, view.pending, view.outcome]).toEqual([{ edited: true }, record.end.pending, "suspended"]);
  });

  it.each([
    ["approve", [approve("b")], "b completed"],
    ["deny", [deny("b")], "b failed"],
  ])("resumed: running from the turn's start to their end: %s", async (_name, decisions, ended) => {
    const { record, view } = await suspended();
    const tools = [makeTool("t", () => "ran")];
    const resumed = await resumeRun(decisions, ["done"], { messages: record.messages, tools });
    for (const log of [resumed.events, resumed.events.map(toWireEvent)]) {
      const all = views(log, view);
      const distinct = [...new Set(all.map((seen) => statuses(seen)[1]))];
      expect(distinct).toEqual(["b suspended", "b running", ended]);
      expect(all.slice(1).some((seen) => "pending" in seen)).toBe(false);
      expect(all.at(-1)).toMatchObject({ outcome: "completed", messages: { length: 5 } });
    }
  });

  it("resumed after a reload: their cards come from the transcript", async () => {
    const { events } = await resumeRun([approve("b")], ["done"], {
      messages: cut(["a", "b"], ["a"]),
      tools: [makeTool("t", () => "ran")],
    });
    const seen = views(events, initialView(cut(["a", "b"], ["a"]))).map(statuses);
    expect([...new Set(seen.map(String))]).toEqual(["", "b running", "b completed"]);
  });

  it("abandoned by a prompt: failed, not waiting for ever", async () => {
    const { record, view } = await suspended();
    const { events } = await example(["fine"], { messages: record.messages });
    expect(statuses(viewOf(events, view))).toEqual(["a completed", "b failed"]);
    const last = views(events, view, () => 9).at(-1);
    expect(last?.toolCalls[1]?.endedAt).toBe(9);
  });

  it("a run whose sink failed leaves them waiting too", async () => {
    const events: AgentEvent[] = [];
    const onEvent = (event: AgentEvent): void => {
      events.push(event);
      if (event.type === "turn_end") throw new Error("disk full");
    };
    await example([[call("a"), call("b")]], { ...suspending, onEvent }).catch(() => {});
    const view = viewOf(events);
    expect([view.outcome, statuses(view), view.pending?.map(({ toolCall }) => toolCall.id)]).toEqual([
      "error",
      ["a completed", "b suspended"],
      ["b"],
    ]);
  });
});

// SPEC 15.1, 9.2, 8.4
it("an Agent's thinking and queue_change events go into its view as they are", async () => {
  const gate = deferred();
  const streamFn = scriptedModel([() => gate.promise.then(() => "hello"), "more"]);
  const agent = new Agent({ model, streamFn, thinking: { heartbeatMs: 0 } });
  let view = initialView();
  const seen: unknown[] = [];
  const take = (event: Event): void => {
    view = deepFreeze(reduceEvents(view, event));
    seen.push([view.thinking?.state, view.queues.steering.length]);
  };
  agent.subscribe((event) => take(toWireEvent(event)));
  agent.on("thinking", (event) => take(toWireEvent({ type: "thinking", event })));
  agent.on("queue_change", (queues) => take(toWireEvent({ type: "queue_change", ...queues })));
  const running = agent.prompt("hi");
  agent.steer("and");
  gate.resolve();
  await running;
  const distinct = seen.filter((row, i) => i === 0 || String(row) !== String(seen[i - 1]));
  expect(distinct).toEqual([
    [undefined, 0],
    ["start", 0],
    ["start", 1],
    [undefined, 1],
    [undefined, 0],
    ["start", 0],
    [undefined, 0],
  ]);
  expect(view.messages).toEqual(agent.messages);
});
