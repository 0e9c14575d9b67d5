import fc from "fast-check";
import {
  type AgentMessage,
  type AssistantMessage,
  dropFailedTail,
  type Message,
  pairToolCalls,
  type ToolResultMessage,
  toLlmMessages,
  toWellFormed,
  userMessage,
} from "turnloop";
import { describe, expect, it } from "vitest";
import { answer, deepFreeze, toolCall } from "./hand-written.js";
import { continueRun, makeTool, run, textOf } from "./helpers.js";

const result = (id: string, text = `result of ${id}`): ToolResultMessage => ({
  role: "toolResult",
  toolCallId: id,
  toolName: "t",
  content: [{ type: "text", text }],
  isError: false,
  timestamp: 3,
});

/**
 * A transcript in short: `u` a user message, `a` an answer with a text, `a:c1,c2` one with calls, `r:c1` a result; `e:c1` a
 * failed answer with a text and calls, `x:c1` an aborted one with calls only; `n` a message of the host's own.
 */
function transcript(short: string): Message[] {
  return short
    .split(" ")
    .filter((part) => part !== "")
    .map((part) => {
      const [kind, ids = ""] = part.split(":");
      const calls = ids === "" ? [] : ids.split(",").map((id) => toolCall("t", {}, id));
      if (kind === "u") return userMessage("u");
      if (kind === "r") return result(ids);
      if (kind === "e") return answer([{ type: "text", text: "partly" }, ...calls], { stopReason: "error" });
      if (kind === "x") return answer(calls, { stopReason: "aborted" });
      if (kind === "n") return { role: "note" } as unknown as Message;
      return answer([{ type: "text", text: "said" }, ...calls]);
    });
}

/** The reverse; a made-up result is `r:c1!`. */
function short(messages: readonly AgentMessage[]): string {
  return (messages as Message[])
    .map((message) => {
      if (message.role === "user") return "u";
      if (message.role === "toolResult") return `r:${message.toolCallId}${message.isError ? "!" : ""}`;
      if (message.role !== "assistant") return "n";
      const ids = message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
      const kind = { error: "e", aborted: "x" }[message.stopReason as string] ?? "a";
      return ids.length > 0 ? `${kind}:${ids.join(",")}` : kind;
    })
    .join(" ");
}

describe("pairToolCalls", () => {
  // SPEC 2.6
  it.each(["", "u", "u a", "u a:1 r:1 a", "u a:1,2 r:1 r:2 u", "u a:1 r:1 a:1 r:1 a:1 r:1", "u e u x u"])(
    'returns the same array for "%s"',
    (given) => {
      const messages = deepFreeze(transcript(given));
      expect(pairToolCalls(messages)).toBe(messages);
    },
  );

  // SPEC 2.6
  it.each([
    ["a missing result", "u a:1 u", "u a:1 r:1! u"],
    ["a missing result at the end", "u a:1", "u a:1 r:1!"],
    ["a missing one among several", "u a:1,2,3 r:1 r:3 a", "u a:1,2,3 r:1 r:2! r:3 a"],
    ["results out of order", "u a:1,2,3 r:3 r:1 r:2", "u a:1,2,3 r:1 r:2 r:3"],
    ["a result behind a user message", "u a:1,2 r:2 u u r:1 a", "u a:1,2 r:1 r:2 u u a"],
    ["results behind and missing", "a:1,2 u r:2 u r:2", "a:1,2 r:1! r:2 u u"],
    ["a result behind the next answer", "a:1 u a r:1", "a:1 r:1! u a"],
    ["a second result", "u a:1 r:1 r:1 u", "u a:1 r:1 u"],
    ["a result without a call", "u r:1 a r:2 u", "u a u"],
    ["a result before its call", "u r:1 a:1 r:1", "u a:1 r:1"],
    ["an id that recurs unanswered", "u a:1 r:1 u a:1 u", "u a:1 r:1 u a:1 r:1! u"],
    ["an id that was not answered the first time", "u a:1 u a:1 r:1", "u a:1 r:1! u a:1 r:1"],
    ["a result of an earlier answer", "u a:1 a:2 r:2 r:1", "u a:1 r:1! a:2 r:2"],
    ["an id twice in one answer", "u a:1,1 r:1 r:1", "u a:1,1 r:1 r:1"],
    ["an id twice in one answer, answered once", "u a:1,1 r:1 u", "u a:1,1 r:1 r:1! u"],
    ["calls of a failed answer", "u e:1 r:1 u", "u e u"],
    ["calls of an aborted answer with nothing else", "u x:1,2 r:1 u", "u u"],
    ["a failed answer between call and result", "u a:1 e:1 r:1 u", "u a:1 r:1! e u"],
  ])("mends %s", (_name, given, expected) => {
    const messages = deepFreeze(transcript(given));
    const paired = pairToolCalls(messages);
    expect(short(paired)).toBe(expected);
    expect(pairToolCalls(paired)).toBe(paired);
  });

  // SPEC 2.6
  it("says of a missing result that none was recorded and that nothing may be assumed of it", () => {
    const made = pairToolCalls([userMessage("u"), answer([toolCall("deploy", {}, "c7")])])[2] as ToolResultMessage;
    expect(made).toMatchObject({ role: "toolResult", toolCallId: "c7", toolName: "deploy", isError: true });
    expect(made.timestamp).toEqual(expect.any(Number));
    expect(textOf(made)).toMatch(/no result was recorded.*not assume/is);
  });

  // SPEC 2.6
  it("gives two results of one id to its two calls in the order they came", () => {
    const paired = pairToolCalls([answer([toolCall("t", {}, "1"), toolCall("t", {}, "1")]), result("1", "first"), result("1", "second")]);
    expect(paired.slice(1).map(textOf)).toEqual(["first", "second"]);
  });

  const part = fc.oneof(
    fc.constantFrom("u", "a", "e", "x"),
    fc.constantFrom("1", "2", "3").map((id) => `r:${id}`),
    fc
      .tuple(fc.constantFrom("a", "e", "x"), fc.array(fc.constantFrom("1", "2", "3"), { minLength: 1, maxLength: 3 }))
      .map(([kind, ids]) => `${kind}:${ids.join(",")}`),
  );

  // SPEC 2.6
  it("pairs any sequence: one result a call, directly after its answer, in source order, all other messages kept", () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
        const messages = deepFreeze(transcript(parts.join(" ")));
        const paired = pairToolCalls(messages);
        const expected: string[] = [];
        for (const message of paired) {
          if (message.role === "toolResult") expect(message.toolCallId).toBe(expected.shift());
          else expect(expected).toEqual([]);
          if (message.role === "assistant") {
            for (const block of message.content) if (block.type === "toolCall") expected.push(block.id);
            if (message.stopReason !== "stop") expect(expected).toEqual([]);
          }
        }
        expect(expected).toEqual([]);
        const others = (list: Message[]) => list.filter(({ role }) => role !== "toolResult").length;
        const callsOnly = parts.filter((text) => text.startsWith("x:")).length;
        expect(others(paired)).toBe(others(messages) - callsOnly);
        for (const message of paired) if (message.role === "toolResult" && !message.isError) expect(messages).toContain(message);
        expect(pairToolCalls(paired)).toBe(paired);
      }),
    );
  });

  // SPEC 2.6
  it.each([
    ["the default conversion", undefined],
    [
      "a conversion that loses the results",
      (messages: AgentMessage[]) => toLlmMessages(messages).filter(({ role }) => role !== "toolResult"),
    ],
  ])("is applied to every request after %s, and the stored transcript is left alone", async (_name, convertToLlm) => {
    const stored = deepFreeze(transcript("u a:1,2 r:2 e:3 u"));
    const { requests, messages } = await continueRun([[{ toolCall: "t", id: "4" }], "end"], {
      messages: stored,
      tools: [makeTool("t", () => "x")],
      config: convertToLlm ? { convertToLlm } : {},
    });
    const mark = convertToLlm ? "!" : "";
    expect(requests.map((request) => short(request.messages))).toEqual([
      `u a:1,2 r:1! r:2${mark} e u`,
      `u a:1,2 r:1! r:2${mark} e u a:4 r:4${mark}`,
    ]);
    expect(short(messages)).toBe("a:4 r:4 a");
  });
});

describe("toLlmMessages", () => {
  const text = { type: "text" as const, text: "t" };
  const empty = { type: "text" as const, text: "" };
  const thinking = { type: "thinking" as const, thinking: "hm", thinkingSignature: "sig" };
  const call = toolCall("t", {});
  const failed = { stopReason: "error", errorMessage: "down" };

  // SPEC 2.5
  it("keeps the three roles as they are and drops every other", () => {
    const kept = transcript("u a:1 r:1 u a");
    const given = [...kept];
    given.splice(1, 0, ...transcript("n n"));
    given.push({} as Message, null as unknown as Message);
    const converted = toLlmMessages(deepFreeze(given));
    expect(converted).toHaveLength(kept.length);
    converted.forEach((message, i) => {
      expect(message).toBe(kept[i]);
    });
  });

  // SPEC 2.5
  it.each([
    ["text, thinking and calls of a good answer", {}, [thinking, text, call], [thinking, text, call]],
    ["an empty text beside a call", {}, [empty, call], [empty, call]],
    ["signed thinking alone", {}, [thinking], [thinking]],
    ["the text of a failed answer", failed, [thinking, empty, text, call], [text]],
    ["the text of an aborted answer", { stopReason: "aborted" }, [text, call, text], [text, text]],
  ])("keeps %s", (_name, extra, content, expected) => {
    expect(toLlmMessages(deepFreeze([userMessage("u"), answer(content, extra)]))).toEqual([
      expect.objectContaining({ role: "user" }),
      answer(expected, extra),
    ]);
  });

  // SPEC 2.5
  it.each([
    ["no content", {}, []],
    ["no content, failed", failed, []],
    ["only empty text, failed", failed, [empty]],
    ["only thinking and calls, failed", failed, [thinking, call]],
    ["only a call, aborted", { stopReason: "aborted" }, [call]],
  ])("drops an answer with %s", (_name, extra, content) => {
    expect(short(toLlmMessages([userMessage("u"), answer(content, extra), userMessage("u")]))).toBe("u u");
  });

  // SPEC 2.5
  it("is what a run converts with by default", async () => {
    const messages = [...transcript("u n e:1 x:2 a:3 r:3"), answer([]), userMessage("u")];
    const standard = await continueRun(["end"], { messages });
    const explicit = await continueRun(["end"], { messages, config: { convertToLlm: toLlmMessages } });
    const wrapped = await continueRun(["end"], { messages, config: { convertToLlm: async (all) => toLlmMessages(all) } });
    expect(short(standard.requests[0]?.messages ?? [])).toBe("u e a:3 r:3 u");
    expect(explicit.requests).toEqual(standard.requests);
    expect(wrapped.requests).toEqual(standard.requests);
  });
});

describe("dropFailedTail", () => {
  // SPEC 2.4
  it.each([
    ["", ""],
    ["u", "u"],
    ["u a", "u a"],
    ["u e", "u"],
    ["u e x:1 e", "u"],
    ["u e u x", "u e u"],
    ["u a:1 r:1 e", "u a:1 r:1"],
    ["e x", ""],
    ["u e n", "u e n"],
  ])('makes "%s" into "%s", a copy', (given, expected) => {
    const messages = deepFreeze(transcript(given));
    const kept = dropFailedTail(messages);
    expect(short(kept)).toBe(expected);
    expect(kept).not.toBe(messages);
  });

  // SPEC 2.4
  it("makes a failed run ready to continue", async () => {
    const failed = await run([{ content: ["part"], errorMessage: "overloaded" }]);
    const retried = await continueRun(["fine now"], { messages: dropFailedTail(failed.messages) });
    expect(short(retried.requests[0]?.messages ?? [])).toBe("u");
    expect(textOf(retried.messages[0])).toBe("fine now");
  });
});

describe("toWellFormed", () => {
  const bad = "x\udc00y";
  const good = "x\ufffdy";
  const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" };

  // SPEC 2.7
  it("returns the same array when every text is well-formed", () => {
    const messages = deepFreeze([...transcript("u a:1 r:1 e"), userMessage([{ type: "text", text: "😀" }, image])]);
    expect(toWellFormed(messages)).toBe(messages);
  });

  // SPEC 2.7
  it.each<[string, (text: string) => Message]>([
    ["a user's text", (text) => userMessage(text, { timestamp: 1 })],
    ["a user's block", (text) => userMessage([image, { type: "text", text }], { timestamp: 1 })],
    ["an answer's text and its signature", (text) => answer([{ type: "text", text, textSignature: text }])],
    ["thinking", (thinking) => answer([{ type: "thinking", thinking }])],
    ["a call's id and name", (text) => answer([toolCall(text, {}, text)])],
    ["a call's arguments, keys and values", (text) => answer([toolCall("t", { [text]: { list: [1, null, text, { [text]: text }] } })])],
    ["a result's text, id and name", (text) => ({ ...result(text, text), toolName: text })],
  ])("mends %s and leaves the other messages and the given one as they are", (_name, make) => {
    const others = transcript("u a:1 r:1");
    const given = deepFreeze([...others.slice(0, 1), make(bad), ...others.slice(1)]);
    const mended = toWellFormed(given);
    expect(mended[1]).toEqual(make(good));
    expect([mended[0], ...mended.slice(2)].map((message, i) => message === others[i])).toEqual([true, true, true]);
  });

  // SPEC 2.7
  it.each([
    ["\ud83d", "\ufffd"],
    ["\ude00\ud83d", "\ufffd\ufffd"],
    ["\ud83d\ud83d\ude00", "\ufffd😀"],
    ["😀\ude00", "😀\ufffd"],
    ["a\ud83d b", "a\ufffd b"],
  ])("replaces each lone surrogate and no pair (%j)", (given, expected) => {
    expect(textOf(toWellFormed([userMessage(given)])[0])).toBe(expected);
  });

  // SPEC 2.1, 2.7
  it("never looks into details, and keeps own keys that name a prototype", () => {
    const details: Record<string, unknown> = { big: 1n, bad };
    details.self = details;
    const [mended] = toWellFormed([{ ...result("1", bad), details }]) as ToolResultMessage[];
    expect(mended?.details).toBe(details);
    const args = JSON.parse('{"__proto__": {"polluted": "\\ud800"}}');
    const [call] = (toWellFormed([answer([toolCall("t", args)])]) as AssistantMessage[])[0]?.content ?? [];
    expect(JSON.stringify(call)).toContain('{"__proto__":{"polluted":"\ufffd"}}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
