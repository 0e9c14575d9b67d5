import { AssistantMessageBuilder, type AssistantMessageEvent, type ModelErrorInfo, type StreamFn } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { expect, vi } from "vitest";
import { model, textOf } from "./helpers.js";

export type Event = AssistantMessageEvent<string>;

export const limited: ModelErrorInfo = { kind: "rate_limit", retryable: true };
export const fails = (errorInfo?: ModelErrorInfo, content: string[] = []): ScriptedAnswer => ({ content, errorMessage: "busy", errorInfo });
export const busy = fails(limited);
export const stalls = (afterEvents = 0): ScriptedAnswer => ({ content: ["Hello"], fault: { kind: "stall", afterEvents } });

/** Settles it with all the time in the world. */
export async function given<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  await vi.runAllTimersAsync();
  return promise;
}

/** The events of one call, read directly: `start` comes first and once, one terminal event comes last (SPEC 13.3). */
export async function read(streamFn: StreamFn, signal?: AbortSignal): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of await streamFn(model, { messages: [] }, { signal })) events.push(event);
  expect(events.flatMap(({ type }, index) => (type === "start" ? [index] : []))).toEqual([0]);
  expect(events.flatMap(({ type }, index) => (type === "done" || type === "error" ? [index] : []))).toEqual([events.length - 1]);
  return events;
}

export const ending = (events: Event[]) => {
  const last = events.at(-1) as Extract<Event, { type: "done" | "error" }>;
  const message = last.type === "error" ? last.error : last.message;
  return { reason: last.reason, text: textOf(message as never), info: message.errorInfo, model: message.model };
};

/** A scripted model that notes when it was called and with what. */
export function timed(answers: ScriptedAnswer[]) {
  const scripted = scriptedModel(answers);
  const at: number[] = [];
  const signals: (AbortSignal | undefined)[] = [];
  const models: string[] = [];
  const begin = Date.now();
  const streamFn: StreamFn = (asked, context, options) => {
    at.push(Date.now() - begin);
    signals.push(options?.signal);
    models.push(asked.id);
    return scripted(asked, context, options);
  };
  return { streamFn, at, signals, models };
}

export function scriptedEnd(text: string): AssistantMessageEvent[] {
  const b = new AssistantMessageBuilder(model);
  b.text(text);
  return b.done();
}
