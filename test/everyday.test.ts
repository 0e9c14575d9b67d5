import fc from "fast-check";
import {
  type AgentMessage,
  type AgentToolResult,
  type ImageContent,
  keepLast,
  limitToolOutput,
  pairToolCalls,
  parseTranscript,
  type TextContent,
  toLlmMessages,
  userMessage,
} from "turnloop";
import { describe, expect, it } from "vitest";
import { continueRun, makeTool, resultsOf, run, textOf } from "./helpers.js";

const image: ImageContent = { type: "image", data: "AA==", mimeType: "image/png" };
const text = (value: string): TextContent => ({ type: "text", text: value });
const { usage, ...rest } = (await run(["x"])).messages[1] as never as Record<string, unknown>;
const assistant = (...ids: string[]): AgentMessage =>
  ({ ...rest, usage, content: [text("a"), ...ids.map((id) => ({ type: "toolCall", id, name: "t", arguments: {} }))] }) as never;
const result = (id: string): AgentMessage => ({
  role: "toolResult",
  toolCallId: id,
  toolName: "t",
  content: [text(id)],
  isError: false,
  timestamp: 1,
});
const user = (content: string): AgentMessage => userMessage(content, { timestamp: 1 });
const note = { role: "note", text: "n", timestamp: 1 } as never as AgentMessage;

describe("keepLast", () => {
  const [first, ask, batch, a, b, last] = [user("first"), user("ask"), assistant("a", "b"), result("a"), result("b"), assistant()];
  const transcript = [first, assistant(), ask, batch, a, b, last];
  it.each<[number, AgentMessage[]]>([
    // SPEC 6.6
    [1, [first, last]],
    [2, [first, batch, a, b, last]],
    [3, [first, batch, a, b, last]],
    [4, [first, batch, a, b, last]],
    [5, [first, ask, batch, a, b, last]],
    [6, [first, ...transcript.slice(1)]],
    [7, transcript],
    [100, transcript],
    [Number.POSITIVE_INFINITY, transcript],
  ])("(%s) keeps the first user message and never separates a call from its results", (n, kept) => {
    const given = Object.freeze(transcript.slice()) as AgentMessage[];
    expect(keepLast(n)(given)).toEqual(kept);
  });

  it("needs no user message and no message at all", () => {
    expect(keepLast(3)([])).toEqual([]);
    expect(keepLast(1)([assistant(), note])).toEqual([note]);
    expect(keepLast(1)([note, first, assistant(), last])).toEqual([first, last]);
    for (const n of [0, -1, Number.NaN, undefined])
      expect(() => keepLast(n as number)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  /** Transcripts as a host may have them: batches with all their results, notes of its own anywhere, also inside a batch. */
  const batches = fc.nat(3).map((size) => {
    const ids = Array.from({ length: size }, (_, i) => `c${i}`);
    return [assistant(...ids), ...ids.map(result)];
  });
  const part = fc.oneof(batches, fc.constantFrom([user("u")], [note]));
  const insert = (all: AgentMessage[], at: number) => [...all.slice(0, at), note, ...all.slice(at)];
  const transcripts = (noted: boolean) =>
    fc
      .tuple(fc.array(part, { maxLength: 8 }), fc.array(fc.nat(20), { maxLength: noted ? 4 : 0 }))
      .map(([parts, places]) => places.reduce((all, place) => insert(all, place % (all.length + 1)), parts.flat()));
  it.each([false, true])("whatever it cuts, the request is in pairs (notes inside of batches: %s)", (noted) => {
    fc.assert(
      fc.property(transcripts(noted), fc.integer({ min: 1, max: 12 }), (messages, n) => {
        const kept = keepLast(n)(messages);
        const request = toLlmMessages(kept);
        expect(pairToolCalls(request)).toBe(request);
        expect(kept.slice(kept.length - Math.min(n, messages.length))).toEqual(messages.slice(-n));
        expect(kept.find(({ role }) => role === "user")).toBe(messages.find(({ role }) => role === "user"));
      }),
      { numRuns: 300 },
    );
  });

  it("as transformContext leaves the transcript whole", async () => {
    const tools = [makeTool("t", () => "r")];
    const { requests, messages } = await run([[{ toolCall: "t" }], [{ toolCall: "t" }], "done"], {
      tools,
      config: { transformContext: keepLast(1) },
    });
    expect(requests.map((request) => request.messages.map(({ role }) => role))).toEqual([
      ["user"],
      ["user", "assistant", "toolResult"],
      ["user", "assistant", "toolResult"],
    ]);
    expect(messages.length).toBe(6);
  });
});

describe("limitToolOutput", () => {
  const limit = (chars: number, ...content: AgentToolResult["content"]) => limitToolOutput(chars)({ result: { content } })?.content;
  const cut = (lost: number, of: number) => text(`[${lost} of ${of} characters were cut]`);

  it.each<[string, number, AgentToolResult["content"], AgentToolResult["content"] | undefined]>([
    // SPEC 6.6
    ["what fits is untouched", 5, [text("ab"), text("cde")], undefined],
    ["nothing to cut", 0, [], undefined],
    ["images only", 0, [image], undefined],
    ["one block", 3, [text("abcde")], [text("abc"), cut(2, 5)]],
    ["the limit counts over all blocks", 3, [text("ab"), text("cd"), text("ef")], [text("ab"), text("c"), cut(3, 6)]],
    ["the limit falls between blocks", 2, [text("ab"), text("cd")], [text("ab"), cut(2, 4)]],
    ["images stay, in place", 1, [image, text("ab"), image, text("cd"), image], [image, text("a"), image, image, cut(3, 4)]],
    ["nothing allowed", 0, [text("abc"), image], [image, cut(3, 3)]],
    ["a pair at the edge is not cut", 2, [text("a😀b")], [text("a"), cut(3, 4)]],
    ["a pair before the edge is kept", 3, [text("a😀b")], [text("a😀"), cut(1, 4)]],
    ["what follows a cut block is not let in", 2, [text("a😀"), text("z")], [text("a"), cut(3, 4)]],
    ["only half a pair fits", 1, [text("😀")], [cut(2, 2)]],
  ])("%s", (_name, chars, content, expected) => {
    const before = structuredClone(content);
    expect(limit(chars, ...content)).toEqual(expected);
    expect(content).toEqual(before);
  });

  it("keeps to the limit, keeps pairs and images, and counts right, whatever comes", () => {
    const block = fc.oneof(fc.string({ unit: "grapheme", maxLength: 12 }).map(text), fc.constant(image));
    fc.assert(
      fc.property(fc.array(block, { maxLength: 6 }), fc.nat(30), (content, chars) => {
        const all = content.map((part) => (part.type === "text" ? part.text : "")).join("");
        const limited = limit(chars, ...content);
        if (all.length <= chars) {
          expect(limited).toBeUndefined();
          return;
        }
        const kept = (limited as typeof content).slice(0, -1);
        const words = textOf({ role: "toolResult", content: kept } as never);
        expect(words.length <= chars && words.length >= chars - 1 && all.startsWith(words)).toBe(true);
        expect(words).not.toMatch(/\p{Surrogate}/u);
        expect(kept.filter(({ type }) => type === "image").length).toBe(content.filter(({ type }) => type === "image").length);
        expect(limited?.at(-1)).toEqual(cut(all.length - words.length, all.length));
      }),
      { numRuns: 300 },
    );
  });

  it("as afterToolCall cuts what the model and the transcript get and keeps the rest of the result", async () => {
    const tools = [makeTool("t", () => ({ content: [text("x".repeat(50)), image], details: { lines: 50 }, isError: true }))];
    const record = await run([[{ toolCall: "t" }], "done"], { tools, config: { afterToolCall: limitToolOutput(10) } });
    expect(resultsOf(record)[0]).toMatchObject({
      content: [text("x".repeat(10)), image, cut(40, 50)],
      details: { lines: 50 },
      isError: true,
    });
    expect(record.requests[1]?.messages.at(-1)?.content).toEqual(resultsOf(record)[0]?.content);
    for (const chars of [-1, Number.NaN, undefined])
      expect(() => limitToolOutput(chars as number)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});

describe("parseTranscript", () => {
  it("gives back a real run, from its text and from its value, and the run goes on from it", async () => {
    // SPEC 6.6, 2.1
    const tools = [makeTool("t", () => ({ content: [text("r"), image], details: { deep: [1] } }))];
    const prompts = [userMessage("look", { images: [image] })];
    const { messages } = await run(
      [[{ thinking: "hm" }, { text: "Hi" }, { toolCall: "t", rawArgs: "[" }, { toolCall: "t" }], { errorMessage: "busy" }],
      { prompts, tools },
    );
    const stored = JSON.stringify([...messages, note, user("go on")]);
    const parsed = parseTranscript(stored);
    expect(parsed).toEqual([...messages, note, user("go on")]);
    expect(parseTranscript(JSON.parse(stored))).toEqual(parsed);
    expect((await continueRun(["done"], { messages: parsed, tools })).outcome).toBe("completed");
    expect(parseTranscript("[]")).toEqual([]);
  });

  const good = () => JSON.parse(JSON.stringify([user("u"), assistant("a"), result("a"), { ...user(""), content: [text("x"), image] }]));
  /** The value with something else at the path; undefined takes away what was there. */
  function spoiled(path: string, bad: unknown): any {
    const value = good();
    const keys = path.match(/\w+/g) as string[];
    const holder = keys.slice(0, -1).reduce((at, key) => at[key], value);
    const key = keys[keys.length - 1] as string;
    holder[key] = bad;
    return value;
  }
  it.each<[string, unknown]>([
    ["[0]", null],
    ["[1]", "hello"],
    ["[1]", [1]],
    ["[0].role", undefined],
    ["[0].role", ""],
    ["[2].timestamp", "2024-01-01"],
    ["[0].timestamp", null],
    ["[0].content", null],
    ["[0].content", { type: "text" }],
    ["[1].content", "text"],
    ["[2].content", undefined],
    ["[1].stopReason", "tired"],
    ["[1].stopReason", undefined],
    ["[1].usage", null],
    ["[1].model", 4],
    ["[2].toolCallId", undefined],
    ["[2].toolName", 1],
    ["[2].isError", "false"],
    ["[1].content[0]", null],
    ["[1].content[0].text", 5],
    ["[1].content[1].id", undefined],
    ["[1].content[1].arguments", "{}"],
    ["[1].content[1].arguments", []],
    ["[3].content[0].type", "toolCall"],
    ["[1].content[0].type", "image"],
    ["[3].content[1].data", undefined],
    ["[2].content[0].type", "constructor"],
  ])("names %s as what is wrong when it is %j", (path, bad) => {
    const value = spoiled(path, bad);
    for (const given of [value, JSON.stringify(value)])
      expect(() => parseTranscript(given)).toThrow(
        expect.objectContaining({ name: "TurnLoopError", code: "invalid_transcript", message: expect.stringContaining(`${path} `) }),
      );
  });

  it.each(["", "{", "not json", "null", '"text"', "{}", "5", null, undefined, 5, {}, new Map()])(
    "refuses %j, which is no list of messages",
    (given) => {
      expect(() => parseTranscript(given)).toThrow(expect.objectContaining({ code: "invalid_transcript" }));
    },
  );

  it("a hole in an array is something wrong, too", () => {
    const holed = good();
    delete holed[1];
    expect(() => parseTranscript(holed)).toThrow(
      expect.objectContaining({ code: "invalid_transcript", message: expect.stringContaining("[1]") }),
    );
  });

  it("roles of the host's own pass, whatever they hold", () => {
    const own = [{ role: "note" }, { role: "constructor", content: 5 }, { role: "artifact", content: [null], timestamp: "then" }];
    expect(parseTranscript(JSON.stringify(own))).toEqual(own);
  });
});
