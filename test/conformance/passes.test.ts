import { AssistantMessageBuilder, type Model, type StreamFn, withFallback, withRetry, withStallTimeout } from "turnloop";
import { type DetailedAnswer, type StreamFnScenario, scriptedModel, testStreamFn } from "turnloop/testing";
import { describe, expect, it, test } from "vitest";
import { good, live, outcomeOf } from "./helpers.js";
import { myModel } from "./my-model.js";

const script: Record<Exclude<StreamFnScenario, "hang">, DetailedAnswer> = {
  text: { content: ["The sea is wide, the sea is deep, the sea is 🌊 blue."] },
  thinking: { content: [{ thinking: "Let me think about that." }, "Ten of them."] },
  calls: {
    content: [
      "I ask.",
      { toolCall: "weather", args: { city: "Paris" } },
      { toolCall: "weather", args: { city: "Rome" } },
      { toolCall: "weather" },
    ],
  },
  length: { content: ["Once upon a time there was"], stopReason: "length" },
  error: { content: ["Hel"], errorMessage: "down", errorInfo: { kind: "network", retryable: true } },
};

const quick = { test, expect, quietMs: 10 };

// SPEC 13.3
describe("testStreamFn passes", () => {
  testStreamFn("a builder's", good, quick);
  testStreamFn(
    "a scripted model",
    (scenario) => {
      if (scenario !== "hang") return scriptedModel([script[scenario]], { chunkSize: 4 });
      return scriptedModel(["The sea is wide."], { chunkSize: 4, delayMs: 60_000 });
    },
    quick,
  );
  testStreamFn("a silent one", (scenario) => (scenario === "hang" ? scriptedModel([{ delayMs: 60_000 }]) : good(scenario)), quick);
  testStreamFn("a decorated one", (scenario) => withRetry(withFallback([{ streamFn: withStallTimeout(good(scenario), {}) }])), {
    ...quick,
    model: { id: "m", provider: "p" },
  });
  testStreamFn("one of live partials", async (scenario) => live(scenario), { ...quick, livePartials: true });
  testStreamFn(
    "an error without a start, and promises",
    (scenario) => (scenario === "error" ? failing : async (...call) => good(scenario)(...call)),
    quick,
  );
  for (const hang of ["hang", "hang, ends"]) {
    const answering = (scenario: StreamFnScenario): StreamFn | undefined => {
      if (scenario === "thinking" || scenario === "length") return undefined;
      const apiKey = scenario === "hang" ? hang : scenario;
      return (model, context, options) => myModel(model, context, { ...options, apiKey });
    };
    testStreamFn(`the README's, on a client that "${hang}"`, answering, quick);
  }
});

const failing: StreamFn = async function* (model, _context, options) {
  const events = new AssistantMessageBuilder(model).fail(
    Object.assign(new Error("x"), { name: options?.signal?.aborted ? "AbortError" : "Error" }),
  );
  yield* events.slice(1);
};

describe("testStreamFn on any runner", () => {
  // SPEC 13.3
  it("registers the same tests for every StreamFn, and asks for it only when they run", async () => {
    const { titles, failures } = await outcomeOf(good);
    expect(failures).toEqual([]);
    expect(titles.length).toBeGreaterThan(40);
    expect(new Set(titles).size).toBe(titles.length);
    let asked = 0;
    const outcome = await outcomeOf(async () => void asked++);
    expect(outcome).toEqual({ titles, failures: [] });
    expect(asked).toBeGreaterThan(5);
    expect(asked).toBeLessThan(titles.length);
  });

  it("calls each StreamFn once, with the model given and a request a real model could answer", async () => {
    const model: Model = { id: "m", provider: "p", contextWindow: 5 };
    const calls: Record<string, number> = {};
    await outcomeOf(
      (scenario) => {
        let called = 0;
        return (given, context, options) => {
          calls[scenario] = (calls[scenario] ?? 0) + 1;
          expect([++called, given]).toEqual([1, model]);
          expect([context.messages.at(-1)?.role, typeof context.systemPrompt]).toEqual(["user", "string"]);
          expect(context.tools?.map(({ name }) => name)).toEqual(scenario === "calls" ? ["weather"] : undefined);
          expect(options?.signal).toBeInstanceOf(AbortSignal);
          return good(scenario)(given, context, options);
        };
      },
      { model },
    );
    expect(calls).toEqual({ text: 5, thinking: 1, calls: 3, length: 1, error: 2, hang: 3 });
  });

  it("skips by the context's skip, which one kind of runner has", async () => {
    const skipped: string[] = [];
    const runs: Promise<void>[] = [];
    const context = { skip: (why: string) => skipped.push(why) };
    testStreamFn("x", () => undefined, { test: (_, run) => runs.push(run(context)), expect });
    await Promise.all(runs);
    expect(skipped.length).toBe(runs.length);
    expect(skipped[0]).toBe('there is no StreamFn for "text"');
  });

  it("gives tests without parameters, which jest and bun would call back", () => {
    const lengths = new Set<number>();
    testStreamFn("x", good, { test: (_, run) => lengths.add(run.length), expect });
    expect([...lengths]).toEqual([0]);
  });

  it("restores what it counts with", async () => {
    const before = [globalThis.structuredClone, JSON.stringify];
    await outcomeOf((scenario) => (scenario === "text" ? () => Promise.reject(new Error("x")) : undefined));
    expect([globalThis.structuredClone, JSON.stringify]).toEqual(before);
  });
});
