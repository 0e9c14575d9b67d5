import { Agent, type AgentMessage, type AgentOptions, type PendingToolCall, userMessage } from "turnloop";
import { assertEventSequence, recordEvents, type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { answer, deepFreeze, toolCall } from "./hand-written.js";
import { deferred, makeTool, model, textOf } from "./helpers.js";
import { approve, cut, deny, result } from "./resume-helpers.js";

const number = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };

/** An Agent that asks about each call of "pay"; calls of "look" just run. */
function payer(script: ScriptedAnswer[], extra: Partial<AgentOptions> = {}) {
  const streamFn = scriptedModel(script);
  const paid: unknown[] = [];
  const agent = new Agent({
    model,
    streamFn,
    tools: [
      makeTool("pay", (id, args) => `paid ${id} ${paid.push(args)}`, { parameters: number }),
      makeTool("look", () => "seen"),
      makeTool("t", (id) => `did ${id}`),
    ],
    beforeToolCall: ({ toolCall }) => (toolCall.name === "pay" ? { suspend: true, reason: "costs money" } : undefined),
    now: () => 5,
    ...extra,
  });
  return { agent, paid, streamFn };
}

const pay = (id: string, n: unknown = "5") => ({ toolCall: "pay", id, args: { n } });
const pendingPay = (id: string, args: unknown = { n: 5 }): PendingToolCall => ({
  toolCall: { type: "toolCall", id, name: "pay", arguments: { n: "5" } },
  args,
  reason: "costs money",
});

// SPEC 15.4, 8.1
describe("an Agent whose calls wait", () => {
  it("the result of the run, pendingApprovals and a listener of agent_end tell of them: validated arguments, the reason", async () => {
    const { agent } = payer([[{ toolCall: "look", id: "l" }, pay("a"), pay("b")]]);
    const heard: unknown[] = [];
    agent.subscribe((event) => void heard.push([event.type, agent.pendingApprovals.length]));
    const { outcome, pending, messages, error } = await agent.prompt("buy");
    expect([outcome, pending, error]).toEqual(["suspended", [pendingPay("a"), pendingPay("b")], undefined]);
    expect(agent.pendingApprovals).toEqual(pending);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult"]);
    expect([agent.isRunning, agent.pendingToolCalls.size, agent.lastError]).toEqual([false, 0, undefined]);
    expect(heard.filter(([, size]: any) => size > 0)).toEqual([["agent_end", 2]]);
  });

  it("a listener that writes to the event does not change what is asked about", async () => {
    const { agent } = payer([[pay("a")]]);
    agent.on("agent_end", ({ pending }) => Object.assign(pending?.[0]?.args ?? {}, { n: 1 }));
    await agent.prompt("buy");
    expect(agent.pendingApprovals).toEqual([pendingPay("a")]);
  });

  it("a dialog that edits what it was given changes neither the transcript nor what is asked about", async () => {
    const { agent, paid } = payer([[pay("a")], "thanks"]);
    await agent.prompt("buy");
    const reloaded = payer(["thanks"], { messages: JSON.parse(JSON.stringify(agent.messages)) });
    for (const asking of [agent, reloaded.agent]) {
      const before = JSON.stringify([asking.messages, asking.pendingApprovals]);
      const [edited] = asking.pendingApprovals as [PendingToolCall];
      edited.args.n = 7;
      expect(edited.toolCall.arguments).toEqual({ n: "5" });
      edited.toolCall.arguments.n = 8;
      expect(JSON.stringify([asking.messages, asking.pendingApprovals])).toBe(before);
      await asking.resume([approve("a", edited.args)]);
    }
    expect([...paid, ...reloaded.paid]).toEqual([{ n: 7 }, { n: 7 }]);
  });

  it("results of other runs carry no pending", async () => {
    const { agent } = payer(["hello"]);
    expect(await agent.prompt("hi")).not.toHaveProperty("pending");
    expect(agent.pendingApprovals).toEqual([]);
  });

  it("resume goes on; the transcript, events and state are those of one conversation", async () => {
    const { agent, paid, streamFn } = payer([[pay("a"), { toolCall: "look", id: "l" }, pay("b")], "thanks"]);
    await agent.prompt("buy");
    const recorder = recordEvents();
    const pendingCalls: string[] = [];
    agent.subscribe((event) => {
      recorder(event);
      pendingCalls.push(`${event.type} ${[...agent.pendingToolCalls]}`);
    });
    const resumed = await agent.resume([deny("b", "too much"), approve("a")]);
    expect(resumed).toMatchObject({ outcome: "completed", usage: { totalTokens: 0 } });
    expect(resumed).not.toHaveProperty("pending");
    assertEventSequence(recorder.events, { resumed: true });
    expect(pendingCalls.slice(0, 5)).toEqual([
      "agent_start ",
      "turn_start a,b",
      "tool_execution_end a",
      "tool_execution_end ",
      "message_start ",
    ]);
    expect([paid, agent.pendingApprovals]).toEqual([[{ n: 5 }], []]);
    expect(agent.messages.map((message) => ("toolCallId" in message ? message.toolCallId : message.role))).toEqual([
      "user",
      "assistant",
      "l",
      "a",
      "b",
      "assistant",
    ]);
    expect(streamFn.requests[1]?.messages.map(textOf)).toEqual(["buy", "", "paid a 1", "seen", "too much"]);
    expect(agent.messages.slice(-resumed.messages.length)).toEqual(resumed.messages);
  });

  it("after a reload the arguments are the model's and there is no reason; it resumes all the same", async () => {
    const first = payer([[pay("a"), pay("b")]]);
    await first.agent.prompt("buy");
    const messages = deepFreeze(JSON.parse(JSON.stringify(first.agent.messages)) as AgentMessage[]);
    const { agent, paid } = payer(["thanks"], { messages });
    expect(agent.pendingApprovals).toEqual(
      ["a", "b"].map((id) => ({ toolCall: { type: "toolCall", id, name: "pay", arguments: { n: "5" } }, args: { n: "5" } })),
    );
    const [a, b] = agent.pendingApprovals;
    const { outcome } = await agent.resume([approve(a?.toolCall.id as string), approve(b?.toolCall.id as string, { n: 1 })]);
    expect([outcome, paid]).toEqual(["completed", [{ n: 5 }, { n: 1 }]]);
  });

  it("what an earlier run asked is not taken for what another transcript asks under the same id", async () => {
    const { agent } = payer([[pay("a")]]);
    await agent.prompt("buy");
    agent.replaceMessages([userMessage("other"), answer([toolCall("pay", { n: 9 }, "a")])]);
    expect(agent.pendingApprovals).toEqual([{ toolCall: toolCall("pay", { n: 9 }, "a"), args: { n: 9 } }]);
    agent.reset();
    expect(agent.pendingApprovals).toEqual([]);
    agent.replaceMessages(cut(["a", "b"], ["a"]));
    expect(agent.pendingApprovals.map(({ toolCall }) => toolCall.id)).toEqual(["b"]);
  });

  it("suspended again in the next turn, again and again", async () => {
    const { agent, paid } = payer([[pay("a")], [pay("a")], [pay("a")], "thanks"]);
    let ended = await agent.prompt("buy");
    for (let i = 0; i < 3; i++) {
      expect(ended).toMatchObject({ outcome: "suspended", pending: [pendingPay("a")] });
      ended = await agent.resume([approve("a")]);
    }
    expect([ended.outcome, paid.length]).toEqual(["completed", 3]);
  });
});

// SPEC 15.4, 8.3, 8.5
describe("the other ways on", () => {
  it.each(["continue", "retry"] as const)(
    "%s rejects with calls_pending, also when steering waits, and changes nothing",
    async (method) => {
      const { agent, streamFn } = payer([[pay("a"), pay("b")]]);
      await agent.prompt("buy");
      agent.steer("hurry");
      const before = agent.messages;
      await expect(agent[method]()).rejects.toMatchObject({ code: "calls_pending", message: expect.stringContaining("pay (a), pay (b)") });
      expect([agent.messages, agent.steeringQueue.size, agent.isRunning]).toEqual([before, 1, false]);
      expect([agent.pendingApprovals.length, streamFn.requests.length]).toEqual([2, 1]);
    },
  );

  it("a prompt abandons them: the model reads that no result was recorded, and resume has nothing to go on with", async () => {
    const { agent, paid, streamFn } = payer([[pay("a"), { toolCall: "look", id: "l" }], "as you wish"]);
    await agent.prompt("buy");
    const stored = JSON.stringify(agent.messages);
    const { outcome } = await agent.prompt("never mind");
    expect([outcome, agent.pendingApprovals, paid]).toEqual(["completed", [], []]);
    expect(JSON.stringify(agent.messages.slice(0, 3))).toBe(stored);
    const sent = streamFn.requests[1]?.messages.map((message) =>
      "toolCallId" in message ? `${message.toolCallId} ${textOf(message)}` : message.role,
    );
    expect(sent).toEqual(["user", "assistant", expect.stringMatching(/^a No result was recorded/), "l seen", "user"]);
    await expect(agent.resume([approve("a")])).rejects.toMatchObject({ code: "nothing_pending" });
  });

  it("a failed answer after that can be retried", async () => {
    const { agent } = payer([[pay("a")], { errorMessage: "overloaded" }, "fine"]);
    await agent.prompt("buy");
    const note = { role: "note", text: "seen", timestamp: 1 } as unknown as AgentMessage;
    expect((await agent.prompt(note)).outcome).toBe("error");
    expect(agent.pendingApprovals).toEqual([]);
    agent.steer("go on");
    expect((await agent.retry()).outcome).toBe("completed");
  });

  it("steering and follow-ups queued meanwhile are delivered by the resumed run, once", async () => {
    const { agent, streamFn } = payer([[pay("a")], "one", "two"]);
    agent.on("turn_end", () => agent.messages.length === 2 && agent.steer("while it ended"));
    await agent.prompt("buy");
    agent.steer("while it waited");
    agent.followUp("then");
    agent.steeringQueue.mode = "all";
    const { messages } = await agent.resume([approve("a")]);
    expect(messages.map(textOf)).toEqual(["paid a 1", "while it ended", "while it waited", "one", "then", "two"]);
    expect([agent.steeringQueue.size, agent.followUpQueue.size, streamFn.requests.length]).toEqual([0, 0, 3]);
  });

  it("or by the prompt that abandons the calls", async () => {
    const { agent } = payer([[pay("a")], "fine"]);
    await agent.prompt("buy");
    agent.steer("hurry");
    const { messages } = await agent.prompt("never mind");
    expect(messages.map(textOf)).toEqual(["never mind", "hurry", "fine"]);
  });
});

// SPEC 15.3, 15.4, 8.1, 8.5
describe("a resume that is refused", () => {
  it.each([
    ["missing_decision", []],
    ["unknown_decision", [approve("x")]],
    ["duplicate_decision", [approve("a"), approve("a")]],
    ["invalid_decision", [approve("a", { n: "x" }), approve("b")]],
    ["invalid_argument", "approve"],
    ["invalid_argument", undefined],
    ["invalid_argument", null],
  ])("%s leaves everything as it was", async (code, decisions) => {
    const { agent, paid, streamFn } = payer([[pay("a"), pay("b")], "thanks"]);
    await agent.prompt("buy");
    agent.steer("hurry");
    const listener = vi.fn();
    agent.subscribe(listener);
    const before = { messages: agent.messages, pending: agent.pendingApprovals };
    await expect(agent.resume(decisions as never)).rejects.toMatchObject({ code });
    expect({ messages: agent.messages, pending: agent.pendingApprovals }).toEqual(before);
    expect([agent.isRunning, agent.steeringQueue.size, paid, streamFn.requests.length]).toEqual([false, 1, [], 1]);
    expect(listener).not.toHaveBeenCalled();
    expect((await agent.resume([approve("a"), deny("b")])).outcome).toBe("completed");
  });

  it("no decisions at all do not abandon the calls either, though a sibling's result is there to go on with", async () => {
    const { agent, streamFn } = payer([[pay("a"), { toolCall: "look", id: "l" }], "thanks"]);
    await agent.prompt("buy");
    await expect(agent.resume(undefined as never)).rejects.toMatchObject({ code: "invalid_argument" });
    expect([agent.pendingApprovals.length, streamFn.requests.length]).toEqual([1, 1]);
  });

  it("nothing is pending", async () => {
    await expect(payer([]).agent.resume([approve("a")])).rejects.toMatchObject({ code: "nothing_pending" });
  });

  it("while a run is on: busy; meanwhile nothing waits", async () => {
    const gate = deferred();
    const { agent } = payer([[pay("a")], "thanks"], { tools: [makeTool("pay", () => gate.promise.then(() => "paid"))] });
    await agent.prompt("buy");
    const resuming = agent.resume([approve("a")]);
    await expect(agent.resume([approve("a")])).rejects.toMatchObject({ code: "busy" });
    expect([agent.pendingApprovals, agent.isRunning]).toEqual([[], true]);
    gate.resolve();
    expect((await resuming).outcome).toBe("completed");
  });

  it("a transcript that the host replaced meanwhile stays", async () => {
    const { agent } = payer([]);
    const refused = agent.continue();
    agent.replaceMessages([userMessage("restored")]);
    await expect(refused).rejects.toMatchObject({ code: "empty_context" });
    expect(agent.messages.map(textOf)).toEqual(["restored"]);
  });

  it("an aborted signal, and abort() while a schema validates, end it as aborted", async () => {
    const { agent, paid } = payer([[pay("a"), pay("b")]]);
    await agent.prompt("buy");
    const { outcome, messages, error } = await agent.resume([approve("a"), result("b", "done by hand")], {
      signal: AbortSignal.abort("enough"),
    });
    expect([outcome, error?.message, paid]).toEqual(["aborted", "Aborted: enough", []]);
    expect(messages.map(textOf)).toEqual([expect.stringMatching(/^Not executed/), "done by hand"]);

    const validate = () => new Promise<never>(() => {});
    const parameters = { "~standard": { version: 1, vendor: "test", validate } };
    const hanging = payer([], { messages: cut(["a"]), tools: [makeTool("t", () => "ran", { parameters, jsonSchema: number })] }).agent;
    const resuming = hanging.resume([approve("a", { n: 1 })]);
    await Promise.resolve();
    hanging.abort();
    expect((await resuming).outcome).toBe("aborted");
    expect(hanging.messages.length).toBe(3);
  });
});

// SPEC 8.2
it("lastError is that of the last run: it is gone as soon as another one begins", async () => {
  const { agent } = payer([{ errorMessage: "overloaded" }, "fine"]);
  await agent.prompt("hi");
  expect(agent.lastError?.message).toBe("overloaded");
  const seen: unknown[] = [];
  agent.subscribe(() => void seen.push(agent.lastError));
  await agent.retry();
  expect(new Set(seen)).toEqual(new Set([undefined]));
});
