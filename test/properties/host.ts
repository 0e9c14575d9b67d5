/** The tools, hooks and queues of an interpreted run. */
import {
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  type AgentToolResult,
  type Message,
  type Model,
  toLlmMessages,
  userMessage,
} from "turnloop";
import { LOOSE, RETURNED, STRICT } from "./odd-values.js";
import type { Act, HookName, Poll, Scenario, Tool } from "./scenario.js";
import type { Execution, World } from "./world.js";

export const INTRUDER = "#intruder#";
const textBlock = (text: string) => ({ type: "text" as const, text });
const intruder = (): AgentMessage => userMessage(INTRUDER, { timestamp: 1 });

export function interpretedTools(world: World): AgentTool[] {
  return world.scenario.tools.map((spec, index) => {
    const tool: AgentTool = {
      name: `t${index}`,
      description: `tool ${index} \ud83d`,
      ...parametersOf(world, spec),
      execute: (...given) => execute(world, spec, index, given),
    };
    if (spec.timeoutMs !== undefined) tool.timeoutMs = spec.timeoutMs;
    if (spec.mode) tool.executionMode = spec.mode;
    if (!["none", "asyncSchema", "hangingSchema"].includes(spec.prepare))
      tool.prepareArguments = (args) => prepareArguments(world, spec, args);
    return tool;
  });
}

function parametersOf(world: World, spec: Tool): Pick<AgentTool, "parameters" | "jsonSchema"> {
  if (!spec.prepare.endsWith("Schema")) return { parameters: structuredClone(spec.strict ? STRICT : LOOSE) };
  const validate = (value: unknown) =>
    spec.prepare === "hangingSchema" ? world.hang() : world.answer(spec.wait === "sync" ? 1 : "micro", () => ({ value }));
  return { parameters: { "~standard": { version: 1, vendor: "scenario", validate } }, jsonSchema: structuredClone(LOOSE) };
}

/** A Standard Schema takes what it is given. */
export function isStrict(tool: Tool | undefined): boolean {
  return tool?.strict === true && !tool.prepare.endsWith("Schema");
}

function prepareArguments(world: World, spec: Tool, args: unknown): unknown {
  world.start("prepareArguments");
  switch (spec.prepare) {
    case "throw":
      return world.thrown(spec.odd);
    case "edit":
      return { n: "3" };
    case "promise":
      return Promise.reject(new Error("prepareArguments is not awaited"));
    case "mutate":
      return Object.assign(args as object, { n: "4" });
    default:
      return args;
  }
}

function execute(world: World, spec: Tool, tool: number, [id, params, signal, onUpdate, call]: Parameters<AgentTool["execute"]>): any {
  checkLimit(world, spec);
  if (signal.aborted) world.fail("7.3: a tool starts with an aborted signal");
  world.start("execute");
  const args = JSON.stringify(params);
  const run: Execution = {
    ...call,
    id,
    tool,
    args,
    prototypeIsPlain: Object.getPrototypeOf(params) === Object.prototype,
    startedAt: Date.now(),
    updates: 0,
  };
  if (world.executions.some((earlier) => earlier.turn === run.turn && earlier.index === run.index))
    world.fail(`5.2: call ${id} is executed twice`);
  world.executions.push(run);
  if (spec.mutatesParams) Object.assign(params, { n: "changed by the tool", flag: [] });
  const update = (text: string): void => {
    try {
      if (onUpdate({ content: [textBlock(text)] }) !== undefined) world.fail("5.10: onUpdate returns something");
    } catch (error) {
      world.fail(`5.10: onUpdate throws ${error}`);
    }
  };
  const updateLive = (): void => update(`update ${run.updates++}`);
  for (let i = 0; i < spec.updates; i++) updateLive();
  const settle = <T>(value: () => T): T => {
    run.settledAt ??= Date.now();
    if (spec.updatesAfter > 0) world.later(2, () => update("late update"));
    return value();
  };
  const value = (): unknown => settle(() => returned(world, spec, id));
  if (spec.wait === "sync") return value();
  if (spec.updatesAfter > 0) world.later(100, () => (signal.aborted || run.settledAt !== undefined) && update("late update"));
  if (typeof spec.wait === "number" && spec.updates > 0)
    world.later(Math.floor(spec.wait / 2), () => run.settledAt === undefined && updateLive());
  return new Promise((resolve, reject) => {
    let stop = (): void => {};
    const settled = (): void => {
      stop();
      try {
        resolve(value());
      } catch (error) {
        reject(error);
      }
    };
    if (spec.wait === "micro") queueMicrotask(settled);
    else if (spec.wait === "never") void world.hang();
    else stop = world.later(spec.wait as number, settled);
    signal.addEventListener("abort", () => {
      checkReason(world, spec, run, signal);
      if (spec.updatesAfter > 0) update("late update");
      if (spec.onAbort === "ignore") return;
      stop();
      settle(() => (spec.onAbort === "resolve" ? resolve("stopped early") : reject(signal.reason)));
    });
  });
}

/** SPEC 7.1: the tool's signal carries the caller's reason; its own limit has another one. */
function checkReason(world: World, spec: Tool, run: Execution, signal: AbortSignal): void {
  const limit = spec.timeoutMs ?? world.scenario.config.toolTimeoutMs;
  const timedOut = limit !== undefined && limit > 0 && Date.now() >= run.startedAt + limit;
  if (timedOut || world.scenario.sink.failAt !== undefined || world.left) return;
  if (signal.reason !== world.controller.signal.reason) world.fail("7.1: a tool's signal does not carry the caller's reason");
}

/** SPEC 5.9: how many tools may be at work when another one starts. */
function checkLimit(world: World, spec: Tool): void {
  const { config } = world.scenario;
  const limit = config.toolExecution === "sequential" || spec.mode === "sequential" ? 1 : (config.maxParallelToolCalls ?? Infinity);
  const open = world.executions.filter((run) => run.settledAt === undefined && !isTimedOut(world, run));
  if (open.length >= limit) world.fail(`5.9: ${open.length + 1} tools at work with a limit of ${limit}`);
}

function isTimedOut(world: World, run: Execution): boolean {
  const limit = world.scenario.tools[run.tool]?.timeoutMs ?? world.scenario.config.toolTimeoutMs ?? 0;
  return limit > 0 && Date.now() >= run.startedAt + limit;
}

function returned(world: World, spec: Tool, id: string): unknown {
  const content = [textBlock(`result of ${id}`)];
  switch (spec.then) {
    case "result":
      return { content, details: { id, size: 5n } };
    case "terminate":
      return { content, terminate: true };
    case "isError":
      return { content, isError: true, terminate: true };
    case "odd":
      return RETURNED[spec.odd]?.();
    case "throw":
      return world.thrown(spec.odd);
    default:
      return `result of ${id}`;
  }
}

type HookResults = { [act: string]: () => unknown };

/** Does what every hook can do, or gives what the act stands for. */
function perform({ act, wait, odd }: Act, world: World, results: HookResults): any {
  if (act === "hang") return world.hang();
  return world.answer(wait, () => {
    if (act === "throw") return world.thrown(odd);
    if (act === "junk") return [5, "text", Symbol("junk"), () => {}][odd % 4];
    return results[act]?.();
  });
}

export function interpretedConfig(world: World, model: Model): AgentLoopConfig {
  const { scenario } = world;
  const { ownNow, ...options } = scenario.config;
  let now = 1_000_000;
  const config: AgentLoopConfig = { model, apiKey: "config-key", streamOptions: { sessionId: "session", apiKey: "wrong" }, ...options };
  if (ownNow) config.now = () => now++;
  const hooks = interpretedHooks(world);
  for (const name of Object.keys(scenario.hooks) as HookName[]) config[name] = hooks[name] as any;
  if (scenario.steering) config.getSteeringMessages = interpretedQueue(world, "steering", scenario.steering);
  if (scenario.followUp) config.getFollowUpMessages = interpretedQueue(world, "followUp", scenario.followUp);
  return config;
}

function interpretedHooks(world: World): { [name in HookName]: (...args: any[]) => any } {
  return {
    transformContext: (messages: AgentMessage[]) =>
      perform(world.hook("transformContext"), world, {
        none: () => messages,
        push: () => pushTo(messages, messages),
        tail: () => [...messages.slice(0, 1), ...messages.slice(-2)],
        empty: () => [],
      }),
    convertToLlm: (messages: AgentMessage[]) =>
      perform(world.hook("convertToLlm"), world, {
        none: () => toLlmMessages(messages),
        noResults: () => toLlmMessages(messages).filter(({ role }) => role !== "toolResult"),
        reverse: () => toLlmMessages(messages).reverse(),
        push: () => pushTo(messages, toLlmMessages(messages) as Message[]),
      }),
    getApiKey: (provider: string) => perform(world.hook("getApiKey"), world, { none: () => `key of ${provider}` }),
    beforeToolCall: ({ toolCall, args, context, assistantMessage }) =>
      perform(world.hook("beforeToolCall", `${assistantMessage.model}/${toolCall.id}`), world, {
        edit: () => ({ args: { n: "7" } }),
        inPlace: () => setN(args, "9"),
        bad: () => ({ args: { n: "seven" } }),
        badInPlace: () => setN(args, "nine"),
        block: () => ({ block: true, reason: "not today" }),
        blockTerminate: () => ({ block: true, terminate: true }),
        truthyBlock: () => ({ block: 1 }),
        suspend: () => ({ suspend: true, reason: "ask" }),
        suspendEdit: () => ({ suspend: true, args: { n: "7" } }),
        suspendBad: () => setN(args, "nine") ?? { suspend: true },
        push: () => {
          pushTo(context.messages);
          pushTo(context.tools ?? []);
          pushTo(assistantMessage.content);
          toolCall.arguments.n = INTRUDER;
        },
      }),
    afterToolCall: ({ toolCall, context, assistantMessage, result }) =>
      perform(world.hook("afterToolCall", `${assistantMessage.model}/${toolCall.id}`), world, {
        content: () => ({ content: [textBlock("changed content")] }),
        terminate: () => ({ terminate: true }),
        error: () => ({ isError: true }),
        push: () => {
          pushTo(context.messages);
          pushTo(assistantMessage.content);
          (result as AgentToolResult).content.push(textBlock(INTRUDER));
        },
      }),
    prepareNextTurn: ({ context, newMessages, toolResults, message }) =>
      perform(world.hook("prepareNextTurn"), world, {
        model: () => ({ model: { id: "second-model", provider: "second-provider" } }),
        messages: () => ({ context: { messages: [...context.messages.slice(-3)] } }),
        tools: () => {
          if (!world.stopped) world.tools = Math.min(world.tools, 1);
          return { context: { tools: context.tools?.slice(0, 1) } };
        },
        options: () => ({ streamOptions: { temperature: 1 } }),
        push: () =>
          [context.messages, newMessages, toolResults, message.content, context.tools ?? []].map((list) => pushTo(list)) && undefined,
      }),
    shouldStopAfterTurn: ({ context, newMessages, toolResults, turn }) => {
      const answers = newMessages.filter(({ role }: AgentMessage) => role === "assistant").length;
      if (turn !== answers) world.fail(`6.4: shouldStopAfterTurn hears of turn ${turn}, after ${answers} answers`);
      return perform(world.hook("shouldStopAfterTurn"), world, {
        none: () => false,
        stop: () => true,
        push: () => [context.messages, newMessages, toolResults].map((list) => pushTo(list)) && false,
      });
    },
  };
}

function setN(args: { n?: unknown }, n: string): void {
  args.n = n;
}

/** A host that writes to the lists it is shown (SPEC 6.2). */
function pushTo<T>(list: unknown[], result?: T): T | undefined {
  list.push(intruder());
  return result;
}

function interpretedQueue(world: World, name: string, polls: readonly Poll[]): () => any {
  let calls = 0;
  return () => {
    const poll = polls[calls++];
    world.start(name === "steering" ? "getSteeringMessages" : "getFollowUpMessages");
    if (!poll) return [];
    const from = Date.now();
    return world.answer(poll.wait, () => {
      world.pollMs += Date.now() - Math.max(from, world.stoppedAt ?? Date.now());
      if (poll.throws) throw new Error(`${name} fails`);
      const messages = Array.from({ length: poll.messages }, (_, i) => incoming(poll.role, `${name} ${calls} ${i}`));
      if (world.stopped) world.polledAfterStop += messages.length;
      world.polled.push(...messages);
      return Object.freeze(messages);
    });
  };
}

/** A message of the host's, frozen: nothing may write to it (SPEC 4.1). */
export function incoming(role: "user" | "note" | "image", text: string): AgentMessage {
  if (role === "note") return Object.freeze({ role, text, timestamp: 7 }) as unknown as AgentMessage;
  const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" };
  return Object.freeze({
    role: "user",
    content: role === "image" ? Object.freeze([textBlock(text), image]) : text,
    timestamp: 7,
  }) as AgentMessage;
}

/** The transcript that a run starts from; it may be broken as stored ones are (SPEC 2.6). */
export function historyOf(kinds: Scenario["history"]): AgentMessage[] {
  const assistant = (calls: string[], stopReason: string, at: number) => ({
    role: "assistant",
    content: [textBlock(`answer ${at}`), ...calls.map((id) => ({ type: "toolCall", id, name: "t0", arguments: { n: 1 } }))],
    api: "a",
    provider: "p",
    model: "old",
    usage: {
      input: 1,
      output: 1,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 2,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    stopReason,
    timestamp: 3,
  });
  const result = (id: string) => ({
    role: "toolResult",
    toolCallId: id,
    toolName: "t0",
    content: [textBlock("old result")],
    isError: false,
    timestamp: 4,
  });
  return kinds.flatMap((kind, at): unknown[] => {
    const ids = [`old_${at}`, "same"];
    if (kind === "user" || kind === "note") return [incoming(kind, `old ${at}`)];
    if (kind === "answer") return [assistant([], "stop", at)];
    if (kind === "calls") return [assistant(ids, "toolUse", at), ...[...ids].reverse().map(result)];
    if (kind === "openCalls") return [assistant(ids, "toolUse", at), result("same")];
    return kind === "failed" ? [assistant(ids, "error", at)] : [result("stray")];
  }) as AgentMessage[];
}
