/** StreamFns that break one rule each. */
import type { AssistantMessage, StreamFn } from "turnloop";
import type { MakeStreamFn, StreamFnScenario } from "turnloop/testing";
import { expect } from "vitest";
import { altered, good, outcomeOf } from "./helpers.js";

export type Expected = [title: string, text: RegExp];
export type Case = [name: string, make: MakeStreamFn, ...expected: Expected[]];
export type Change = (event: any, at: number) => unknown;
type Message = AssistantMessage;

/** The suite's tests, without their scenario. */
export const titles = {
  order: "start comes first, and blocks in the order of their contentIndex",
  terminal: "there is one terminal event and nothing after it",
  sums: "the deltas add up to the final message",
  complete: "the final message is complete",
  ends: "it ends as it should",
  encoded: "the failure is an error event, not thrown",
  shows: "the partials show the answer so far",
  still: "the partials do not change after they were yielded",
  copies: "a delta copies no other block",
  untouched: "the request is not written to",
  serialised: "the text so far is not serialised again and again",
  firedAlready: "a signal that has fired already ends the call as aborted",
  inTheMiddle: "an abort in the middle ends the call as aborted, with what had come",
  beforeFirst: "an abort before the first event ends the call as aborted",
};

/** Exactly these tests fail, with these texts. */
export async function expectFailures(make: MakeStreamFn, expected: Expected[]): Promise<void> {
  const { failures } = await outcomeOf(make);
  expect(failures).toEqual(expected.map(([title, text]) => [title, expect.stringMatching(text)]));
}

/** Wrong in this one scenario. */
export function only(broken: StreamFnScenario, make: (streamFn: StreamFn) => StreamFn): MakeStreamFn {
  return (scenario) => (scenario === broken ? make(good(scenario)) : good(scenario));
}

export function changing(scenario: StreamFnScenario, change: Change): MakeStreamFn {
  return only(scenario, (streamFn) => altered(streamFn, change));
}

/** Changes the first event of this type. */
export function when(type: string, change: (event: any) => unknown): Change {
  let done = false;
  return (event, at) => {
    if (at === 0) done = false;
    if (event.type !== type || done) return event;
    done = true;
    return change(event);
  };
}

export const drop = (type: string): Change => when(type, () => []);

/** Changes the final message of a call that is not aborted. */
export function final(scenario: StreamFnScenario, change: (message: Message) => object): MakeStreamFn {
  return changing(scenario, (event) => {
    if (event.type === "done") return { ...event, message: { ...event.message, ...change(event.message) } };
    return event.reason === "error" ? { ...event, error: { ...event.error, ...change(event.error) } } : event;
  });
}

export const usage = (change: object) => (message: Message) => ({ usage: { ...message.usage, ...change } });
export const info = (change: object) => (message: Message) => ({ errorInfo: { ...message.errorInfo, ...change } });
export const block = (index: number, change: object) => (message: Message) => ({
  content: message.content.map((given, i) => (i === index ? { ...given, ...change } : given)),
});

/** The second call of an answer with another id, name or error, wherever it is complete. */
export function otherCall(change: object): MakeStreamFn {
  return changing("calls", (event) => {
    if (event.type === "done") return { ...event, message: { ...event.message, ...block(1, change)(event.message) } };
    return event.type === "toolcall_end" && event.contentIndex === 1 ? { ...event, toolCall: { ...event.toolCall, ...change } } : event;
  });
}

export function oneCall(event: any): unknown {
  if (event.type === "done") return { ...event, message: { ...event.message, content: event.message.content.slice(0, 1) } };
  return event.contentIndex === 1 ? [] : event;
}

/** The first and the last event of an answer with nothing in it. */
export function bare(event: any): unknown {
  if (event.type === "done") return { ...event, message: { ...event.message, content: [] } };
  return event.type === "start" || event.type === "error" ? event : [];
}

/** What comes after the terminal event of a call that is not aborted. */
export const thenGoesOn =
  (after: () => AsyncIterable<unknown>) =>
  (streamFn: StreamFn): StreamFn =>
    async function* (model, context, options) {
      yield* await streamFn(model, context, options);
      if (!options?.signal?.aborted) yield* after() as AsyncIterable<any>;
    };

export async function* throwing(): AsyncGenerator<unknown> {
  yield* await Promise.reject<AsyncIterable<unknown>>(new Error("one more"));
}

export async function* stalling(): AsyncGenerator<unknown> {
  await new Promise(() => {});
}

export async function* endless(): AsyncGenerator<unknown> {
  for (;;) yield { type: "ping" };
}

/** Begins, and then neither goes on nor looks at its signal. */
export const deaf = (streamFn: StreamFn): StreamFn =>
  async function* (model, context) {
    for await (const event of await streamFn(model, context)) {
      yield event;
      yield* stalling() as AsyncGenerator<any>;
    }
  };

/** Does something before the call, or in its place. */
export const first =
  (act: (...call: Parameters<StreamFn>) => any) =>
  (streamFn: StreamFn): StreamFn =>
  (...call) =>
    act(...call) ?? streamFn(...call);

/** Each delta comes with the partial of the event before. */
export function lagging(): Change {
  let partial: unknown;
  return (event) => {
    const before = partial;
    partial = event.partial;
    return event.type.endsWith("_delta") ? { ...event, partial: before } : event;
  };
}

/** Writes to the partial of the first block's start when the answer is done. */
export function writingLater(write: (partial: Message) => unknown): Change {
  let partial: Message;
  return (event) => {
    if (event.type === "text_start") partial = event.partial;
    if (event.type === "done") write(partial);
    return event;
  };
}

export function copied(event: any): unknown {
  return "partial" in event ? { ...event, partial: structuredClone(event.partial) } : event;
}

/** Changes the end of a call that was aborted after its beginning. */
export const abortedLate =
  (change: (event: any) => object): Change =>
  (event, at) =>
    at > 2 && event.type === "error" ? { ...event, ...change(event) } : event;
