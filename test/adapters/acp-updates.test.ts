import type { AssistantMessage, AssistantMessageEvent, StreamFn, ThinkingEvent, ToolCall } from "turnloop";
import { AssistantMessageBuilder } from "turnloop";
import { createUpdateState, toSessionUpdates } from "turnloop/acp";
import type { ScriptedAnswer } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { deferred, makeTool, model } from "../helpers.js";
import { checkUpdates, outlineOf, streams, updatesOf, whole } from "./acp-helpers.js";

const echo = makeTool("echo", () => "echoed");
const outline = async (...given: Parameters<typeof updatesOf>) => outlineOf(await updatesOf(...given));
const replacing = (events: AssistantMessageEvent[], change: (call: ToolCall) => ToolCall): AssistantMessageEvent[] => {
  const changed = (message: AssistantMessage): AssistantMessage => ({
    ...message,
    content: message.content.map((block) => (block.type === "toolCall" ? change(block) : block)),
  });
  return events.map((event) => {
    if (event.type === "done") return { ...event, message: changed(event.message) };
    return "partial" in event ? { ...event, partial: changed(event.partial) } : event;
  });
};

// SPEC 10.2
describe("the card of a call", () => {
  const call: ScriptedAnswer = [{ toolCall: "echo", id: "a", args: { x: 1 } }];

  it("is announced, in progress with its arguments, and completed with its result", async () => {
    expect(await updatesOf([call, "ok"], { tools: [echo] })).toEqual([
      { sessionUpdate: "tool_call", toolCallId: "a", title: "echo", kind: "other", status: "pending", content: [] },
      { sessionUpdate: "tool_call_update", toolCallId: "a", status: "in_progress", rawInput: { x: 1 } },
      {
        sessionUpdate: "tool_call_update",
        toolCallId: "a",
        status: "completed",
        content: [{ type: "content", content: { type: "text", text: "echoed" } }],
      },
      { sessionUpdate: "agent_message_chunk", messageId: "message-2", content: { type: "text", text: "ok" } },
    ]);
  });

  it("is announced as soon as the name is known, before the arguments are", () => {
    const state = createUpdateState();
    const b = new AssistantMessageBuilder(model);
    const show = (events: AssistantMessageEvent[]): string[] =>
      outlineOf(
        events.flatMap((assistantMessageEvent) =>
          toSessionUpdates({ type: "message_update", message: {} as AssistantMessage, assistantMessageEvent }, state),
        ),
      );
    const nameless = replacing(b.toolCallStart("a", "echo"), (call) => ({ ...call, name: "" }));
    expect(show(nameless.slice(1))).toEqual([]);
    expect(show(b.toolCallDelta('{"x"'))).toEqual(['new a pending "echo"']);
    expect(show([...b.toolCallDelta(": 1}"), ...b.toolCallEnd()])).toEqual([]);
  });

  const progress: string[] = ["a in_progress", "a completed echoed", "message-2: ok"];
  const streamed = (b: AssistantMessageBuilder, ...ids: string[]): AssistantMessageEvent[] => [
    ...ids.flatMap((id) => [...b.toolCallStart(id, "echo"), ...b.toolCallDelta("{}"), ...b.toolCallEnd()]),
    ...b.done(),
  ];

  it.each<[string, StreamFn | ScriptedAnswer[], string[]]>([
    ["that was not streamed", streams((b) => whole(b, () => b.toolCallStart("a", "echo"))), ['new a pending "echo"', ...progress]],
    [
      "whose name changes while it streams gets the last one's title",
      streams((b) => {
        const events = streamed(b, "a");
        return [...replacing(events.slice(0, 2), (call) => ({ ...call, name: "ec" })), ...events.slice(2)];
      }),
      ['new a pending "ec"', 'a in_progress "echo"', "a completed echoed", "message-2: ok"],
    ],
    [
      "without an id",
      streams((b) => streamed(b, "", "")),
      [
        'new call pending "echo"',
        'new call-2 pending "echo"',
        "call in_progress",
        "call-2 in_progress",
        "call completed echoed",
        "call-2 completed echoed",
        "message-2: ok",
      ],
    ],
    [
      "with an id that another has",
      streams((b) => streamed(b, "a", "a")),
      [
        'new a pending "echo"',
        'new a-2 pending "echo"',
        "a in_progress",
        "a-2 in_progress",
        "a completed echoed",
        "a-2 completed echoed",
        "message-2: ok",
      ],
    ],
    [
      "with an id that is a number",
      streams((b) => replacing(streamed(b, "a"), (call) => ({ ...call, id: 7 as never }))),
      ['new 7 pending "echo"', "7 in_progress", "7 completed echoed", "message-2: ok"],
    ],
    [
      "with half a character in id and name",
      streams((b) => replacing(streamed(b, "a"), (call) => ({ ...call, id: "a\ud83d", name: "n\ud83d" }))),
      ['new a\ufffd pending "n\ufffd"', "a\ufffd in_progress", expect.stringContaining("a\ufffd failed Tool") as never, "message-2: ok"],
    ],
    [
      "whose place in the answer changed",
      streams((b) => {
        const events = [...b.text("x"), ...streamed(b, "a")];
        return events.map((event) =>
          event.type === "done" ? { ...event, message: { ...event.message, content: event.message.content.slice(1) } } : event,
        );
      }),
      ["message-1: x", 'new a pending "echo"', ...progress],
    ],
    [
      "that the answer dropped in the end",
      streams((b) =>
        streamed(b, "a").map((event) =>
          event.type === "done" ? { ...event, message: { ...event.message, content: [{ type: "text", text: "no" }] } } : event,
        ),
      ),
      ['new a pending "echo"', "message-1: no", "a failed Not executed."],
    ],
    [
      "of an answer that begins anew",
      [{ content: call, fault: { kind: "restart", afterEvents: 4 } }, "ok"],
      [
        'new a pending "echo"',
        "a failed Not executed.",
        'new a-2 pending "echo"',
        "a-2 in_progress",
        "a-2 completed echoed",
        "message-3: ok",
      ],
    ],
    [
      "of an answer that fails",
      [{ content: [{ text: "x" }, ...call], errorMessage: "cut" }],
      ["message-1: x", 'new a pending "echo"', "a failed Not executed."],
    ],
    [
      "of an answer that ends early",
      [{ content: call, fault: { kind: "end", afterEvents: 3 } }],
      ['new a pending "echo"', "a failed Not executed."],
    ],
    [
      "whose id comes again in a later turn",
      [call, call, call, "ok"],
      ["a", "a-2", "a-3"]
        .flatMap((id) => [`new ${id} pending "echo"`, `${id} in_progress`, `${id} completed echoed`])
        .concat("message-4: ok"),
    ],
    [
      "whose id looks like one with a suffix",
      [[{ toolCall: "echo", id: "a-2" }], call, call, "ok"],
      ["a-2", "a", "a-3"]
        .flatMap((id) => [`new ${id} pending "echo"`, `${id} in_progress`, `${id} completed echoed`])
        .concat("message-4: ok"),
    ],
    [
      "that the output limit cut",
      [{ content: call, stopReason: "length" }, "ok"],
      ['new a pending "echo"', "a in_progress", expect.stringMatching(/^a failed .*limit/) as never, "message-2: ok"],
    ],
    [
      "of a tool that does not exist",
      [[{ toolCall: "nope", id: "a" }], "ok"],
      ['new a pending "nope"', "a in_progress", expect.stringMatching(/^a failed .*not found/) as never, "message-2: ok"],
    ],
    [
      "without a name",
      [[{ toolCall: "", id: "a" }], "ok"],
      ['new a pending "(unnamed tool)"', "a in_progress", expect.stringMatching(/^a failed /) as never, "message-2: ok"],
    ],
    [
      "with arguments that are no JSON",
      [[{ toolCall: "echo", id: "a", rawArgs: "{x" }], "ok"],
      ['new a pending "echo"', "a in_progress", expect.stringMatching(/^a failed .*JSON/) as never, "message-2: ok"],
    ],
  ])("%s", async (_, answers, expected) => {
    expect(await outline(answers, { tools: [echo] })).toEqual(expected);
  });

  it("says why a call was blocked, failed or not valid", async () => {
    const parameters = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
    const tools = [
      makeTool("strict", () => "ok", { parameters }),
      makeTool("failing", () => Promise.reject(new Error("no disk"))),
      makeTool("blocked", () => "ok"),
    ];
    const calls = ["strict", "failing", "blocked"].map((toolCall) => ({ toolCall, id: toolCall }));
    const beforeToolCall = ({ toolCall }: { toolCall: ToolCall }) =>
      toolCall.name === "blocked" ? { block: true, reason: "not you" } : undefined;
    const lines = await outline([calls, "ok"], { tools, config: { beforeToolCall } });
    expect(lines.filter((line) => line.includes("failed "))).toEqual([
      expect.stringMatching(/^strict failed .*n/),
      "blocked failed not you",
      "failing failed no disk",
    ]);
  });

  it("of each parallel call is completed when that call is", async () => {
    const first = deferred<string>();
    const tools = [makeTool("slow", () => first.promise), makeTool("fast", () => "2")];
    const onEvent = (event: { type: string; toolName?: string }) => {
      if (event.type === "tool_execution_end" && event.toolName === "fast") first.resolve("1");
    };
    const calls = [
      { toolCall: "slow", id: "s" },
      { toolCall: "fast", id: "f" },
    ];
    expect(await outline([calls, "ok"], { tools, onEvent })).toEqual([
      'new s pending "slow"',
      'new f pending "fast"',
      "s in_progress",
      "f in_progress",
      "f completed 2",
      "s completed 1",
      "message-2: ok",
    ]);
  });

  it("is there for all calls of an answer before the first one runs, streamed or not", async () => {
    const model = streams((b) =>
      whole(b, () => {
        b.toolCallStart("a", "echo");
        b.toolCallStart("b", "echo");
      }),
    );
    const lines = await outline(model, { tools: [echo], config: { toolExecution: "sequential" } });
    expect(lines.slice(0, 3)).toEqual(['new a pending "echo"', 'new b pending "echo"', "a in_progress"]);
  });

  it("is closed by an abort, whatever it was doing", async () => {
    const controller = new AbortController();
    const hang = makeTool("hang", () => {
      controller.abort();
      return new Promise(() => {});
    });
    const calls = [
      { toolCall: "hang", id: "a" },
      { toolCall: "echo", id: "b" },
    ];
    const config = { toolExecution: "sequential", abortGraceMs: 1 } as const;
    const lines = await outline([calls], { tools: [hang, echo], config, signal: controller.signal });
    expect(lines).toEqual([
      'new a pending "hang"',
      'new b pending "echo"',
      "a in_progress",
      expect.stringMatching(/^a failed .*still be running/),
      "b in_progress",
      expect.stringMatching(/^b failed .*not executed/i),
    ]);
  });
});

// SPEC 10.2, 10.3
describe("the card of a wait", () => {
  const event = (state: ThinkingEvent["state"], cardId: string, more: Partial<ThinkingEvent> = {}): ThinkingEvent => ({
    state,
    cardId,
    name: "llm_response",
    title: "Thinking...",
    elapsedMs: 0,
    ...more,
  });
  const show = (events: ThinkingEvent[], state = createUpdateState()): string[] => {
    const updates = events.flatMap((thinking) => toSessionUpdates({ type: "thinking", event: thinking }, state));
    updates.push(...toSessionUpdates({ type: "agent_end", messages: [], outcome: "completed" }, state));
    checkUpdates(updates);
    expect(updates.every(({ _meta }) => _meta?.["synthetic"] === true)).toBe(true);
    return outlineOf(updates);
  };

  it("begins, lives and ends", () => {
    const events = [
      event("start", "t"),
      event("heartbeat", "t", { title: "Thinking... (30s)" }),
      event("complete", "t", { outcome: "delta" }),
    ];
    expect(show(events)).toEqual(['new t in_progress "Thinking..."', 't in_progress "Thinking... (30s)"', 't completed "Thinking..."']);
  });

  it.each<[string, ThinkingEvent[], string[]]>([
    ["has one start", [event("start", "t"), event("start", "t")], ['new t in_progress "Thinking..."', 't failed "Stopped"']],
    ["needs a start", [event("heartbeat", "t"), event("complete", "t", { outcome: "done" })], []],
    [
      "has one end",
      [event("start", "t"), event("complete", "t", { outcome: "error" }), event("complete", "t"), event("heartbeat", "t")],
      ['new t in_progress "Thinking..."', 't failed "Thinking..."'],
    ],
    [
      "says that it was stopped",
      [event("start", "t"), event("complete", "t", { outcome: "aborted" })],
      ['new t in_progress "Thinking..."', 't failed "Stopped"'],
    ],
    [
      "gets an id of its own",
      [event("start", "t"), event("complete", "t", { outcome: "done" }), event("start", "t"), event("complete", "t", { outcome: "done" })],
      ['new t in_progress "Thinking..."', 't completed "Thinking..."', 'new t-2 in_progress "Thinking..."', 't-2 completed "Thinking..."'],
    ],
  ])("%s", (_, events, expected) => {
    expect(show(events)).toEqual(expected);
  });
});
