import fc from "fast-check";
import { type AgentLoopConfig, type AgentMessage, type AgentTool, resumeAgentLoop, type StreamFn, userMessage } from "turnloop";
import { durable, type Step } from "turnloop/durable";
import type { ScriptedAnswer } from "turnloop/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { aborted, model, outline } from "../helpers.js";
import { call, type Entry, MemoryJournal, type Played, play, type Settling, script, ticks, useClock, workTool } from "./durable-helpers.js";

beforeEach(useClock); // vitest calls what it returns

/** All of a run anew, as a process that starts over makes it. */
interface Host {
  streamFn: StreamFn;
  tools?: AgentTool[];
  config?: Partial<AgentLoopConfig>;
  signal?: AbortSignal;
  toolTimeoutMs?: number;
}

function dice(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** Plays the host, then replays each prefix of its journal, or the one that the seed picks, in each way of settling. */
async function replayAll(makeHost: () => Host, settlings: Settling[], seed?: number): Promise<Played & { entries: Entry[] }> {
  const original = new MemoryJournal();
  const played = await play(original.step, makeHost());
  expect(original.ran).toEqual(original.asked);
  const lengths = Array.from({ length: original.entries.length + 1 }, (_, length) => length);
  for (const length of seed === undefined ? lengths : [lengths[seed % lengths.length] as number]) {
    const entries = original.entries.slice(0, length);
    for (const settling of settlings) {
      const replay = new MemoryJournal(entries, settling);
      const again = await play(replay.step, makeHost());
      const recorded = entries.map(({ name }) => name);
      expect(replay.asked, `the steps after ${length} records`).toEqual(original.asked);
      expect(replay.ran, `what ran again after ${length} records`).toEqual(original.asked.filter((name) => !recorded.includes(name)));
      expect(again.messages, `the transcript after ${length} records`).toEqual(played.messages);
      expect(again.end).toEqual(played.end);
      const isWhole = length === original.entries.length;
      if (isWhole && settling === "journal order") expect(outline(again.events)).toEqual(outline(played.events));
    }
  }
  return { ...played, entries: original.entries };
}

const anyOrder: Settling[] = ["journal order", "at once", dice(1), dice(7)];
const echo = workTool("echo", (_id, params) => `echo ${JSON.stringify(params)}`);
const fails = workTool("fails", () => {
  throw new Error("it fails");
});
const once = workTool("once", (_id, _params, _signal, onUpdate) => {
  onUpdate({ content: [{ type: "text", text: "half" }] });
  return { content: [{ type: "text", text: "did it" }], details: { rows: [1, 2] }, usage: { input: 3 } as never };
});
const batch = [{ text: "Three at once." }, call("echo", { ticks: 3 }), call("fails", { ticks: 1 }), call("once", { ticks: 2 })];

const cases: [string, () => Host][] = [
  ["an answer alone", () => ({ streamFn: script(["Hello."]) })],
  ["parallel calls, one of which fails", () => ({ streamFn: script([batch, "Done."]), tools: [echo, fails, once] })],
  [
    "sequential calls over three turns",
    () => ({
      streamFn: script([batch, [{ thinking: "Hm." }, call("echo")], "Done."]),
      tools: [echo, fails, once],
      config: { toolExecution: "sequential" },
    }),
  ],
  [
    "a limit of two calls at once",
    () => ({
      streamFn: script([[...batch, call("echo", { ticks: 1 }), call("once")], "Done."]),
      tools: [echo, fails, once],
      config: { maxParallelToolCalls: 2 },
    }),
  ],
  [
    "calls that the loop answers itself",
    () => ({
      streamFn: script([[call("nobody"), call("echo", { ticks: 1 }), { toolCall: "echo", rawArgs: "[1]" }, call("once")], "Done."]),
      tools: [echo, once],
      config: { beforeToolCall: ({ toolCall }) => (toolCall.name === "once" ? { block: true, reason: "no" } : undefined) },
    }),
  ],
  ["a model that fails", () => ({ streamFn: script([[call("echo")], { content: ["Half"], errorMessage: "overloaded" }]), tools: [echo] })],
  ["a model that throws", () => ({ streamFn: script([{ content: ["Half an answer"], fault: { kind: "throw", afterEvents: 2 } }]) })],
  ["a model whose stream ends early", () => ({ streamFn: script([{ content: ["Half"], fault: { kind: "end", afterEvents: 2 } }]) })],
  ["a model that starts over", () => ({ streamFn: script([{ content: ["Once"], fault: { kind: "restart", afterEvents: 2 } }]) })],
  ["a model that cannot be called", () => ({ streamFn: script([{ fault: { kind: "throwSync" } }]) })],
  ["truncated calls", () => ({ streamFn: script([{ content: [call("echo")], stopReason: "length" }, "Done."]), tools: [echo] })],
  [
    "ids and stop reasons made safe",
    () => ({
      streamFn: script([
        {
          content: [
            { ...call("echo"), id: "x" },
            { ...call("echo"), id: "x" },
          ],
          stopReason: "odd",
        },
        "Done.",
      ]),
      tools: [echo],
    }),
  ],
  [
    "steering, a follow-up and hooks that are deterministic",
    () => {
      const steering = [[], [userMessage("also this", { timestamp: 2 })]];
      const followUps = [[userMessage("and then", { timestamp: 3 })]];
      return {
        streamFn: script([[call("once")], [call("echo")], "Done.", "Done again."]),
        tools: [echo, once],
        config: {
          getSteeringMessages: () => steering.shift() ?? [],
          getFollowUpMessages: async () => followUps.shift() ?? [],
          prepareNextTurn: async ({ context }) => ({
            context: { systemPrompt: "next", messages: context.messages.filter(({ timestamp }) => timestamp !== 1) },
          }),
          afterToolCall: ({ result }) => ({ content: [...result.content, { type: "text", text: "!" }] }),
        },
      };
    },
  ],
];

// SPEC 16.1, 16.2, 16.3, 16.4, 2.1, 2.2
describe("a run replayed from each prefix of its journal", () => {
  it.each(cases)("runs no recorded step again and ends with the same transcript: %s", async (_, makeHost) => {
    await replayAll(makeHost, anyOrder);
  });

  it("names its steps and takes its times from their records", async () => {
    const { messages, entries } = await replayAll(() => ({ streamFn: script([batch, "Done."]), tools: [echo, fails, once] }), anyOrder);
    expect(entries.map(({ name }) => name)).toEqual([
      "run/model:1",
      "run/tool:1:1:fails",
      "run/tool:1:2:once",
      "run/tool:1:0:echo",
      "run/model:2",
    ]);
    // the batch's results are stamped after it; answers when they begin
    expect(messages.map(({ timestamp }) => timestamp)).toEqual([1, 100, 1030, 1030, 1030, 1030]);
  });

  it("stands at 0 before the first record unless told", async () => {
    const { messages } = await play(new MemoryJournal().step, { streamFn: script(["Hello."]), startedAt: undefined as never });
    expect(messages[1]?.timestamp).toBe(0);
  });

  it("never goes back in time when records come from machines whose clocks differ", async () => {
    const entries = ["run/model:1", "run/tool:1:0:echo", "run/model:2"].map((name, i) => ({ name, at: [5000, 3000, 4000][i] }));
    const answers = [[{ type: "toolCall", id: "a", name: "echo", arguments: {} }], undefined, [{ type: "text", text: "Done." }]];
    const journal = new MemoryJournal(
      entries.map(({ name, at }, i) => ({
        name,
        json: JSON.stringify({ at, message: { content: answers[i], stopReason: "stop" }, result: { content: [] } }),
      })),
    );
    const { messages } = await play(journal.step, { streamFn: script([]), tools: [echo] });
    expect(messages.map(({ timestamp }) => timestamp)).toEqual([1, 100, 5000, 5000]);
    expect(journal.ran).toEqual([]);
  });

  it("holds for random scripts", { timeout: 20_000 }, async () => {
    const block = fc.oneof(
      fc.record({ text: fc.string({ maxLength: 40 }) }),
      fc.record({
        toolCall: fc.constantFrom("echo", "fails", "once", "nobody"),
        args: fc.record({ ticks: fc.integer({ min: 0, max: 3 }), note: fc.string({ unit: "binary", maxLength: 5 }) }),
      }),
    );
    const answer: fc.Arbitrary<ScriptedAnswer> = fc.oneof(
      { weight: 5, arbitrary: fc.array(block, { maxLength: 5 }) },
      {
        weight: 1,
        arbitrary: fc.record({ content: fc.array(block, { maxLength: 3 }), stopReason: fc.constantFrom("length", "stop", "odd") }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          content: fc.array(block, { maxLength: 3 }),
          fault: fc.record({
            kind: fc.constantFrom("throw", "end", "restart", "noStart", "reject"),
            afterEvents: fc.integer({ min: 0, max: 5 }),
          }),
        }),
      },
    );
    const scenario = fc.record({
      answers: fc.array(answer, { minLength: 1, maxLength: 3 }),
      limit: fc.constantFrom(undefined, 1, 2),
      sequential: fc.boolean(),
      seed: fc.nat(),
    });
    const check = async ({
      answers,
      limit,
      sequential,
      seed,
    }: typeof scenario extends fc.Arbitrary<infer S> ? S : never): Promise<void> => {
      const makeHost = (): Host => ({
        streamFn: script([...answers, "Done."]),
        tools: [echo, fails, once],
        config: { ...(limit && { maxParallelToolCalls: limit }), ...(sequential && { toolExecution: "sequential" }) },
      });
      await replayAll(makeHost, [dice(seed)], seed);
    };
    await fc.assert(fc.asyncProperty(scenario, check), { numRuns: 200, seed: 16 });
  });
});

const approveEcho = { toolCallId: "scripted_1_0", action: "approve" };

// SPEC 16.1, 16.3, 15.2, 15.3, 15.4
describe("a durable run that is suspended and resumed", () => {
  it("goes on in another run of the same journal, and replays whole", async () => {
    const original = new MemoryJournal();
    const conversation = async (step: Step): Promise<AgentMessage[]> => {
      const streamFn = script([[call("echo", { ticks: 2 }), call("once"), call("echo")], "Done."]);
      const options = { streamFn, tools: [echo, once] };
      const beforeToolCall: AgentLoopConfig["beforeToolCall"] = ({ toolCall }) => ({ suspend: toolCall.name === "echo", reason: "ask" });
      const first = await play(step, { ...options, config: { beforeToolCall } });
      const decisions = first.end.pending?.map(({ toolCall }) => ({ toolCallId: toolCall.id, action: "approve" as const })) ?? [];
      expect(first.outcome).toBe("suspended");
      const startedAt = Math.max(...first.messages.map(({ timestamp }) => timestamp));
      const run = durable({ ...options, step, prefix: "run/resumed", startedAt });
      const context = { systemPrompt: "", messages: first.messages, tools: run.tools };
      const more = await resumeAgentLoop(decisions, context, { model, now: run.now }, () => {}, undefined, run.streamFn);
      return [...first.messages, ...more];
    };
    const messages = await conversation(original.step);
    expect(original.asked).toEqual([
      "run/model:1",
      "run/tool:1:1:once",
      "run/resumed/tool:1:0:echo",
      "run/resumed/tool:1:2:echo",
      "run/resumed/model:1",
    ]);
    expect(messages.at(-1)).toMatchObject({ content: [{ text: "Done." }] });
    for (let length = 0; length <= original.entries.length; length++) {
      const replay = new MemoryJournal(original.entries.slice(0, length));
      expect(await conversation(replay.step)).toEqual(messages);
      expect(replay.asked).toEqual(original.asked);
    }
  });

  it.each<[string, unknown]>([
    ["nothing_pending", "done"],
    ["unknown_decision", [{ toolCallId: "x", action: "deny" }]],
    ["duplicate_decision", [approveEcho, approveEcho]],
    ["missing_decision", []],
    ["invalid_decision", [{ ...approveEcho, args: { ticks: "many" } }]],
    ["invalid_argument", undefined],
  ])("asks for no step when it is refused, and can be resumed rightly then: %s", async (code, decisions) => {
    const parameters = { type: "object", properties: { ticks: { type: "number" } } };
    const options = { streamFn: script([[call("echo")], "Done."]), tools: [{ ...echo, parameters }] };
    const journal = new MemoryJournal();
    const first = await play(journal.step, { ...options, config: { beforeToolCall: () => ({ suspend: true }) } });
    const resume = (given: unknown, messages: AgentMessage[]): Promise<AgentMessage[]> => {
      const run = durable({ ...options, step: journal.step, prefix: "resumed" });
      const context = { systemPrompt: "", messages, tools: run.tools };
      return resumeAgentLoop(given as never, context, { model, now: run.now }, () => {}, undefined, run.streamFn);
    };
    const isDone = decisions === "done";
    const done = isDone ? await resume([approveEcho], first.messages) : [];
    const asked = journal.asked.length;
    const refused = resume(isDone ? [approveEcho] : decisions, [...first.messages, ...done]);
    await expect(refused).rejects.toMatchObject({ code });
    expect(journal.asked.length).toBe(asked);
    expect((await resume([approveEcho], first.messages)).length).toBe(2);
    expect(journal.ran.filter((name) => name.endsWith("echo"))).toEqual(["resumed/tool:1:0:echo"]);
  });
});

// SPEC 16.2, 7.3, 7.4
describe("a run aborted by its caller", () => {
  /** The grace is real time, and long: only where a tool is deaf does it pass. */
  const abortingHost = (work: (abort: () => void) => Partial<Host>, abortGraceMs = 5000): (() => Host) => {
    return () => {
      const caller = new AbortController();
      return {
        streamFn: script([batch, "Done."]),
        ...work(() => caller.abort(new Error("enough"))),
        signal: caller.signal,
        config: { abortGraceMs },
      };
    };
  };
  const quits = (abort: () => void): AgentTool =>
    workTool("echo", (_id, _params, signal) => {
      abort();
      signal.throwIfAborted();
      return "never";
    });
  const never = workTool("fails", () => new Promise(() => {}));
  const obeys = workTool("once", async (_id, _params, signal) => {
    await aborted(signal);
    throw signal.reason;
  });
  const says = workTool("once", async (_id, _params, signal) => {
    while (!signal.aborted) await ticks(1);
    return "stopped in time";
  });
  /** Aborts the run when its second answer has given four events; a deaf model then says nothing more. */
  const modelAborted =
    (isDeaf: boolean) =>
    (abort: () => void): Partial<Host> => ({
      streamFn: async function* (given, context, options) {
        const inner = script([[call("once")], "a long answer, cut short"], { chunkSize: 4 });
        let events = context.messages.length > 1 ? 0 : Number.NEGATIVE_INFINITY;
        for await (const event of await inner(given, context, options)) {
          yield event;
          if (++events !== 4) continue;
          abort();
          if (isDeaf) await new Promise(() => {});
        }
      },
      tools: [workTool("once", () => "x")],
    });

  it.each<[string, (abort: () => void) => Partial<Host>, string[]]>([
    [
      "in a tool, its siblings done, deaf or obedient",
      (abort) => ({ tools: [quits(abort), never, obeys] }),
      [
        'Tool "echo" was aborted (enough) and may have partly run: enough',
        'The run was aborted (enough) and tool "fails" did not stop in time: it may still be running or may have taken effect.',
        'Tool "once" was aborted (enough) and may have partly run: enough',
      ],
    ],
    [
      "in a tool, siblings having ended before and after",
      (abort) => ({ tools: [quits(abort), fails, says] }),
      ['Tool "echo" was aborted (enough) and may have partly run: enough', "it fails", "stopped in time"],
    ],
    ["while the model answers", modelAborted(false), ["x"]],
    ["while a deaf model answers", modelAborted(true), ["x"]],
  ])("is recorded and replays without its caller's signal: %s", async (_, work, texts) => {
    const makeHost = abortingHost(work, texts.some((text) => text.includes("did not stop")) ? 150 : undefined);
    const { entries, ...played } = await replayAll(makeHost, ["journal order", "at once", dice(3)]);
    const results = played.messages.filter(({ role }) => role === "toolResult") as { content: { text: string }[]; isError: boolean }[];
    expect(results.map(({ content }) => content[0]?.text)).toEqual(texts);
    expect(played.outcome).toBe("aborted");
    for (const settling of anyOrder) {
      const replay = new MemoryJournal(entries, settling);
      const again = await play(replay.step, { ...makeHost(), signal: undefined });
      expect(again.messages).toEqual(played.messages);
      expect(again.end).toEqual(played.end);
      expect(replay.ran).toEqual([]);
    }
  });

  it("starts nothing that waited for its turn, on a replay neither", async () => {
    const makeHost = abortingHost((abort) => ({ tools: [quits(abort), fails], streamFn: script([[call("echo"), call("fails")]]) }));
    const { messages, entries } = await replayAll(() => ({ ...makeHost(), config: { toolExecution: "sequential" } }), anyOrder);
    expect(entries.map(({ name }) => name)).toEqual(["run/model:1", "run/tool:1:0:echo"]);
    expect(messages[3]).toMatchObject({ content: [{ text: "Not executed: the run was aborted (enough) before this call started." }] });
  });

  it("keeps the result of a call that began when another had made room, in whatever order the records come back", async () => {
    const calls = [call("echo", { ticks: 6 }), call("once"), call("fails"), call("once", { ticks: 2 }), call("fails"), call("once")];
    const makeHost = abortingHost((abort) => ({ tools: [quits(abort), fails, once], streamFn: script([calls]) }));
    const host = (): Host => ({ ...makeHost(), config: { maxParallelToolCalls: 2 } });
    const original = new MemoryJournal();
    const played = await play(original.step, host());
    const textsOf = ({ messages }: Played): unknown[] =>
      messages.flatMap((message) => (message.role === "toolResult" ? message.content : []));
    expect(original.entries.map(({ name }) => name)).toContain("run/tool:1:3:once");
    for (const settling of [...anyOrder, dice(2), dice(3), dice(4)]) {
      const replay = new MemoryJournal(original.entries, settling);
      const again = await play(replay.step, { ...host(), signal: undefined });
      expect([textsOf(again), again.outcome, replay.ran]).toEqual([textsOf(played), "aborted", []]);
    }
  });

  it("keeps of an answer what had come when it was cut short", async () => {
    const { messages } = await replayAll(abortingHost(modelAborted(false)), ["at once"]);
    expect(messages.at(-1)).toMatchObject({
      stopReason: "aborted",
      errorMessage: "Aborted: enough",
      content: [{ type: "text", text: "a long a" }],
    });
  });
});
