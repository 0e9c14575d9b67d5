/** What must hold after every run, whatever it was. Each check adds to `world.violations`, with the rule it is about. */
import {
  type AgentEvent,
  type AgentMessage,
  type AssistantMessage,
  type Message,
  type ToolCall,
  type ToolResultMessage,
  TurnLoopError,
} from "turnloop";
import { assertEventSequence } from "turnloop/testing";
import { checkAnswers } from "./checks-answers.js";
import { checkCalls } from "./checks-calls.js";
import { INTRUDER } from "./host.js";
import type { Played } from "./interpret.js";
import { STALE } from "./model.js";
import { MARK, READABLE, show } from "./odd-values.js";
import type { World } from "./world.js";

type Abandoned = "yes" | "no" | "perhaps";
type MessageEnd = Extract<AgentEvent, { type: "message_end" }>;
type EndEvent = Extract<AgentEvent, { type: "agent_end" }>;

export function checkAll(played: Played): void {
  const { world } = played;
  if (!world.over) return;
  const events = world.late ? [] : world.sinkCalls.map(({ json }) => JSON.parse(json) as AgentEvent);
  const abandoned = wasAbandoned(played);
  const messages = checkSettlement(played, abandoned);
  if (!messages) return;
  const unread = world.left || world.silent || world.late || (isStream(world) && world.scenario.consumer.result === "only");
  const cut = abandoned !== "no" || unread;
  if (world.isAgent) checkReported(world, abandoned);
  if (!world.late) checkGrammar(world, events, cut);
  checkEnd(played, events, messages);
  checkPrompt(played, abandoned);
  checkIncoming(played, messages);
  checkPairing(world, "the transcript", messages, { complete: true, waiting: waitingCalls(world, messages) });
  for (const [i, call] of world.modelCalls.entries()) checkRequest(world, i, call);
  if (show(messages).includes(MARK)) world.fail("4.8: what a listener writes to an event reaches the transcript");
  if (show(messages).includes(INTRUDER)) world.fail("6.2: what a hook pushes into a list it is shown reaches the transcript");
  checkJson(world, messages);
  checkAnswers(played, events, messages);
  checkCalls(world, events, messages, cut);
}

/** SPEC 4.10, 7.2: the promise rejects when the sink failed, only then, and with everything that was done. */
function checkSettlement({ world, settled }: Played, abandoned: Abandoned): AgentMessage[] | undefined {
  if (world.isAgent) {
    if ("messages" in settled) return settled.messages;
    world.fail(`8.1: the prompt rejects with ${show(settled.error)} ${settled.error}`);
    return undefined;
  }
  if ("messages" in settled) {
    if (world.sinkFailure || abandoned === "yes") world.fail("4.10: the promise resolves though the sink failed");
    return settled.messages;
  }
  const { error } = settled;
  if (!TurnLoopError.is(error) || error.code !== "sink_failed") {
    world.fail(`4.10: the promise rejects with ${error instanceof Error ? error.stack : show(error)}`);
    return undefined;
  }
  if (!world.sinkFailure && abandoned === "no") world.fail(`4.10: sink_failed though the sink did not fail: ${error.message}`);
  if (world.sinkFailure && abandoned === "no" && error.cause !== world.sinkFailure.cause)
    world.fail("4.10: the cause is not the sink's error");
  return error.messages;
}

/** SPEC 7.2, 8.4: a listener's failure is told once, and so is that it was given up. */
function checkReported(world: World, abandoned: Abandoned): void {
  const more = world.reported - world.sinkFailures;
  if (more !== 0 && !(more === 1 && abandoned !== "no"))
    world.fail(`8.4: the listener failed ${world.sinkFailures} times, ${world.reported} are told, it was given up: ${abandoned}`);
}

/** SPEC 7.2: a sink that did not settle in the grace after the later of abort and delivery. */
function wasAbandoned({ world, settledAt }: Played): Abandoned {
  if (isStream(world)) return "no";
  const { stoppedAt = Infinity, sinkFailedAt = Infinity } = world;
  const late = world.sinkCalls.map(({ from, to = Infinity }): Abandoned => {
    const deadline = Math.max(from, Math.min(stoppedAt, sinkFailedAt)) + graceOf(world);
    if (to < deadline || settledAt < deadline) return "no";
    return to === deadline || sinkFailedAt < stoppedAt ? "perhaps" : "yes";
  });
  return late.find((verdict) => verdict === "yes") ?? late.find((verdict) => verdict === "perhaps") ?? "no";
}

function graceOf(world: World): number {
  return world.scenario.config.abortGraceMs ?? 250;
}

function isStream(world: World): boolean {
  return world.scenario.entry === "stream" || world.scenario.entry === "streamContinue";
}

/** SPEC 4.5, 4.6. An abandoned sink and a consumer that left or reads no more have the beginning of a sequence. */
function checkGrammar(world: World, events: AgentEvent[], cut: boolean): void {
  const letters: Record<AgentEvent["type"], string> = {
    agent_start: "a",
    turn_start: "t",
    message_start: "(",
    message_update: "u",
    message_end: ")",
    tool_execution_start: "s",
    tool_execution_update: "p",
    tool_execution_end: "e",
    turn_end: "T",
    agent_end: "A",
  };
  const sequence = events.map(({ type }) => letters[type]).join("");
  const whole = /^a(t(\(\))*\(u*\)[spe()]*T)+A$/;
  const rests = cut ? ["", "A", "TA", ")TA", "()TA", "t()TA", "at()TA"] : [""];
  if (!rests.some((rest) => whole.test(sequence + rest))) world.fail(`4.6: the events are ${sequence}`);
  if (world.scenario.sink.writes || cut) return;
  try {
    assertEventSequence(events);
  } catch (error) {
    world.fail(`4.6: assertEventSequence: ${(error as Error).message}`);
  }
  for (const { event, json } of world.sinkCalls)
    if (show(event) !== json) world.fail(`4.8: an event changed after it was delivered: ${json}, later ${show(event)}`);
}

/** SPEC 4.5: agent_end tells what the promise gives, and how the run ended. */
function checkEnd({ world, settled }: Played, events: AgentEvent[], messages: AgentMessage[]): void {
  const at = events.findIndex(({ type }) => type === "agent_end");
  if (at < 0) return;
  const end = events[at] as EndEvent;
  if (show(end.messages) !== show(messages))
    world.fail(`4.5: agent_end.messages are ${show(end.messages)}, the promise gives ${show(messages)}`);
  const ended = events.filter((event): event is MessageEnd => event.type === "message_end").map(({ message }) => message);
  if (!world.left && !world.scenario.sink.writes && show(ended) !== show(messages))
    world.fail(`4.5: the messages that ended are ${show(ended)}, the promise gives ${show(messages)}`);
  const answers = messages.filter(({ role }) => role === "assistant") as AssistantMessage[];
  const last = answers[answers.length - 1];
  if ("error" in settled && sinkFailedBefore(world, at) && end.outcome !== "error")
    world.fail(`4.10: outcome ${end.outcome} though the sink failed`);
  if (end.outcome === "aborted" && !world.stopped && last?.stopReason !== "aborted") world.fail("4.5: outcome aborted without an abort");
  const doomed = world.forced || world.scenario.abort.at === "before";
  if (doomed && world.scenario.sink.failAt === undefined && end.outcome !== "aborted")
    world.fail(`7.5: outcome ${end.outcome} of a run that could only be aborted`);
  checkReason(world, end, last);
  if ((end.outcome === "suspended") !== (end.pending?.length ?? 0) > 0)
    world.fail(`15.2: outcome ${end.outcome} with pending ${show(end.pending)}`);
  if (end.outcome === "error" && !end.error?.message) world.fail("4.5: outcome error without a text");
  if (end.outcome === "completed" || end.outcome === "terminated" || end.outcome === "stopped") {
    if (last?.stopReason === "error" || last?.stopReason === "aborted") world.fail(`4.4: outcome ${end.outcome} after a failed answer`);
  }
  const batchOfLast = messages[messages.length - 1]?.role === "toolResult";
  if (end.outcome === "completed" && batchOfLast) world.fail("4.5: outcome completed though the last batch was not answered");
  if (end.outcome === "terminated" && !batchOfLast) world.fail("5.9: outcome terminated without a batch at the end");
}

/** SPEC 7.6: the reason can be read. */
function checkReason(world: World, { outcome, error }: EndEvent, last: AssistantMessage | undefined): void {
  const readable = world.forced || READABLE.includes(world.scenario.abort.reason);
  if (outcome !== "aborted" || !world.controller.signal.aborted || !readable || /^(scenario|The model call)/.test(last?.errorMessage ?? ""))
    return;
  const { reason } = world.controller.signal as { reason: Error | string };
  const text = typeof reason === "string" ? reason : reason.message;
  if (!error?.message.includes(text)) world.fail(`7.6: the reason ${text} is not in ${show(error)}`);
}

function sinkFailedBefore(world: World, at: number): boolean {
  const { failAt } = world.scenario.sink;
  return failAt !== undefined && failAt < at;
}

/** SPEC 7.2: after the abort only grace times, the sink and a poll that was begun are waited for. */
function checkPrompt({ world, settledAt }: Played, abandoned: string): void {
  const { stoppedAt } = world;
  if (stoppedAt === undefined || isStream(world) || abandoned === "perhaps") return;
  const grace = graceOf(world);
  const sinkMs = world.sinkCalls.map(({ from, to = settledAt }) => Math.min(grace, Math.max(0, to - Math.max(from, stoppedAt))));
  const limit = grace + world.pollMs + sinkMs.reduce((sum, ms) => sum + ms, 0) + 2;
  if (settledAt - stoppedAt > limit) world.fail(`7.2: the run settles ${settledAt - stoppedAt} ms after the abort, allowed are ${limit}`);
}

/** SPEC 4.2, 7.2: prompts first, then what was polled, all of it, once, in order. */
function checkIncoming({ world, prompts }: Played, messages: AgentMessage[]): void {
  const texts = messages.filter(({ role }) => role !== "assistant" && role !== "toolResult").map(show);
  const expected = [...prompts, ...world.polled].map(show);
  if (texts.join("\n") !== expected.join("\n")) world.fail(`7.2: came in and polled were ${expected}, the transcript has ${texts}`);
  if (show(messages.slice(0, prompts.length)) !== show(prompts)) world.fail("4.2: the prompts are not first");
}

/** SPEC 2.6, checked on its own terms: after each answer with calls exactly its results, in order; ids non-empty and unique. */
function checkPairing(
  world: World,
  where: string,
  messages: readonly AgentMessage[],
  { complete, waiting = [] }: { complete: boolean; waiting?: string[] },
): void {
  const last = messages[lastAnswerAt(messages)];
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === "toolResult") {
      const { toolCallId } = message as ToolResultMessage;
      if (open.shift() !== toolCallId) world.fail(`2.6: in ${where} the result of ${show(toolCallId)} is out of place`);
      continue;
    }
    if (open.length > 0) world.fail(`2.6: in ${where} the calls ${show(open)} have no result`);
    if (message.role !== "assistant") continue;
    const { content, stopReason } = message as AssistantMessage;
    const ids = content.filter((block): block is ToolCall => block.type === "toolCall").map(({ id }) => id);
    const failed = stopReason === "error" || stopReason === "aborted";
    if (failed && ids.length > 0 && !complete) world.fail(`2.6: ${where} has calls of a failed answer`);
    if (ids.some((id) => typeof id !== "string" || id.trim() === "")) world.fail(`5.4: ${where} has an empty call id`);
    if (new Set(ids).size !== ids.length) world.fail(`5.4: ${where} has a call id twice in a message: ${show(ids)}`);
    open = failed ? [] : ids.filter((id) => message !== last || !waiting.includes(id));
  }
  if (open.length > 0) world.fail(`2.6: in ${where} the calls ${show(open)} at the end have no result`);
}

/** SPEC 15.2: the calls of the last answer that have no result because a hook suspended them; 5.2 is checked of each call. */
function waitingCalls(world: World, messages: readonly AgentMessage[]): string[] {
  if (!world.hookCalls.some(({ act }) => act.startsWith("suspend"))) return [];
  const at = lastAnswerAt(messages);
  const results = messages.slice(at + 1).map((message) => (message as ToolResultMessage).toolCallId);
  const { content = [] } = (messages[at] ?? {}) as Partial<AssistantMessage>;
  return content.filter((block): block is ToolCall => block.type === "toolCall" && !results.includes(block.id)).map(({ id }) => id);
}

function lastAnswerAt(messages: readonly AgentMessage[]): number {
  return messages.map(({ role }) => role).lastIndexOf("assistant");
}

function checkRequest(world: World, index: number, { context, messages, options, tools, modelId }: World["modelCalls"][number]): void {
  const where = `request ${index + 1}`;
  checkPairing(world, where, messages, { complete: false });
  const last: Message | undefined = messages[messages.length - 1];
  if (!last || last.role === "assistant") world.fail(`6.1: ${where} ends in ${last ? "an assistant message" : "nothing"}`);
  if (messages.some(({ role }) => !["user", "assistant", "toolResult"].includes(role))) world.fail(`2.5: ${where} has a custom role`);
  const json = show(context);
  if (hasLoneSurrogate(context)) world.fail(`2.7: ${where} has text that is not well-formed: ${json}`);
  if (json.includes(MARK)) world.fail(`4.8: what a listener writes to an event reaches ${where}`);
  if (json.includes(STALE)) world.fail(`3.3: ${where} has content of an attempt that was restarted`);
  const names = (context.tools ?? []).map(({ name }) => name);
  const expected = Array.from({ length: tools }, (_, i) => `t${i}`);
  if (show(names) !== show(expected)) world.fail(`6.4: ${where} has the tools ${names}, in force are ${expected}`);
  const { scenario } = world;
  const keys = scenario.hooks.getApiKey
    ? ["config-key", `key of ${modelId === "second-model" ? "second" : "first"}-provider`]
    : ["config-key"];
  if (!keys.includes(options?.apiKey as string)) world.fail(`6.1: ${where} has the key ${options?.apiKey}`);
  if (!(options?.signal instanceof AbortSignal) || options.signal === world.controller.signal)
    world.fail(`7.1: ${where} has no signal of its own`);
  const leaked = Object.keys(options ?? {}).filter((key) => !["apiKey", "signal", "sessionId", "temperature"].includes(key));
  if (leaked.length > 0) world.fail(`6.1: ${where} has the options ${leaked}`);
}

function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return /\p{Surrogate}/u.test(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, item]) => key !== "details" && (hasLoneSurrogate(key) || hasLoneSurrogate(item)));
}

/** SPEC 2.1: plain JSON, the host's details aside. */
function checkJson(world: World, messages: readonly AgentMessage[]): void {
  const bare = messages.map((message) => ({ ...(message as ToolResultMessage), details: undefined }));
  try {
    if (show(JSON.parse(JSON.stringify(bare))) !== show(bare)) world.fail("2.1: the transcript changes in a JSON round trip");
  } catch (error) {
    world.fail(`2.1: the transcript is not JSON: ${error}`);
  }
}
