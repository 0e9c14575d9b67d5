import { AssistantMessageBuilder, type AssistantMessageEvent, type StreamFn } from "turnloop";
import { type MakeStreamFn, type StreamFnScenario, type StreamFnTestOptions, testStreamFn } from "turnloop/testing";
import { aborted } from "../helpers.js";

/** A StreamFn for each scenario that keeps every rule, made with the builder. */
export function good(scenario: StreamFnScenario): StreamFn {
  return async function* (model, _context, options) {
    const b = new AssistantMessageBuilder(model, { now: () => 1 });
    const { signal } = options ?? {};
    if (signal?.aborted) return yield* b.fail(abortError());
    if (scenario === "thinking") for (const part of ["Let me ", "think ", "about it."]) yield* b.thinking(part);
    if (scenario === "calls") {
      for (const [id, city] of Object.entries({ c1: "Paris", c2: "Rome" })) {
        yield* b.toolCallStart(id, "weather");
        for (const part of ['{"city"', `:"${city}`, '"}']) yield* b.toolCallDelta(part);
      }
    } else for (const part of ["The sea ", "is wide, ", "the sea ", "is deep, ", "the sea ", "is blue."]) yield* b.text(part);
    yield* b.usage({ input: 3, output: 4 });
    if (scenario === "hang" && signal) {
      await aborted(signal);
      return yield* b.fail(abortError());
    }
    if (scenario === "error") return yield* b.fail(new Error("no luck"), { kind: "overloaded", status: 529, retryable: true });
    yield* b.done(scenario === "length" ? "length" : undefined);
  };
}

/** One message, written to as it grows. */
export function live(scenario: StreamFnScenario): StreamFn {
  return async function* (model, context, options) {
    const partial: any = { content: [] };
    for await (const event of await good(scenario)(model, context, options)) {
      const latest = "partial" in event ? event.partial : event.type === "done" ? event.message : event.error;
      const content = partial.content as object[];
      for (const [i, block] of latest.content.entries()) content[i] = Object.assign(content[i] ?? {}, block);
      Object.assign(partial, latest, { content });
      if ("partial" in event) yield { ...event, partial };
      else yield event.type === "done" ? { ...event, message: partial } : { ...event, error: partial };
    }
  };
}

function abortError(): Error {
  return Object.assign(new Error("aborted"), { name: "AbortError" });
}

/** Makes of each event what `change` gives: another event, several, or none. */
export function altered(streamFn: StreamFn, change: (event: any, at: number) => unknown): StreamFn {
  return async function* (model, context, options) {
    let at = 0;
    for await (const event of await streamFn(model, context, options)) {
      const changed = change(event, at++);
      for (const item of Array.isArray(changed) ? changed : [changed]) yield item as AssistantMessageEvent<string>;
    }
  };
}

interface Outcome {
  /** The titles of all tests. */
  titles: string[];
  /** Title and text of those that failed. */
  failures: [string, string][];
}

/** Runs the suite on a runner that records what fails. */
export async function outcomeOf(make: MakeStreamFn, options: Partial<StreamFnTestOptions> = {}): Promise<Outcome> {
  const tests: { title: string; run: () => Promise<void> }[] = [];
  testStreamFn("mine", make, {
    test: (name, run) => tests.push({ title: name.replace(/^mine: /, ""), run }),
    expect: (actual) => ({
      toBe(expected) {
        if (actual !== expected) throw new Error(actual);
      },
    }),
    timeoutMs: 60,
    abortMs: 30,
    quietMs: 10,
    ...options,
  });
  const failures: [string, string][] = [];
  for (const { title, run } of tests) await run().catch((error: Error) => failures.push([title, error.message]));
  return { titles: tests.map(({ title }) => title), failures };
}
