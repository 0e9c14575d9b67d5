/** What must hold of the tool calls: each is answered once, and a tool gets what validation promises (SPEC 5). */
import { isDeepStrictEqual } from "node:util";
import type { AgentEvent, AgentMessage, AssistantMessage, ToolCall, ToolResultMessage } from "turnloop";
import { isFailed, modelCallOf, turnsOf } from "./checks-answers.js";
import { isStrict } from "./host.js";
import { toolIndex } from "./model.js";
import { ARGUMENTS, MARK, show } from "./odd-values.js";
import type { Block, Tool } from "./scenario.js";
import type { Execution, World } from "./world.js";

type EventOf<T extends AgentEvent["type"]> = Extract<AgentEvent, { type: T }>;

/** One call of the transcript, with what is known of it. */
interface Known {
  call: ToolCall;
  result: ToolResultMessage | undefined;
  /** Of the scenario. */
  block: Block;
  /** Undefined: no tool of that name was in force. */
  tool: Tool | undefined;
  execution: Execution | undefined;
  /** Of the hook log. */
  key: string;
  cutOff: boolean;
}

export function checkCalls(world: World, events: AgentEvent[], messages: readonly AgentMessage[], cut: boolean): void {
  const answers = messages.filter(({ role }) => role === "assistant") as AssistantMessage[];
  const turns = turnsOf(events);
  const calls = answers.map((answer, i) => callsOf(world, answer, i + 1, messages));
  for (const known of calls.flat()) checkCall(world, known);
  const executed = calls.flat().filter(({ execution }) => execution).length;
  if (executed !== world.executions.length)
    world.fail(`5.2: ${world.executions.length} executions, of which ${executed} are of calls in the transcript`);
  if (cut) return;
  for (const [i, turn] of turns.entries()) {
    checkTurn(world, turn, calls[i] ?? [], turns[i + 1]);
    const { message } = turn[turn.length - 1] as EventOf<"turn_end">;
    if (!world.scenario.sink.writes && show(message) !== show(answers[i]))
      world.fail(`4.4: turn_end has the answer ${show(message)}, not ${show(answers[i])}`);
  }
}

function callsOf(world: World, answer: AssistantMessage, turn: number, messages: readonly AgentMessage[]): Known[] {
  const number = modelCallOf(answer);
  if (number === undefined || isFailed(answer)) return [];
  const blocks = world.scenario.answers[number - 1]?.blocks.filter(({ kind }) => kind === "call") ?? [];
  const tools = world.scenario.tools.slice(0, world.modelCalls[number - 1]?.tools);
  const calls = answer.content.filter((block): block is ToolCall => block.type === "toolCall");
  const after = messages.slice(messages.indexOf(answer) + 1);
  const next = after.findIndex(({ role }) => role !== "toolResult");
  const results = (next < 0 ? after : after.slice(0, next)) as ToolResultMessage[];
  return calls.map((call, index) => {
    const block = blocks[index] as Block;
    const execution = world.executions.find((run) => run.turn === turn && run.index === index);
    const result = results.find(({ toolCallId }) => toolCallId === call.id);
    return {
      call,
      result,
      block,
      tool: tools[toolIndex(world, block)],
      execution,
      key: `${answer.model}/${call.id}`,
      cutOff: answer.stopReason === "length",
    };
  });
}

/** The arguments before the hook is asked; undefined: refused. */
function validated({ block, tool }: Known): Record<string, unknown> | undefined {
  const row = ARGUMENTS[block.args];
  if (!tool || !row?.stored) return undefined;
  const strict = isStrict(tool);
  const base = (strict ? row.strict : row.loose) as Record<string, unknown> | undefined;
  switch (tool.prepare) {
    case "throw":
    case "promise":
    case "hangingSchema":
      return undefined;
    case "edit":
      return strict ? { n: 3, flag: false } : { n: "3" };
    case "mutate":
      return strict ? { flag: false, ...base, n: 4 } : { ...base, n: "4" };
    default:
      return base;
  }
}

/** What the tool must receive after `beforeToolCall`; undefined: refused. */
function decided(base: Record<string, unknown> | undefined, act: string | undefined, strict: boolean): Record<string, unknown> | undefined {
  if (!base) return undefined;
  switch (act) {
    case "edit":
      return strict ? { n: 7, flag: false } : { n: "7" };
    case "inPlace":
      return { ...base, n: strict ? 9 : "9" };
    case "bad":
      return strict ? undefined : { n: "seven" };
    case "badInPlace":
    case "suspendBad":
      return strict ? undefined : { ...base, n: "nine" };
    case "suspendEdit":
      return decided(base, "edit", strict);
    case "block":
    case "blockTerminate":
    case "throw":
    case "hang":
      return undefined;
    default:
      return base;
  }
}

function checkCall(world: World, known: Known): void {
  const { call, result, tool, execution, key, cutOff } = known;
  const what = `call ${show(call)} of row ${known.block.args}`;
  const asked = world.hookCalls.filter(({ hook, callId }) => hook === "beforeToolCall" && callId === key);
  const after = world.hookCalls.filter(({ hook, callId }) => hook === "afterToolCall" && callId === key);
  const base = cutOff ? undefined : validated(known);
  const allowed = decided(base, asked[0]?.act, isStrict(tool));
  const suspended = allowed && asked[0]?.act.startsWith("suspend");
  const expected = suspended ? undefined : allowed;
  const undisturbed = !world.stopped && !world.sinkFailure;
  if (undisturbed && suspended && result) world.fail(`15.2: ${what} is suspended, and its result is ${show(result)}`);
  if (!result) checkPending(world, known, suspended && allowed);
  if (asked.length > (base ? 1 : 0)) world.fail(`5.8: beforeToolCall is asked ${asked.length} times about ${what}`);
  if (undisturbed && world.scenario.hooks.beforeToolCall && base && asked.length === 0)
    world.fail(`5.8: beforeToolCall is not asked about ${what}`);
  if (execution && !expected) world.fail(`5.6: ${what} is executed with ${execution.args}`);
  if (execution && expected) {
    if (!isDeepStrictEqual(JSON.parse(execution.args), JSON.parse(JSON.stringify(expected))))
      world.fail(`5.7: ${what} receives ${execution.args}, expected ${show(expected)}`);
    if (!execution.prototypeIsPlain) world.fail(`5.7: ${what} receives an object with another prototype`);
    if (execution.args.includes(MARK)) world.fail("4.8: what a listener writes to an event reaches a tool");
    if (execution.id !== call.id) world.fail(`5.11: ${what} is executed as ${execution.id}`);
  }
  if (undisturbed && expected && !execution) world.fail(`5.1: ${what} is not executed: ${show(result)}`);
  if (!execution && result?.isError === false) world.fail(`5.2: ${what} is not executed, and its result is no error: ${show(result)}`);
  if (after.length > (execution ? 1 : 0)) world.fail(`5.12: afterToolCall is asked ${after.length} times about ${what}`);
  if (undisturbed && world.scenario.hooks.afterToolCall && execution && after.length === 0)
    world.fail(`5.12: afterToolCall is not asked about ${what}`);
  if (result && (result.toolName !== call.name || !(result.content.length > 0 || tool?.then === "odd")))
    world.fail(`5.11: the result of ${what} is ${show(result)}`);
  if (execution && result && after.length === 0 && !world.sinkFailure) checkSettling(world, known, execution, result);
  if (world.scenario.config.ownNow && result && !(result.timestamp >= 1_000_000))
    world.fail(`2.2: the result of ${what} has the timestamp ${result.timestamp}`);
}

/** SPEC 15.2: a call without a result waits, and the end of the run says so. */
function checkPending(world: World, { call }: Known, args: object | undefined | false): void {
  if (!args) world.fail(`5.2: ${show(call)} has no result`);
  const { event } = world.sinkCalls[world.sinkCalls.length - 1] ?? {};
  if (!args || event?.type !== "agent_end" || world.scenario.sink.writes) return;
  const shown = event.pending?.find(({ toolCall }) => toolCall.id === call.id);
  if (!shown && !world.sinkFailure) world.fail(`15.2: ${show(call)} waits, and the run ends with ${show(event.pending)}`);
  else if (shown && !isDeepStrictEqual(shown.args, JSON.parse(JSON.stringify(args))))
    world.fail(`15.2: ${show(call)} waits with ${show(shown)}, expected ${show(args)}`);
}

function limitOf(world: World, tool: Tool | undefined): number {
  return tool?.timeoutMs ?? world.scenario.config.toolTimeoutMs ?? 0;
}

/** SPEC 5.11, 5.13, 7.4: what becomes of an execution by the time that it settled; what falls on the same millisecond may go either way. */
function checkSettling(
  world: World,
  { tool, call }: Known,
  { startedAt, settledAt = Infinity }: Execution,
  result: ToolResultMessage,
): void {
  const limit = limitOf(world, tool);
  const timeout = limit > 0 ? startedAt + limit : Infinity;
  const stop = world.stoppedAt ?? Infinity;
  const grace = stop + (world.scenario.config.abortGraceMs ?? 250);
  const json = show(result);
  const kept = json.includes("result of ") || json.includes("stopped early");
  const keeps = (tool?.then === "text" || tool?.then === "result") && tool.onAbort !== "reject";
  if (settledAt < Math.min(timeout, stop) && keeps && (!kept || result.isError)) world.fail(`5.11: the result of ${show(call)} is ${json}`);
  if (timeout < Math.min(settledAt, grace) && (!result.isError || !json.includes(`${limit} ms`)))
    world.fail(`5.13: the result at the limit is ${json}`);
  if (stop < settledAt && settledAt < Math.min(grace, timeout)) {
    if (!result.isError || (keeps && !kept)) world.fail(`7.4: a tool that settled in the grace has the result ${json}`);
  }
  if (grace < Math.min(settledAt, timeout) && (!result.isError || !json.includes("may still be running"))) {
    world.fail(`7.4: a tool that did not settle has the result ${json}`);
  }
}

/** SPEC 5.2, 5.9, 5.10: the events of a turn's batch. */
function checkTurn(world: World, turn: AgentEvent[], calls: Known[], next: AgentEvent[] | undefined): void {
  const of = <T extends AgentEvent["type"]>(type: T) => turn.filter((event): event is EventOf<T> => event.type === type);
  const { writes } = world.scenario.sink;
  const ids = calls.map(({ call }) => call.id);
  const starts = of("tool_execution_start");
  const ends = of("tool_execution_end");
  if (show(starts.map(({ toolCallId }) => toolCallId)) !== show(ids)) world.fail(`5.2: the calls ${ids} have the starts ${show(starts)}`);
  const answered = calls.filter(({ result }) => result);
  if (show(ends.map(({ toolCallId }) => toolCallId).sort()) !== show(answered.map(({ call }) => call.id).sort()))
    world.fail(`5.2: the calls ${ids} have the ends ${show(ends)}`);
  const letters = turn
    .map(
      ({ type }) =>
        ({ tool_execution_start: "s", tool_execution_update: "p", tool_execution_end: "e", message_start: "(", message_end: ")" })[
          type as string
        ] ?? "",
    )
    .join("");
  const batch = letters.includes("s") ? letters.slice(letters.indexOf("s")) : "";
  const sequential = world.scenario.config.toolExecution === "sequential" || calls.some(({ tool }) => tool?.mode === "sequential");
  const suspends = world.hookCalls.some(({ act, callId }) => act.startsWith("suspend") && calls.some(({ key }) => key === callId));
  const inOrder = suspends ? /^(sp*e?(\(\))*)*e*(\(\))*$/ : /^(sp*e\(\))*$/; // results behind a suspended call wait
  if (!(sequential ? inOrder : /^[spe]*(\(\))*$/).test(batch))
    world.fail(`5.9: the events of a ${sequential ? "sequential" : "parallel"} batch are ${batch}`);
  for (const known of calls) checkUpdates(world, known, of("tool_execution_update"));
  if (writes) return;
  calls.forEach(({ call, result }, i) => {
    const end = ends.find(({ toolCallId }) => toolCallId === call.id);
    if (show(starts[i]?.args) !== show(call.arguments)) world.fail(`5.6: tool_execution_start shows ${show(starts[i])} for ${show(call)}`);
    if ((result && show(end?.result.content) !== show(result.content)) || end?.isError !== result?.isError)
      world.fail(`5.2: ${show(end)} and ${show(result)} differ`);
  });
  checkOrder(world, calls, ends);
  const results = of("turn_end")[0]?.toolResults;
  if (show(results) !== show(answered.map(({ result }) => result))) world.fail(`5.2: turn_end has the results ${show(results)}`);
  const terminates = ends.length > 0 && ends.every(({ result }) => result.terminate === true);
  const first = next?.find(({ type }) => type === "message_start") as EventOf<"message_start"> | undefined;
  const { outcome } = (world.sinkCalls[world.sinkCalls.length - 1]?.event ?? {}) as { outcome?: string };
  if (ends.length > 0 && !terminates && !next && (outcome === "completed" || outcome === "terminated"))
    world.fail(`5.9: outcome ${outcome} after ${show(ends)}`);
  if (terminates && first?.message.role === "assistant") world.fail("5.9: a batch that terminates is followed by a model call");
}

/** SPEC 5.9: ends come as the tools settle. */
function checkOrder(world: World, calls: Known[], ends: EventOf<"tool_execution_end">[]): void {
  if (world.stopped || world.sinkFailure || world.scenario.hooks.afterToolCall) return;
  const times = ends.map(({ toolCallId }) => {
    const known = calls.find(({ call }) => call.id === toolCallId);
    return known && !limitOf(world, known.tool) ? known.execution?.settledAt : undefined;
  });
  const known = times.filter((time) => time !== undefined);
  if (known.some((time, i) => i > 0 && time < (known[i - 1] as number)))
    world.fail(`5.9: the calls settled at ${known}, in the order of their ends`);
}

function checkUpdates(world: World, { call, execution, tool }: Known, updates: EventOf<"tool_execution_update">[]): void {
  const shown = updates.filter(({ toolCallId }) => toolCallId === call.id).map(({ partialResult }) => partialResult.content?.[0]?.text);
  const issued = Array.from({ length: execution?.updates ?? 0 }, (_, i) => `update ${i}`);
  if (world.scenario.sink.writes && shown.every((text) => typeof text === "string")) return;
  const complete = !world.stopped && !world.sinkFailure && !limitOf(world, tool);
  if (show(shown) !== show(complete ? issued : issued.slice(0, shown.length)))
    world.fail(`5.10: ${show(call)} has the updates ${shown}, issued were ${issued}`);
}
