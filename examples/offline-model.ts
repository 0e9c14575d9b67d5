/** A model that needs no network: it plans by rules, but asks for tools and answers as a real one does. Runs in a browser. */
import { AssistantMessageBuilder, type LlmContext, type Message, type StreamFn, type ToolCall } from "turnloop";
import { advance, describeIntent, HELP, type Outcome, type PlannedCall, type Results, type Step } from "./offline-planner.js";
import { type Intent, readRequests } from "./offline-requests.js";
import type { Skill } from "./offline-skill.js";

export interface OfflineModelOptions {
  /** Milliseconds before each piece of text. 0: no timers at all. @default 8 */
  chunkDelayMs?: number;
  /** What it can do beside the files and arithmetic. @default none */
  skills?: readonly Skill[];
  /** Reports usage, with words for tokens: what a host shows of it can be seen without a server. @default false */
  countWords?: boolean;
}

const DEFAULT_CHUNK_DELAY_MS = 8;

export function offlineModel({
  chunkDelayMs = DEFAULT_CHUNK_DELAY_MS,
  skills = [],
  countWords = false,
}: OfflineModelOptions = {}): StreamFn {
  return async function* answer(model, context, options) {
    const builder = new AssistantMessageBuilder(model);
    const signal = options?.signal;
    const decision = decide(context, skills);
    for (const part of ["thinking", "text"] as const) {
      for (const chunk of chunksOf(decision[part])) {
        if (chunkDelayMs > 0) await pause(chunkDelayMs, signal);
        if (signal?.aborted) return yield* builder.fail(abortError(signal));
        yield* builder[part](chunk);
      }
    }
    for (const [index, call] of decision.calls.entries()) {
      yield* builder.toolCallStart(callId(context, index), call.name);
      yield* builder.toolCallDelta(JSON.stringify(call.args));
      yield* builder.toolCallEnd();
    }
    if (countWords) yield* builder.usage(usageOf(context, decision));
    yield* builder.done();
  };
}

interface Decision {
  thinking: string;
  text: string;
  calls: PlannedCall[];
}

/** Everything is worked out anew from the transcript: what is asked, what the tools have said, what is missing. */
function decide(context: LlmContext, skills: readonly Skill[]): Decision {
  const { open, sinceAnswer } = openRequests(context.messages, skills);
  const results = resultsIn(sinceAnswer, context);
  const steps = open.map((intent) => advance(intent, results));
  const calls = withoutRepetition(steps.flatMap((step) => ("calls" in step ? step.calls : [])));
  const isFirst = !sinceAnswer.some(({ role }) => role === "assistant");
  const plan = isFirst ? `Plan: ${open.map(describeIntent).join("; ")}.` : "";
  const next = calls.length > 0 ? `Next: ${calls.map(({ name }) => name).join(", ")}.` : "Now I can answer.";
  return { thinking: `${plan} ${next}`.trim(), text: calls.length > 0 ? "" : answerText(open, steps), calls };
}

/** What the user has asked for since the last answer. An assistant message with tool calls is not an answer yet. */
function openRequests(messages: Message[], skills: readonly Skill[]): { open: Intent[]; sinceAnswer: Message[] } {
  const answers = messages.map((message) => message.role === "assistant" && !message.content.some(isToolCall));
  const sinceAnswer = messages.slice(answers.lastIndexOf(true) + 1);
  const asked = readRequests(messages.filter(isUser).map(textOf), skills);
  const openMessages = sinceAnswer.filter(isUser).length;
  return { open: openMessages === 0 ? [] : asked.slice(-openMessages).flat(), sinceAnswer };
}

function usageOf({ systemPrompt = "", messages }: LlmContext, { thinking, text, calls }: Decision): { input: number; output: number } {
  const words = (texts: string[]): number => texts.join(" ").match(/\S+/g)?.length ?? 0;
  return { input: words([systemPrompt, ...messages.map(textOf)]), output: words([thinking, text, ...calls.map(keyOf)]) };
}

function resultsIn(messages: Message[], context: LlmContext): Results {
  const calls = new Map<string, string>();
  const outcomes = new Map<string, Outcome>();
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const call of message.content.filter(isToolCall)) calls.set(call.id, keyOf({ name: call.name, args: call.arguments }));
    } else if (message.role === "toolResult") {
      const key = calls.get(message.toolCallId);
      if (key !== undefined) outcomes.set(key, { text: textOf(message), failed: message.isError });
    }
  }
  const available = new Set(context.tools?.map(({ name }) => name));
  return (call) => {
    if (!available.has(call.name)) return { text: `There is no tool "${call.name}" here.`, failed: true };
    return outcomes.get(keyOf(call));
  };
}

function answerText(intents: Intent[], steps: Step[]): string {
  const parts = steps.map((step) => ("answer" in step ? step.answer : ""));
  const needsHelp = intents.some(({ kind }) => kind === "unclear") || intents.length === 0;
  return [...new Set(needsHelp ? [...parts, HELP] : parts)].join("\n\n");
}

function withoutRepetition(calls: PlannedCall[]): PlannedCall[] {
  return [...new Map(calls.map((call) => [keyOf(call), call])).values()];
}

function keyOf({ name, args }: PlannedCall): string {
  return `${name} ${JSON.stringify(args)}`;
}

/** The same transcript gives the same ids. */
function callId(context: LlmContext, index: number): string {
  return `offline_${context.messages.length}_${index}`;
}

function isToolCall(block: { type: string }): block is ToolCall {
  return block.type === "toolCall";
}

function isUser(message: Message): boolean {
  return message.role === "user";
}

function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

/** Two words each, with the space before them. */
function chunksOf(text: string): string[] {
  return text.match(/(?:\s*\S+){1,2}|\s+$/g) ?? [];
}

/** Ends with the time or the abort, whichever comes first. */
function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

function abortError(signal: AbortSignal): Error {
  const error = new Error("The answer was stopped.", { cause: signal.reason });
  error.name = "AbortError";
  return error;
}
