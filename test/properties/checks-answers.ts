/** What must hold of the answers: their content is what the stream said, live and in the end (SPEC 3, 4.8, 5.4, 7.3). */
import {
  type AgentEvent,
  type AgentMessage,
  type AssistantMessage,
  pairToolCalls,
  type ToolCall,
  toLlmMessages,
  toWellFormed,
} from "turnloop";
import type { Played } from "./interpret.js";
import { GARBAGE, STALE } from "./model.js";
import { ARGUMENTS, show } from "./odd-values.js";
import type { Answer } from "./scenario.js";
import type { ModelCall, World } from "./world.js";

type Content = AssistantMessage["content"];

/** The number of the model call that an answer is of, from 1; undefined: the StreamFn gave nothing of its own. */
export function modelCallOf(answer: AssistantMessage): number | undefined {
  const match = /^call-(\d+)$/.exec(answer.model);
  return match ? Number(match[1]) : undefined;
}

export function isFailed({ stopReason }: AssistantMessage): boolean {
  return stopReason === "error" || stopReason === "aborted";
}

export function checkAnswers({ world, history }: Played, events: AgentEvent[], messages: readonly AgentMessage[]): void {
  let previous = 0;
  let truncated = 0;
  messages.forEach((message, at) => {
    if (message.role !== "assistant") return;
    const answer = message as AssistantMessage;
    const number = modelCallOf(answer);
    if (number !== undefined && number <= previous) world.fail(`4.4: the answer of model call ${number} comes after that of ${previous}`);
    previous = number ?? previous;
    checkAnswer(world, answer, number);
    if (number !== undefined) checkRequestMessages(world, number, [...history, ...messages.slice(0, at)]);
    truncated = answer.stopReason === "length" && answer.content.some(({ type }) => type === "toolCall") ? truncated + 1 : 0;
    const limit = world.scenario.config.maxTruncatedTurns ?? 3;
    const last = messages.slice(at + 1).every(({ role }) => role === "toolResult");
    if (truncated > limit || (truncated === limit && !last))
      world.fail(`5.3: the run goes on after ${truncated} truncated answers in a row`);
  });
  // a decorator may hold events back, and with them show what has been written to a live partial meanwhile
  if (!world.scenario.sink.writes && !world.decorate) for (const turn of turnsOf(events)) checkLive(world, turn);
}

function checkAnswer(world: World, answer: AssistantMessage, number: number | undefined): void {
  const { stopReason, content, timestamp, errorMessage } = answer;
  if (!["stop", "length", "toolUse", "error", "aborted"].includes(stopReason))
    world.fail(`2.3: an answer has the stop reason ${stopReason}`);
  if (isFailed(answer) && !errorMessage) world.fail(`6.3: a failed answer has no text`);
  if (world.scenario.config.ownNow && !(timestamp >= 1_000_000)) world.fail(`2.2: an answer has the timestamp ${timestamp}`);
  if (number === undefined) {
    if (content.length > 0 || !isFailed(answer)) world.fail(`7.3: an answer without a stream is ${show(answer)}`);
    return;
  }
  const call = world.modelCalls[number - 1] as ModelCall;
  const json = show(content);
  for (const word of [GARBAGE, STALE]) {
    if (json.includes(word) && !(word === STALE && isFailed(answer))) world.fail(`3.3: ${word} is in the answer ${json}`);
  }
  if (isFailed(answer)) {
    if (!world.decorate) checkKept(world, call, answer);
  } else if (bare(content) !== bare(JSON.parse(call.terminal ?? "[]")))
    world.fail(`3.3: the answer is ${json}, the model said ${call.terminal}`);
  else checkArguments(world, answer, world.scenario.answers[number - 1]);
}

/** SPEC 3.4, 7.3: the content so far is kept; the frame pulled last may have come too late. */
function checkKept(world: World, { frames, terminal }: ModelCall, answer: AssistantMessage): void {
  const said = [
    ...(frames.length < 2 ? ["[]"] : []),
    ...frames.slice(-2).map(({ content }) => content),
    ...(terminal === undefined ? [] : [terminal]),
  ];
  const kept = bare(answer.content);
  const { indexOffset, fault } = world.scenario.answers[(modelCallOf(answer) ?? 0) - 1] ?? {};
  if (indexOffset || fault?.kind === "junk") return;
  if (!said.some((content) => bare(JSON.parse(content)) === kept))
    world.fail(`7.3: kept of a failed answer is ${kept}, the stream said ${said}`);
}

/** SPEC 5.4: what the transcript keeps of the arguments. */
function checkArguments(world: World, answer: AssistantMessage, spec: Answer | undefined): void {
  spec?.blocks.forEach((block, i) => {
    if (block.kind !== "call") return;
    const call = answer.content[i] as ToolCall;
    const stored = ARGUMENTS[block.args]?.stored;
    const same = show(call.arguments) === show(stored ?? {}) && (call.argumentsError === undefined) === (stored !== undefined);
    if (!same) world.fail(`5.4: the transcript keeps of the arguments of row ${block.args} ${show(call)}`);
  });
}

/** Content without the arguments and ids, which the loop makes safe. */
function bare(content: Content): string {
  return show(content.map((block) => (block.type === "toolCall" ? `call ${typeof block.name === "string" ? block.name : ""}` : block)));
}

/** SPEC 6.1: without hooks the request is the transcript up to there, converted and paired. */
function checkRequestMessages(world: World, number: number, before: AgentMessage[]): void {
  const { transformContext, convertToLlm, prepareNextTurn } = world.scenario.hooks;
  if (transformContext || convertToLlm || prepareNextTurn) return;
  const request = show((world.modelCalls[number - 1] as ModelCall).messages);
  const expected = show(pairToolCalls(toWellFormed(toLlmMessages(before))));
  if (request !== expected) world.fail(`6.1: request ${number} is ${request}, expected ${expected}`);
}

export function turnsOf(events: readonly AgentEvent[]): AgentEvent[][] {
  const turns: AgentEvent[][] = [];
  for (const event of events) {
    if (event.type === "turn_start") turns.push([]);
    else if (event.type !== "agent_end") turns[turns.length - 1]?.push(event);
  }
  return turns;
}

/** SPEC 3.3, 4.6, 4.8: each frame that was pulled gives one event with a snapshot of it. */
function checkLive(world: World, turn: AgentEvent[]): void {
  const live = turn.filter(
    (event) => (event.type === "message_start" && event.message.role === "assistant") || event.type === "message_update",
  );
  const end = turn.find((event) => event.type === "message_end" && event.message.role === "assistant");
  const number = end && modelCallOf((end as { message: AssistantMessage }).message);
  const spec = number === undefined ? undefined : world.scenario.answers[number - 1];
  if (!spec || spec.fault?.kind === "junk" || (spec.indexOffset !== 0 && spec.live)) return;
  const { frames } = world.modelCalls[(number as number) - 1] as ModelCall;
  const expected = frames[0]?.type === "start" ? frames : [{ type: "start", content: frames[0]?.content ?? "[]" }, ...frames];
  let seen: string[][] = [];
  for (const [i, event] of live.entries()) {
    const frame = expected[i];
    if (frame?.type === "start") seen = [];
    const content = JSON.parse(frame?.content ?? "[]") as Content;
    for (const [at, block] of content.entries()) if (block.type === "toolCall") seen[at] = [...(seen[at] ?? []), show(block.arguments)];
    const { message } = event as { message: AssistantMessage };
    if (frames.length > 0 && (!frame || bare(message.content) !== bare(content)))
      world.fail(`4.8: event ${i} of an answer is ${show(event)}, the stream said ${show(frame)}`);
    if (event.type !== "message_update") continue;
    if (event.assistantMessageEvent.type !== frame?.type)
      world.fail(`3.3: the update ${event.assistantMessageEvent.type} should be ${frame?.type}`);
    const invented = message.content.some((block, at) => block.type === "toolCall" && !isKnown(block.arguments, seen[at]));
    if (invented) world.fail(`4.8: ${show(event)} shows arguments that this attempt never had`);
    checkCallEnd(world, event, spec, content);
  }
  const failed = isFailed((end as { message: AssistantMessage }).message);
  if (!failed && !world.sinkFailure && frames.length > 0 && live.length !== expected.length)
    world.fail(`4.7: ${expected.length} stream events gave ${live.length} events`);
}

function isKnown(shown: unknown, seen: string[] | undefined): boolean {
  return show(shown) === "{}" || (seen ?? []).includes(show(shown));
}

/** The end of a call shows the whole call. */
function checkCallEnd(
  world: World,
  { assistantMessageEvent: update }: Extract<AgentEvent, { type: "message_update" }>,
  spec: Answer,
  content: Content,
): void {
  if (update.type !== "toolcall_end" || spec.indexOffset !== 0 || spec.fault?.kind === "restart") return;
  const block = content[update.contentIndex];
  const stored = ARGUMENTS[spec.blocks[update.contentIndex]?.args ?? 0]?.stored;
  const whole = block?.type === "toolCall" && typeof block.arguments === "object" && stored && Object.keys(stored).length > 0;
  if (whole && show(update.toolCall.arguments) !== show(block.arguments))
    world.fail(`4.8: toolcall_end shows the arguments ${show(update.toolCall.arguments)}, the stream said ${show(block.arguments)}`);
}
