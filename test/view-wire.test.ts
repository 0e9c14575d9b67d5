import {
  type AgentEvent,
  type AssistantMessage,
  AssistantMessageBuilder,
  type AssistantMessageEvent,
  initialView,
  reduceEvents,
  type StreamFn,
  toWireEvent,
  type ViewState,
  type WireEvent,
} from "turnloop";
import type { Block, ScriptedAnswer } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { answer, deepFreeze, delta, done, said, start, streams } from "./hand-written.js";
import { makeTool, run } from "./helpers.js";

const overWire = (event: AgentEvent): WireEvent => JSON.parse(JSON.stringify(toWireEvent(event)));

/** Text and thinking of an answer that streams; of its calls the ids and names. */
function shown(message: AssistantMessage | undefined): unknown {
  return message?.content.map((block) => {
    if (block.type === "toolCall") return `call ${block.id} ${block.name}`;
    return block.type === "text" ? block.text : `(${block.thinking})`;
  });
}

/** Follows the events live and over a wire; both show the same after each event, and are equal whenever nothing streams. */
function followBoth(events: readonly AgentEvent[]): ViewState {
  let live = initialView();
  let wire = initialView();
  events.forEach((event, i) => {
    const where = `event ${i}, ${event.type}`;
    live = deepFreeze(reduceEvents(live, event));
    wire = deepFreeze(reduceEvents(wire, overWire(event)));
    if (event.type !== "message_start") expect(shown(wire.streamingMessage), where).toEqual(shown(live.streamingMessage));
    if (event.type === "message_update" || event.type === "message_start") return;
    expect(JSON.parse(JSON.stringify(wire)), where).toEqual(JSON.parse(JSON.stringify(live)));
  });
  return wire;
}

const long = "The quick brown fox jumps over the lazy dog. ";
const script: ScriptedAnswer[] = [
  [{ thinking: long }, { text: long }, { toolCall: "t", id: "a", args: { list: [1, 2, { deep: long }] } }, { toolCall: "t", id: "b" }],
  { content: [long + long], fault: { kind: "restart", afterEvents: 4 } },
];

// SPEC 15.1, 3.3
describe("live and over a wire", () => {
  it.each<[string, ScriptedAnswer[]]>([
    ["text, thinking and calls, then an answer that begins again", script],
    ["an answer with no start", [{ content: [{ thinking: long }, long], fault: { kind: "noStart" } }]],
    ["one that breaks", [{ content: [long + long], fault: { kind: "throw", afterEvents: 4 } }]],
    ["one that is empty", [{ content: [] }]],
    ["pairs split over two deltas", ["\ud83d\ude00".repeat(20)]],
  ])("%s", async (_name, answers) => {
    const { events, messages } = await run(answers, { tools: [makeTool("t", () => "ran")] });
    expect(followBoth(events).messages).toEqual(messages);
  });

  it("an answer whose first event is a delta has that delta once", async () => {
    const { events } = await run(
      streams([delta("He"), { ...delta("llo"), partial: said("Hello") } as never, done([{ type: "text", text: "Hello" }])]),
    );
    followBoth(events);
  });

  it("a start that comes late keeps what was there", async () => {
    const late = { ...start, partial: said("He") };
    const { events } = await run(
      streams([delta("He"), late, { ...delta("llo"), partial: said("Hello") }, done([{ type: "text", text: "Hello" }])]),
    );
    followBoth(events);
  });

  it("a StreamFn that goes on writing to its one partial is not shown twice", async () => {
    // what was said is ahead of what was delivered: the start has the whole answer already
    const live = said("Hello");
    const ahead = (event: object) => ({ ...event, partial: live }) as AssistantMessageEvent;
    const { events } = await run(streams([ahead(start), ahead(delta("Hel")), ahead(delta("lo")), done([{ type: "text", text: "Hello" }])]));
    let wire = initialView();
    const texts = events.map((event) => {
      wire = reduceEvents(wire, overWire(event));
      return shown(wire.streamingMessage)?.toString();
    });
    expect(texts.filter((text, i) => text !== texts[i - 1])).toEqual(["", "Hel", "Hello", undefined]);
  });

  it("blocks that come out of order leave room for each other", async () => {
    const content = (...texts: string[]) => answer(texts.map((text) => ({ type: "text", text })));
    const at = (contentIndex: number, text: string, partial: AssistantMessage) => ({ ...delta(text, contentIndex), partial });
    const { events } = await run(
      streams([
        start,
        at(1, "b", content("", "b")),
        at(0, "a", content("a", "b")),
        at(1, "c", content("a", "bc")),
        done([{ type: "text", text: "abc" }]),
      ] as never),
    );
    followBoth(events);
  });

  it.each([-1, 1.5, Number.NaN, 1e9, "0", undefined, Number.POSITIVE_INFINITY])(
    "an index that is no place, %s, changes nothing",
    (contentIndex) => {
      const began = reduceEvents(initialView(), { type: "message_start", message: said("x") });
      const update = { type: "text_delta", contentIndex, delta: "y" } as never;
      expect(reduceEvents(began, { type: "message_update", assistantMessageEvent: update })).toBe(began);
    },
  );

  it("a delta for a block of another kind begins that block anew", () => {
    const message = answer([
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "x" },
      { type: "text", text: "y" },
    ]);
    const kinds = [
      { type: "text_delta", contentIndex: 0, delta: "a" },
      { type: "thinking_delta", contentIndex: 1, delta: "b" },
      { type: "toolcall_delta", contentIndex: 3, delta: "{" },
    ] as const;
    const view = kinds.reduce<ViewState>(
      (before, assistantMessageEvent) => reduceEvents(before, { type: "message_update", assistantMessageEvent }),
      reduceEvents(initialView(), { type: "message_start", message }),
    );
    expect(view.streamingMessage?.content).toEqual([
      { type: "text", text: "a" },
      { type: "thinking", thinking: "b" },
      { type: "text", text: "y" },
      { type: "toolCall", id: "", name: "", arguments: {} },
    ]);
  });
});

// SPEC 15.1
describe("what goes over a wire", () => {
  it("updates have neither partial nor message; the start of a call has its id and name; the rest is as it was", async () => {
    const { events } = await run(script, { tools: [makeTool("t", () => "ran")] });
    const kinds = new Set<string>();
    for (const event of events) {
      const wire = toWireEvent(event);
      if (event.type !== "message_update") {
        const expected =
          event.type === "message_start" && event.message.role === "assistant"
            ? { ...event, message: { ...event.message, content: [] } }
            : event;
        expect(wire).toEqual(expected);
        continue;
      }
      const { partial, ...rest } = event.assistantMessageEvent as AssistantMessageEvent & { partial: AssistantMessage };
      kinds.add(rest.type);
      const about = partial.content[(rest as { contentIndex: number }).contentIndex] as { id: string; name: string };
      const more = rest.type === "toolcall_start" && { id: about.id, name: about.name };
      const shell = rest.type === "start" && { message: event.message };
      expect(wire).toEqual({ type: "message_update", assistantMessageEvent: { ...rest, ...more, ...shell } });
    }
    expect(kinds.size).toBe(10);
  });

  it("a call whose block is not there yet has an empty id and name", () => {
    const event = { type: "toolcall_start", contentIndex: 5, partial: said("x") } as const;
    expect(toWireEvent({ type: "message_update", message: said("x"), assistantMessageEvent: event })).toEqual({
      type: "message_update",
      assistantMessageEvent: { type: "toolcall_start", contentIndex: 5, id: "", name: "" },
    });
  });

  /** One answer of `deltas` deltas of each kind. */
  async function answerOf(deltas: number, kind: "text" | "thinking" | "toolCall"): Promise<AgentEvent[]> {
    const text = "sixteen letters.".repeat(deltas);
    const block: Block = kind === "text" ? { text } : kind === "thinking" ? { thinking: text } : { toolCall: "t", args: { text } };
    return (await run([[block], "done"], { tools: [makeTool("t", () => "ran")] })).events;
  }

  const bytes = (events: readonly AgentEvent[]): number =>
    events.reduce((sum, event) => sum + JSON.stringify(toWireEvent(event)).length, 0);

  it.each(["text", "thinking", "toolCall"] as const)("grows with the answer and not with its square: %s", async (kind) => {
    const ratio = bytes(await answerOf(4000, kind)) / bytes(await answerOf(1000, kind));
    expect(ratio).toBeLessThan(4.1);
  });

  it("many blocks do not make each delta larger", async () => {
    const blocks = (count: number): StreamFn =>
      async function* (model) {
        const builder = new AssistantMessageBuilder(model);
        for (let i = 0; i < count; i++) yield* i % 2 === 0 ? builder.text("text ") : builder.thinking("thought ");
        yield* builder.done();
      };
    const [few, many] = [await run(blocks(100)), await run(blocks(400))];
    expect(bytes(many.events) / bytes(few.events)).toBeLessThan(4.2);
  });

  it("an update makes one block anew and nothing else, however long the text", async () => {
    const events = (await answerOf(200, "text")).map(overWire);
    let view = initialView();
    for (const event of events) {
      const before = view;
      view = reduceEvents(view, event);
      if (event.type !== "message_update") continue;
      expect(view.messages).toBe(before.messages);
      expect(view.toolCalls).toBe(before.toolCalls);
      const unchanged = view.streamingMessage?.content.filter((block, i) => block === before.streamingMessage?.content[i]).length;
      expect(unchanged).toBe((view.streamingMessage?.content.length ?? 0) - ("contentIndex" in event.assistantMessageEvent ? 1 : 0));
    }
  });
});
