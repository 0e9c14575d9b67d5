import { type AgentEvent, type AgentMessage, resumeAgentLoop, TurnLoopError, userMessage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { answer, deepFreeze, said } from "./hand-written.js";
import { makeTool, model, resultsOf, resumeRun, run, textOf } from "./helpers.js";
import { approve, cut, deny, result, resultOf, resumed } from "./resume-helpers.js";

// SPEC 15.3: what is pending
describe("transcripts", () => {
  const note = { role: "note", text: "seen", timestamp: 3 } as unknown as AgentMessage;

  it.each<[string, AgentMessage[], string[]]>([
    ["cut right after the answer", cut(["a", "b"]), ["a", "b"]],
    ["cut between results, which came out of order", cut(["a", "b", "c"], ["c"]), ["a", "b"]],
    ["with messages of custom roles after it", [...cut(["a", "b"], ["a"]), note, note], ["b"]],
    ["with messages of custom roles between the results", [...cut(["a", "b", "c"], ["a"]), note, resultOf("b")], ["c"]],
    ["where an earlier call of the same id has its result", [...cut(["a"], ["a"]), ...cut(["a"]).slice(1)], ["a"]],
    ["with holes", [...cut(["a"]), null as never], ["a"]],
  ])("%s", async (_name, messages, ids) => {
    const kept = deepFreeze(JSON.parse(JSON.stringify(messages)));
    const record = await resumed(
      kept,
      ids.map((id) => approve(id)),
    );
    expect(resultsOf(record).map(({ toolCallId }) => toolCallId)).toEqual(ids);
    expect(record.outcome).toBe("completed");
    const sent = record.requests[0]?.messages ?? [];
    expect(sent.filter((message) => textOf(message).startsWith("No result was recorded"))).toEqual([]);
  });

  it("a note that a host shows the model as a user message does not cut off the results behind it", async () => {
    // SPEC 2.6
    const convertToLlm = (all: AgentMessage[]) =>
      all.map((message) => ((message.role as string) === "note" ? userMessage("note") : message));
    const record = await resumed([...cut(["a", "b"], ["a"]), note], [result("b", "given")], {
      config: { convertToLlm: convertToLlm as never },
    });
    const sent = record.requests[0]?.messages.map((message) =>
      "toolCallId" in message ? `${message.toolCallId} ${textOf(message)}` : message.role,
    );
    expect(sent).toEqual(["user", "assistant", "a earlier", "b given", "user"]);
  });

  it("an answer of several calls is resumed after a JSON round trip as if it had never been away", async () => {
    const options = { tools: [makeTool("t", (id) => `did ${id}`)], config: { now: () => 5 } };
    const script = [
      [
        { toolCall: "t", id: "a" },
        { toolCall: "t", id: "b" },
      ],
      "done",
    ];
    const prompts = [userMessage("go", { timestamp: 5 })];
    const undisturbed = await run(script, { ...options, prompts });
    const first = await run(script, {
      ...options,
      prompts,
      config: { ...options.config, beforeToolCall: ({ toolCall: { id } }) => ({ suspend: id === "b" }) },
    });
    const messages = JSON.parse(JSON.stringify(first.messages)) as AgentMessage[];
    const second = await resumeRun([approve("b")], ["done"], { ...options, messages });
    expect([...messages, ...second.messages]).toEqual(undisturbed.messages);
    expect(second.requests).toEqual(undisturbed.requests.slice(1));
  });

  it("what listeners write to the events of a resumed turn stays with them", async () => {
    const messages = deepFreeze(cut(["a"]));
    const record = await resumed(messages, [result("a", "given")], {
      onEvent: (event: AgentEvent) => {
        if (event.type !== "turn_end") return;
        event.message.content.push({ type: "text", text: "#scribble#" });
        event.toolResults[0]?.content.push({ type: "text", text: "#scribble#" });
      },
    });
    expect(JSON.stringify([record.messages, record.requests])).not.toContain("#scribble#");
  });
});

// SPEC 15.3
describe("misuse is refused before any event", () => {
  const number = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  const strict = makeTool("t", () => "ran", { parameters: number });

  async function refused(messages: unknown, decisions: unknown, tools = [strict]): Promise<[string, string]> {
    const emit = vi.fn();
    const streamFn = scriptedModel([]);
    const context = deepFreeze({ systemPrompt: "", messages: messages as AgentMessage[], tools });
    const running = resumeAgentLoop(decisions as never, context, { model }, emit, undefined, streamFn);
    const error: unknown = await running.catch((thrown) => thrown);
    expect([emit.mock.calls, streamFn.requests]).toEqual([[], []]);
    if (!TurnLoopError.is(error)) throw error;
    return [error.code, error.message];
  }

  it.each<[string, AgentMessage[]]>([
    ["an empty transcript", []],
    ["a user message at the end", [userMessage("go")]],
    ["an answer without calls", [userMessage("go"), said("x")]],
    ["results for all", cut(["a", "b"], ["a", "b"])],
    ["an answer that failed", cut(["a"], [], { stopReason: "error" })],
    ["an answer that was aborted", cut(["a"], [], { stopReason: "aborted" })],
    ["a user message after it", [...cut(["a", "b"], ["a"]), userMessage("never mind")]],
    ["another answer after it", [...cut(["a"]), said("x")]],
    ["an answer of the host's own without a list of content", [userMessage("go"), answer("text")]],
  ])("nothing_pending: %s", async (_name, messages) => {
    for (const decisions of [[approve("a")], [], "junk"]) expect((await refused(messages, decisions))[0]).toBe("nothing_pending");
  });

  it.each<[string, unknown, string, string]>([
    ["no list", undefined, "invalid_argument", "decisions must be an array; got undefined."],
    ["a decision in place of a list", approve("a"), "invalid_argument", 'decisions must be an array; got {"toolCallId":"a"'],
    ["a map", new Map([["a", "approve"]]), "invalid_argument", "decisions must be an array; got {}."],
    ["two for one call", [approve("a"), deny("a")], "duplicate_decision", 'call "a"'],
    ["two for one call before one that is unknown", [deny("x"), deny("x")], "duplicate_decision", 'call "x"'],
    ["two that are none", [null, undefined], "duplicate_decision", "call undefined"],
    ["one that is none", [approve("a"), null], "unknown_decision", "Call undefined is not pending; pending are: a, b."],
    ["a text", ["approve"], "unknown_decision", "Call undefined"],
    ["a call that has its result", [deny("a"), deny("b"), deny("done")], "unknown_decision", 'Call "done" is not pending'],
    ["an id that only looks the same", [deny("a"), { ...deny("b"), toolCallId: ["b"] }], "unknown_decision", 'Call ["b"]'],
    ["an unknown one before one that is missing", [deny("x")], "unknown_decision", 'Call "x"'],
    ["none at all", [], "missing_decision", 'no decision for call "a"; decide on all of: a, b.'],
    ["one is missing, the other unusable", [{ toolCallId: "a", action: "?" }], "missing_decision", 'call "b"'],
    ["an unknown action", [deny("a"), { toolCallId: "b", action: "accept" }], "invalid_decision", 'call "b" must be "approve", "deny" or'],
    ["no action", [deny("a"), { toolCallId: "b" }], "invalid_decision", "got undefined"],
    ["an action of a prototype", [deny("a"), { toolCallId: "b", action: "toString" }], "invalid_decision", 'got "toString"'],
    ["edited arguments that break the schema", [approve("a", { n: "x" }), deny("b")], "invalid_decision", "n: expected number"],
    ["edited arguments that are null", [approve("a", null), deny("b")], "invalid_decision", "expected object, received null"],
    ["edited arguments that are no JSON", [approve("a", { n: 1n }), deny("b")], "invalid_decision", "1 is not JSON"],
    ["a promise of edited arguments", [approve("a", Promise.resolve({ n: 1 })), deny("b")], "invalid_decision", "got a promise"],
  ])("%s", async (_name, decisions, code, text) => {
    const [got, message] = await refused(cut(["a", "done", "b"], ["done"]), decisions);
    expect([got, message]).toEqual([code, expect.stringContaining(text)]);
  });

  it("an async schema that refuses, rejects or throws refuses the decision", async () => {
    const validators: [() => unknown, string][] = [
      [async () => ({ issues: [{ message: "too much", path: ["n"] }] }), "n: too much"],
      [() => Promise.reject(new Error("broke")), "broke"],
      [
        () => {
          throw new Error("broke at once");
        },
        "broke at once",
      ],
    ];
    for (const [validate, text] of validators) {
      const parameters = { "~standard": { version: 1, vendor: "test", validate } };
      const tool = makeTool("t", () => "ran", { parameters, jsonSchema: number });
      expect(await refused(cut(["a"]), [approve("a", { n: 1 })], [tool])).toEqual(["invalid_decision", expect.stringContaining(text)]);
    }
  });

  it("edited arguments for a tool that is gone are no misuse: the model reads that it is gone", async () => {
    const record = await resumed(cut(["a"]), [approve("a", { n: "x" })], { tools: [] });
    expect(textOf(resultsOf(record)[0])).toContain("There are no tools");
  });

  it("what is given twice is taken once: a decision that changes meanwhile does not change its action", async () => {
    const validate = async (value: unknown) => {
      decision.action = "deny";
      return { value };
    };
    const tool = makeTool("t", () => "ran", {
      parameters: { "~standard": { version: 1, vendor: "test", validate } },
      jsonSchema: number,
    });
    const decision: { toolCallId: string; action: string; args: unknown } = { toolCallId: "a", action: "approve", args: { n: 1 } };
    const record = await resumed(cut(["a"]), [decision as never], { tools: [tool] });
    expect(textOf(resultsOf(record)[0])).toBe("ran");
  });

  it("a refused resume leaves no listener on the caller's signal", async () => {
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    const context = { systemPrompt: "", messages: cut(["a"]), tools: [] };
    await expect(resumeAgentLoop([], context, { model }, () => {}, signal, scriptedModel([]))).rejects.toThrow("no decision");
    expect(removed.mock.calls.length).toBe(added.mock.calls.length);
  });

  it("what is wrong with the other arguments comes first", async () => {
    await expect(resumeAgentLoop([], null as never, { model }, () => {}, undefined, scriptedModel([]))).rejects.toMatchObject({
      code: "invalid_argument",
    });
    const context = { systemPrompt: "", messages: [], tools: [strict, strict] };
    await expect(resumeAgentLoop([], context, { model }, () => {}, undefined, scriptedModel([]))).rejects.toMatchObject({
      code: "duplicate_tool",
    });
    const noModel = resumeAgentLoop([], { systemPrompt: "", messages: [] }, { model }, () => {}, undefined, undefined as never);
    await expect(noModel).rejects.toMatchObject({ code: "no_stream_fn" });
  });
});
