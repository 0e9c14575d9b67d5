import { type AssistantMessageEvent, defineTool, type LlmContext, runAgentLoop, userMessage } from "turnloop";
import { Type } from "turnloop/schema";
import { recordEvents } from "turnloop/testing";
import { describe, expect, test, vi } from "vitest";
import { offlineModel } from "../../examples/offline-model.js";
import { workspaceTools } from "../../examples/workspace-tools.js";
import { ask, type Conversation, MODEL, workspaceOf } from "./helpers.js";

const HELP_START = "I am a small offline model";

/** Lines one to six, so that the beginning is not the whole file. */
const LARGE = "line one\nline two\nline three\nline four\nline five\nline six\n";

function project(): string {
  return workspaceOf({
    "README.md": "# Title\nTODO: write it\n",
    "src/small.ts": "export {};\n",
    "src/deep/large.ts": LARGE,
    "a.txt": "same\nold\nend\n",
    "b.txt": "same\nnew\nend\n",
  });
}

/** In which order the tools of a run started and ended. */
function toolEvents({ events }: Conversation): string[] {
  return events.flatMap((event) =>
    event.type === "tool_execution_start" || event.type === "tool_execution_end" ? [event.type.replace("tool_execution_", "")] : [],
  );
}

describe("questions", () => {
  test("how many lines does FILE have?", async () => {
    const { answer, turns, outcome, thinking } = await ask(project(), "How many lines does README.md have?");
    expect(turns).toEqual([['count_lines {"path":"README.md"}'], []]);
    expect(answer).toBe("README.md has 2 lines (23 bytes).");
    expect(thinking).toBe("Plan: count the lines of README.md. Next: count_lines.\nNow I can answer.");
    expect(outcome).toBe("completed");
  });

  test("which file in FOLDER is the largest, and how does it begin?", async () => {
    const { answer, turns } = await ask(project(), "which file in src is the largest, and how does it begin?");
    expect(turns).toEqual([
      ['list_files {"folder":"src","order":"largest"}'],
      ['read_file {"path":"src/deep/large.ts","firstLine":1,"lineCount":5}'],
      [],
    ]);
    expect(answer).toBe(
      "The largest file in src is src/deep/large.ts with 58 bytes.\n\n" +
        "src/deep/large.ts begins:\n    line one\n    line two\n    line three\n    line four\n    line five",
    );
  });

  test("where is TEXT mentioned?", async () => {
    const { answer, turns } = await ask(project(), "where is todo mentioned?");
    expect(turns).toEqual([['search_text {"text":"todo","folder":"."}'], []]);
    expect(answer).toBe('"todo" is mentioned in 1 line of 1 file:\n- README.md:2: TODO: write it');
    const nowhere = await ask(project(), "where is 'no such thing' mentioned in src?");
    expect(nowhere.answer).toBe('"no such thing" is not mentioned in src (2 files searched).');
  });

  test("compare A and B, read in parallel", async () => {
    const compared = await ask(project(), "compare a.txt and b.txt");
    expect(compared.turns).toEqual([['read_file {"path":"a.txt"}', 'read_file {"path":"b.txt"}'], []]);
    expect(toolEvents(compared)).toEqual(["start", "start", "end", "end"]);
    expect(compared.answer).toBe(
      "a.txt has 3 lines, 13 bytes; b.txt has 3 lines, 13 bytes.\nThey first differ in line 2:\n- a.txt: old\n- b.txt: new",
    );
  });

  test.each([
    ["one\ntwo\n", "one\ntwo\n", "Their lines are the same."],
    ["one\ntwo\n", "one\r\ntwo\r\n", "Their lines are the same; they differ in their line ends only."],
    ["one\n", "one\ntwo\n", "They are the same up to line 1; there only y.txt goes on:\n- y.txt: two"],
    ["one\ntwo\n", "", "They are the same up to line 0; there only x.txt goes on:\n- x.txt: one"],
    ["123456789\n".repeat(3000), "123456789\n".repeat(3000), "They are the same as far as I could read them, 2000 lines."],
  ])("compare %j and %j", async (x, y, expected) => {
    const { answer } = await ask(workspaceOf({ "x.txt": x, "y.txt": y }), "compare x.txt with y.txt");
    expect(answer.split("\n").slice(1).join("\n")).toBe(expected);
  });

  test("what is 12 * (3 + 4)?", async () => {
    const { answer, turns } = await ask(project(), "what is 12 * (3 + 4)?");
    expect(turns).toEqual([['calculate {"expression":"12 * (3 + 4)"}'], []]);
    expect(answer).toBe("12 * (3 + 4) = 84");
  });

  test("list files in FOLDER", async () => {
    const { answer, turns } = await ask(project(), "List files in src");
    expect(turns).toEqual([['list_files {"folder":"src"}'], []]);
    expect(answer).toBe("In src: 2 files, 69 bytes.\n- src/deep/large.ts (58 bytes)\n- src/small.ts (11 bytes)");
  });

  test("long lists are shortened", async () => {
    const files = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${10 + index}`, "word"]));
    const { answer } = await ask(workspaceOf(files), "list files; where is word mentioned?");
    expect(answer.match(/^- f/gm)).toHaveLength(40);
    expect(answer.match(/^- … and 10 more$/gm)).toHaveLength(2);
  });

  test("show FILE", async () => {
    const { answer, turns } = await ask(project(), 'show "README.md"');
    expect(turns).toEqual([['read_file {"path":"README.md","firstLine":1,"lineCount":40}'], []]);
    expect(answer).toBe("README.md (2 lines, 23 bytes):\n    # Title\n    TODO: write it");
    const part = await ask(project(), "read lines 2 to 3 of src/deep/large.ts");
    expect(part.answer).toBe("src/deep/large.ts (6 lines, 58 bytes), lines 2 to 3:\n    line two\n    line three");
  });

  test("an empty file and an empty folder", async () => {
    const root = workspaceOf({ "empty.txt": "", "dist/ignored.js": "x", "docs/node_modules/x.js": "x" });
    const { answer } = await ask(root, "show empty.txt; how does it begin? list files in docs; which file in docs is the largest?");
    expect(answer).toBe("empty.txt is empty (0 lines, 0 bytes).\n\nThere are no files in docs.");
  });
});

describe("several requests", () => {
  test("in one message: what can be asked for at once is asked for at once", async () => {
    const question =
      'how many lines does a.txt have; what is 2^10? Then compare the largest file in src with README.md and where is "old" mentioned';
    const { answer, turns } = await ask(project(), question);
    expect(turns).toEqual([
      [
        'count_lines {"path":"a.txt"}',
        'calculate {"expression":"2^10"}',
        'list_files {"folder":"src","order":"largest"}',
        'read_file {"path":"README.md"}',
        'search_text {"text":"old","folder":"."}',
      ],
      ['read_file {"path":"src/deep/large.ts"}'],
      [],
    ]);
    expect(answer.split("\n\n")).toEqual([
      "a.txt has 3 lines (13 bytes).",
      "2^10 = 1024",
      "src/deep/large.ts has 6 lines, 58 bytes; README.md has 2 lines, 23 bytes.\n" +
        "They first differ in line 1:\n- src/deep/large.ts: line one\n- README.md: # Title",
      '"old" is mentioned in 1 line of 1 file:\n- a.txt:2: old',
    ]);
  });

  test("the same call is made once", async () => {
    const { turns } = await ask(project(), "show a.txt and a.txt; how many lines does a.txt have? how long is a.txt?");
    expect(turns[0]).toEqual(['read_file {"path":"a.txt","firstLine":1,"lineCount":40}', 'count_lines {"path":"a.txt"}']);
  });

  test("in several messages before an answer", async () => {
    const { answer, turns } = await ask(project(), ["how many lines does a.txt have?", "and what is 1 + 1?"]);
    expect(turns).toHaveLength(2);
    expect(answer).toBe("a.txt has 3 lines (13 bytes).\n\n1 + 1 = 2");
  });

  test("one that comes in while tools run is answered together with the first", async () => {
    const question = "which file in src is the largest, and how does it begin?";
    const { answer, turns } = await ask(project(), question, { steering: "what is 6 * 7? how many lines does it have?" });
    expect(turns).toEqual([
      ['list_files {"folder":"src","order":"largest"}'],
      [
        'read_file {"path":"src/deep/large.ts","firstLine":1,"lineCount":5}',
        'calculate {"expression":"6 * 7"}',
        'count_lines {"path":"src/deep/large.ts"}',
      ],
      [],
    ]);
    expect(answer).toMatch(
      /^The largest file in src is .*\n\nsrc\/deep\/large\.ts begins:[\s\S]*\n\n6 \* 7 = 42\n\nsrc\/deep\/large\.ts has 6 lines/,
    );
  });

  test("a later question is answered alone, and may refer to what was spoken of", async () => {
    const root = project();
    const first = await ask(root, "which file in src is the largest?");
    const second = await ask(root, "how many lines does it have?", { earlier: first.messages });
    expect(second.turns).toEqual([['list_files {"folder":"src","order":"largest"}'], ['count_lines {"path":"src/deep/large.ts"}'], []]);
    expect(second.answer).toBe("src/deep/large.ts has 6 lines (58 bytes).");
    const third = await ask(root, "what is 1+1?", { earlier: second.messages });
    expect(third.answer).toBe("1+1 = 2");
  });
});

describe("what goes wrong is said", () => {
  test("errors of tools", async () => {
    const { answer, outcome } = await ask(project(), "what is 1/0? list files in nope; show ../x; where is a mentioned in nope");
    expect(answer.split("\n\n")).toEqual([
      'I could not calculate 1/0: Division by zero: "0" is 0.',
      'I could not list the files in nope: "nope" does not exist in the workspace.',
      expect.stringMatching(/^I could not read \.\.\/x: "\.\.\/x" is outside the workspace; expected a path inside \//),
      'I could not search nope for "a": "nope" does not exist in the workspace.',
    ]);
    expect(outcome).toBe("completed");
  });

  test("a file that does not exist is looked for under its name", async () => {
    const { answer, turns } = await ask(project(), "how many lines does LARGE.ts have?");
    expect(turns).toEqual([
      ['count_lines {"path":"LARGE.ts"}'],
      ['list_files {"folder":"."}'],
      ['count_lines {"path":"src/deep/large.ts"}'],
      [],
    ]);
    expect(answer).toBe("src/deep/large.ts has 6 lines (58 bytes).");
  });

  test("a file that cannot be found, or is found twice", async () => {
    const root = workspaceOf({ "one/x.txt": "1", "two/x.txt": "2" });
    const { answer } = await ask(root, "show nope.txt; show x.txt; compare nope.txt with x.txt");
    expect(answer.split("\n\n")).toEqual([
      'I could not read nope.txt: "nope.txt" does not exist in the workspace.',
      'I could not read x.txt: "x.txt" does not exist in the workspace. These are called like that: one/x.txt, two/x.txt.',
      'I could not read nope.txt: "nope.txt" does not exist in the workspace.\n' +
        'I could not read x.txt: "x.txt" does not exist in the workspace. These are called like that: one/x.txt, two/x.txt.\n' +
        "So I cannot compare nope.txt with x.txt.",
    ]);
  });

  test("a folder instead of a file is listed", async () => {
    const { answer, turns } = await ask(project(), "what is in src?");
    expect(turns.map((calls) => calls.map((call) => call.split(" ")[0]))).toEqual([["read_file"], ["list_files"], []]);
    expect(answer).toMatch(/^In src: 2 files/);
  });

  test("words that refer to nothing", async () => {
    const { answer } = await ask(project(), "how does it begin?");
    expect(answer).toBe('I could not read how it begins: I do not know which file "it" is.');
  });

  test("a tool that is not there", async () => {
    const root = project();
    const tools = workspaceTools(root).filter(({ name }) => name !== "calculate");
    const { answer } = await ask(root, "what is 1+1?", { tools });
    expect(answer).toBe('I could not calculate 1+1: There is no tool "calculate" here.');
  });

  test("a tool that answers otherwise than expected is quoted", async () => {
    const execute = (): string => "something else";
    const tool = (name: string) => defineTool({ name, description: "", parameters: Type.Object({}), execute });
    const tools = ["list_files", "search_text", "read_file"].map(tool);
    const { answer } = await ask("", "list files; where is x mentioned; show a.txt", { tools });
    expect(answer).toBe("something else\n\na.txt (an unknown size):\n    something else");
  });

  test("what it does not understand, with what it does", async () => {
    const { answer, turns } = await ask(project(), "tell me a joke, and what is 1+1?");
    expect(turns).toEqual([['calculate {"expression":"1+1"}'], []]);
    expect(answer).toContain('I do not understand "tell me a joke".\n\n1+1 = 2\n\nI am a small offline model');
    const help = await ask(project(), "hello");
    expect(help.answer).toMatch(HELP_START);
    expect(help.turns).toEqual([[]]);
  });
});

describe("streaming", () => {
  const context: LlmContext = { messages: [userMessage("help")] };

  test("thinking first, then the text in small pieces", async () => {
    const events: AssistantMessageEvent<string>[] = [];
    for await (const event of await offlineModel({ chunkDelayMs: 0 })(MODEL, context)) events.push(event);
    const types = events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
    expect(types).toEqual(["start", "thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end", "done"]);
    const deltas = events.flatMap((event) => (event.type === "text_delta" ? [event.delta] : []));
    expect(deltas.length).toBeGreaterThan(30);
    expect(Math.max(...deltas.map(({ length }) => length))).toBeLessThan(30);
  });

  test("the same transcript gives the same answer", async () => {
    const collect = async (): Promise<string[]> => {
      const deltas: string[] = [];
      for await (const event of await offlineModel({ chunkDelayMs: 0 })(MODEL, context)) if ("delta" in event) deltas.push(event.delta);
      return deltas;
    };
    expect(await collect()).toEqual(await collect());
  });

  test("waits for the delay before each piece, by default too", async () => {
    vi.useFakeTimers();
    try {
      const iterator = (await offlineModel()(MODEL, context))[Symbol.asyncIterator]();
      const first = iterator.next();
      expect(vi.getTimerCount()).toBe(1);
      await vi.advanceTimersByTimeAsync(8);
      expect((await first).value.type).toBe("start");
    } finally {
      vi.useRealTimers();
    }
  });

  test("0 milliseconds use no timers", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    try {
      for await (const event of await offlineModel({ chunkDelayMs: 0 })(MODEL, context)) void event;
      expect(setTimer).not.toHaveBeenCalled();
    } finally {
      setTimer.mockRestore();
    }
  });

  test("an abort in a pause ends the stream as aborted at once, without a timer or listener left", async () => {
    const controller = new AbortController();
    const removed = vi.spyOn(controller.signal, "removeEventListener");
    const iterator = (await offlineModel({ chunkDelayMs: 1_000_000 })(MODEL, context, { signal: controller.signal }))[
      Symbol.asyncIterator
    ]();
    const first = iterator.next();
    controller.abort("enough");
    expect((await first).value.type).toBe("start");
    const { value } = await iterator.next();
    expect(value).toMatchObject({ type: "error", reason: "aborted", error: { stopReason: "aborted" } });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(removed).toHaveBeenCalledOnce();
  });

  test("an abort in the middle of the answer keeps what was said", async () => {
    const controller = new AbortController();
    const recorder = recordEvents();
    let deltas = 0;
    await runAgentLoop(
      [userMessage("help")],
      { systemPrompt: "", messages: [] },
      { model: MODEL },
      (event) => {
        recorder(event);
        if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta" && ++deltas === 5)
          controller.abort("enough");
      },
      controller.signal,
      offlineModel(),
    );
    expect(deltas).toBe(5);
    expect(recorder.events.at(-1)).toMatchObject({ type: "agent_end", outcome: "aborted" });
    expect(recorder.events.find((event) => event.type === "turn_end")).toMatchObject({
      message: {
        stopReason: "aborted",
        content: [{ type: "thinking" }, { type: "text", text: "I am a small offline model: I understand a few" }],
      },
    });
  });

  test("no request gets help", async () => {
    const { answer } = await ask(project(), "...");
    expect(answer).toMatch(HELP_START);
  });
});
