import * as earendil from "@earendil-works/pi-ai";
import * as mariozechner from "@mariozechner/pi-ai";
import { Agent, type StreamFn, sumUsage } from "turnloop";
import { type StreamFnScenario, testStreamFn } from "turnloop/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { makeTool, outline, resultsOf, run, textOf } from "../helpers.js";

// SPEC 2.3
describe.each([
  ["@mariozechner/pi-ai 0.73", mariozechner],
  ["@earendil-works/pi-ai 0.74", earendil],
])("%s with its own faux provider", (_, pi) => {
  const { fauxAssistantMessage, fauxText, fauxThinking, fauxToolCall, streamSimple, Type } = pi;
  let faux: mariozechner.FauxProviderRegistration;

  beforeEach(() => {
    faux = pi.registerFauxProvider({ tokensPerSecond: 0 });
  });
  afterEach(() => faux.unregister());

  it("runs two turns with parallel calls, whose parameters are of its own TypeBox", async () => {
    faux.setResponses([
      fauxAssistantMessage(
        [
          fauxThinking("Both sums."),
          fauxText("I add."),
          fauxToolCall("add", { a: 2, b: "3" }, { id: "c1" }),
          fauxToolCall("add", { a: 1 }, { id: "c2" }),
        ],
        { stopReason: "toolUse" },
      ),
      fauxAssistantMessage("It is 5."),
    ]);
    const parameters = Type.Object({ a: Type.Number(), b: Type.Number() });
    const add = makeTool("add", (_id, { a, b }) => String(a + b), { parameters });
    const record = await run(streamSimple, { tools: [add], systemPrompt: "Be brief.", config: { model: faux.getModel() } });
    expect(record.outcome).toBe("completed");
    expect(record.messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "toolResult", "assistant"]);
    expect(outline(record.events).filter((line) => line.startsWith("turn_"))).toEqual(["turn_start", "turn_end", "turn_start", "turn_end"]);
    const answer = record.messages[1] as mariozechner.AssistantMessage;
    expect(answer).toMatchObject({ stopReason: "toolUse", api: faux.api, provider: "faux", model: "faux-1" });
    expect(answer.content).toMatchObject([
      { type: "thinking", thinking: "Both sums." },
      { type: "text", text: "I add." },
      { type: "toolCall", id: "c1", name: "add", arguments: { a: 2, b: "3" } },
      { type: "toolCall", id: "c2", name: "add", arguments: { a: 1 } },
    ]);
    const [sum, wrong] = resultsOf(record);
    expect([textOf(sum), sum?.isError, wrong?.isError]).toEqual(["5", false, true]);
    expect(textOf(wrong)).toContain("b");
    expect(textOf(record.messages.at(-1))).toBe("It is 5.");
    expect(sumUsage(record.messages).totalTokens).toBeGreaterThan(10);
  });

  it("gets the loop's messages and continues a transcript it wrote", async () => {
    const seen: mariozechner.Message[][] = [];
    faux.setResponses([
      fauxAssistantMessage(fauxToolCall("look", {}, { id: "c1" }), { stopReason: "toolUse" }),
      ({ messages }) => {
        seen.push(messages);
        return fauxAssistantMessage("Seen.");
      },
    ]);
    const look = makeTool("look", () => "a tree");
    const { messages } = await run(streamSimple, { tools: [look], config: { model: faux.getModel() } });
    expect(seen).toEqual([messages.slice(0, 3)]);
    faux.setResponses([fauxAssistantMessage("Again.")]);
    const transcript = JSON.parse(JSON.stringify(messages));
    const again = await run(streamSimple, { messages: transcript, config: { model: faux.getModel() } });
    expect(textOf(again.messages.at(-1))).toBe("Again.");
  });

  it.each([
    [
      "it reports",
      () => faux.setResponses([fauxAssistantMessage("Half", { stopReason: "error", errorMessage: "no luck" })]),
      "no luck",
      "Half",
    ],
    ["of its script", () => faux.setResponses([() => Promise.reject(new Error("in the factory"))]), "in the factory", ""],
    ["of an empty queue", () => {}, "No more faux responses queued", ""],
    ["that it throws before there is a stream", () => faux.unregister(), "No API provider registered", ""],
  ])("ends a run with outcome error for a failure %s", async (_name, prepare, message, kept) => {
    prepare();
    const { outcome, messages } = await run(streamSimple, { config: { model: faux.getModel() } });
    expect([outcome, messages.length, textOf(messages[1])]).toEqual(["error", 2, kept]);
    expect(messages[1]).toMatchObject({ stopReason: "error", errorMessage: expect.stringContaining(message) });
  });

  it("ends as aborted in the middle of its text, which is kept", async () => {
    const controller = new AbortController();
    faux.setResponses([fauxAssistantMessage("The sea is wide and deep and blue and cold and full of fish. ".repeat(20))]);
    const { outcome, messages } = await run(streamSimple, {
      config: { model: faux.getModel() },
      signal: controller.signal,
      onEvent: (event) => {
        if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") controller.abort();
      },
    });
    expect([outcome, messages.length]).toEqual(["aborted", 2]);
    expect(messages[1]).toMatchObject({ stopReason: "aborted" });
    expect(textOf(messages[1])).toMatch(/^The sea/);
  });

  it("drives Agent", async () => {
    faux.setResponses([fauxAssistantMessage("Hello."), fauxAssistantMessage("Hello again.")]);
    const agent = new Agent({ model: faux.getModel(), streamFn: streamSimple });
    await agent.prompt("Hi");
    await agent.prompt("Hi again");
    expect(agent.messages.map(textOf)).toEqual(["Hi", "Hello.", "Hi again", "Hello again."]);
  });

  const registrations: mariozechner.FauxProviderRegistration[] = [];
  afterAll(() => {
    for (const registration of registrations) registration.unregister();
  });

  const answers: Record<StreamFnScenario, mariozechner.AssistantMessage> = {
    text: fauxAssistantMessage("The sea is wide, the sea is deep, the sea is blue. ".repeat(3)),
    thinking: fauxAssistantMessage([fauxThinking("Let me think about that for a while."), fauxText("Ten of them.")]),
    calls: fauxAssistantMessage([fauxToolCall("weather", { city: "Paris" }), fauxToolCall("weather", { city: "Rome" })], {
      stopReason: "toolUse",
    }),
    length: fauxAssistantMessage("Once upon a time", { stopReason: "length" }),
    error: fauxAssistantMessage("Hel", { stopReason: "error", errorMessage: "down" }),
    hang: fauxAssistantMessage("Once upon a time"),
  };
  // it looks at its signal only between two pieces: a hang of its own would not end before its timer
  const speaking = (scenario: StreamFnScenario): StreamFn => {
    const registration = pi.registerFauxProvider({ tokensPerSecond: scenario === "hang" ? 20 : 0 });
    registrations.push(registration);
    registration.setResponses([answers[scenario]]);
    return (_model, context, options) => streamSimple(registration.getModel(), context, options);
  };
  // SPEC 13.3
  testStreamFn("faux", speaking, { test, expect, livePartials: true, quietMs: 1 });
});
