import type { AssistantMessageEvent, StreamFn } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { makeTool } from "../helpers.js";
import { outlineOf, streams, updatesOf, whole } from "./acp-helpers.js";

const echo = makeTool("echo", () => "echoed");
const outline = async (...given: Parameters<typeof updatesOf>) => outlineOf(await updatesOf(...given));
// SPEC 10.2
describe("the text of answers", () => {
  it("is a chunk for each delta, thoughts and answers with message ids of their own", async () => {
    const answers: ScriptedAnswer[] = [
      [{ thinking: "Hm" }, { text: "A b" }, { toolCall: "echo" }],
      [{ thinking: "So" }, { text: "C" }, { thinking: "!" }, { text: "D" }],
    ];
    const updates = await updatesOf(answers, { tools: [echo] });
    expect(updates.filter(({ sessionUpdate }) => sessionUpdate.endsWith("chunk"))).toEqual([
      { sessionUpdate: "agent_thought_chunk", messageId: "thought-1", content: { type: "text", text: "Hm" } },
      { sessionUpdate: "agent_message_chunk", messageId: "message-1", content: { type: "text", text: "A b" } },
      { sessionUpdate: "agent_thought_chunk", messageId: "thought-2", content: { type: "text", text: "So" } },
      { sessionUpdate: "agent_message_chunk", messageId: "message-2", content: { type: "text", text: "C" } },
      { sessionUpdate: "agent_thought_chunk", messageId: "thought-2", content: { type: "text", text: "!" } },
      { sessionUpdate: "agent_message_chunk", messageId: "message-2", content: { type: "text", text: "D" } },
    ]);
  });

  it.each<[string, StreamFn | ScriptedAnswer[], string[]]>([
    [
      "leaves empty deltas out",
      streams((b) => {
        const [start, begin, delta] = b.text("x") as [AssistantMessageEvent, AssistantMessageEvent, AssistantMessageEvent];
        return [start, begin, { ...delta, delta: "" } as AssistantMessageEvent, delta, ...b.done()];
      }),
      ["message-1: x"],
    ],
    [
      "leaves deltas out that are no text",
      streams((b) =>
        [...b.text("x"), ...b.done()].flatMap((event) =>
          event.type === "text_delta" ? [{ ...event, delta: 5 as never }, { ...event, delta: undefined as never }, event] : [event],
        ),
      ),
      ["message-1: x"],
    ],
    [
      "that were not streamed is shown when the answer has ended",
      streams((b) =>
        whole(b, () => {
          b.thinking("Hm");
          b.text("Hi");
        }),
      ),
      ["thought-1: Hm", "message-1: Hi"],
    ],
    [
      "of a block that was not streamed comes beside one that was",
      streams((b) => {
        const streamed = b.text("one");
        b.toolCallStart("a", "echo");
        b.text("two");
        return [...streamed, ...b.done()];
      }),
      ["message-1: one", 'new a pending "echo"', "message-1: two", "a in_progress", "a completed echoed", "message-2: ok"],
    ],
    [
      "that were not streamed are shown also after an answer that was streamed",
      streams((b) => [...b.text("one"), ...b.toolCallStart("a", "echo"), ...b.done()], true),
      ["message-1: one", 'new a pending "echo"', "a in_progress", "a completed echoed", "message-2: ok"],
    ],
    ["of a failed answer stays", [{ content: ["Half"], errorMessage: "cut" }], ["message-1: Half"]],
    ["ends at the output limit as any other", [{ content: ["Half"], stopReason: "length" }], ["message-1: Half"]],
    ["needs no start", [{ content: ["Hello"], fault: { kind: "noStart" } }], ["message-1: Hello"]],
    [
      "that begins anew is another message",
      [{ content: ["Hello"], fault: { kind: "restart", afterEvents: 3 } }],
      ["message-1: Hello", "message-2: Hello"],
    ],
  ])("%s", async (_, answers, expected) => {
    expect(await outline(answers, { tools: [echo] })).toEqual(expected);
  });

  it.each([
    ["split over two deltas stays whole", ["a\ud83d", "\ude00b"], ["a", "😀b"]],
    ["split over deltas of one half each", ["\ud83d", "\ude00"], ["😀"]],
    ["of which one half never comes is replaced", ["a\ud83d", "b"], ["a", "\ufffdb"]],
    ["cut at the end is replaced", ["a\ud83d"], ["a", "\ufffd"]],
    ["whose second half comes alone is replaced", ["\ude00a"], ["\ufffda"]],
  ])("a character %s", async (_, deltas, texts) => {
    const model = streams((b) => [...deltas.flatMap((delta) => b.text(delta)), ...b.done()]);
    expect(await outline(model)).toEqual(texts.map((text) => `message-1: ${text}`));
    const thinker = streams((b) => [...deltas.flatMap((delta) => b.thinking(delta)), ...b.done()]);
    expect(await outline(thinker)).toEqual(texts.map((text) => `thought-1: ${text}`));
  });
});
