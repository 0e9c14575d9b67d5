import * as acp from "@agentclientprotocol/sdk";
import { Agent, type AgentOptions, AssistantMessageBuilder, type AssistantMessageEvent, type StreamFn } from "turnloop";
import {
  type AcpAgentConnection,
  type AcpAgentOptions,
  type AcpSessionInfo,
  createAcpAgent,
  createUpdateState,
  toSessionUpdates,
  type UpdateState,
} from "turnloop/acp";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, expect } from "vitest";
import { model, type RunOptions, run } from "../helpers.js";
import { problemsOfSchema, problemsOfSessions, type Recorded } from "./acp-checks.js";

/** Runs the answers from the prompt "go"; the updates of that run, checked. */
export async function updatesOf(
  answers: ScriptedAnswer[] | StreamFn,
  options: RunOptions & { cwd?: string; state?: UpdateState } = {},
): Promise<acp.SessionUpdate[]> {
  const { cwd, state = createUpdateState({ tools: options.tools, cwd }), ...rest } = options;
  const updates: acp.SessionUpdate[] = [];
  await run(answers, {
    ...rest,
    onEvent: (event) => {
      updates.push(...toSessionUpdates(event, state));
      return options.onEvent?.(event);
    },
  });
  checkUpdates(updates);
  return JSON.parse(JSON.stringify(updates));
}

/** All updates of one prompt keep the order of cards and the protocol's schema. */
export function checkUpdates(updates: readonly acp.SessionUpdate[]): void {
  const sessionId = "s";
  const recorded = updates.map((update): Recorded => ({ type: "update", sessionId, update }));
  const whole: Recorded[] = [{ type: "prompt", sessionId }, ...recorded, { type: "answer", sessionId, stopReason: "end_turn" }];
  expect(problemsOfSessions(whole)).toEqual([]);
  expect(updates.flatMap((update) => problemsOfSchema("SessionNotification", { sessionId, update }))).toEqual([]);
}

/** One line for each update: chunks with message id and text, cards with id, status, title and texts. */
export function outlineOf(updates: readonly acp.SessionUpdate[]): string[] {
  return updates.map((update) => {
    if (update.sessionUpdate === "agent_message_chunk" || update.sessionUpdate === "agent_thought_chunk")
      return `${update.messageId}: ${textOf(update.content)}`;
    if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") return update.sessionUpdate;
    const { toolCallId, title, status, content } = update;
    const texts = (content ?? []).map((item) => (item.type === "content" ? textOf(item.content) : item.type));
    const what = update.sessionUpdate === "tool_call" ? "new " : "";
    return [`${what}${toolCallId} ${status}`, title && `"${title}"`, ...texts].filter(Boolean).join(" ");
  });
}

function textOf(block: acp.ContentBlock): string {
  return block.type === "text" ? block.text : block.type;
}

/** A model that gives these events for its first call; its second answer is "ok". */
export const streams = (first: (b: AssistantMessageBuilder) => AssistantMessageEvent[], restIsWhole = false): StreamFn => {
  let calls = 0;
  return async function* () {
    const b = new AssistantMessageBuilder(model);
    if (calls++ === 0) yield* first(b);
    else yield* restIsWhole ? whole(b, () => b.text("ok")) : [...b.text("ok"), ...b.done()];
  };
};
/** The same without what was streamed: only the message it ended with. */
export const whole = (b: AssistantMessageBuilder, build: (b: AssistantMessageBuilder) => void): AssistantMessageEvent[] => {
  build(b);
  return b.done().filter(({ type }) => type === "done");
};

type Outcome = acp.RequestPermissionResponse["outcome"];

export interface ClientOptions extends Partial<AcpAgentOptions> {
  /** Of the agents that are made when there is no `createAgent`. */
  agent?: (session: AcpSessionInfo) => Partial<AgentOptions>;
  /** What the user says; @default allow_once */
  permission?: (request: acp.RequestPermissionRequest, signal: AbortSignal) => Outcome | Promise<Outcome>;
  /** What the client sends reaches the agent as it is, not as JSON. */
  isInProcess?: boolean;
  /** The client reads nothing more while this holds. */
  gate?: () => Promise<void> | undefined;
}

export const choose = (optionId: string): Outcome => ({ outcome: "selected", optionId });

/** A client of the SDK's, connected in process. Everything the agent sends is recorded as JSON, and checked after the test. */
export class AcpClient {
  readonly recorded: Recorded[] = [];
  /** One for each session, in order. */
  readonly agents: Agent[] = [];
  /** The updates as the client's SDK understood them. */
  readonly #decoded: acp.SessionNotification[] = [];
  readonly #problems: string[] = [];
  readonly #requests = new Map<acp.JsonRpcId, { method: string; sessionId: string }>();
  readonly #running = new Set<string>();
  #waiting: { wanted: (entry: Recorded) => boolean; resolve: (entry: Recorded) => void }[] = [];
  readonly served: AcpAgentConnection;
  readonly connection: acp.ClientConnection;
  readonly #toAgent: TransformStream<acp.AnyMessage>;

  constructor(answers: ScriptedAnswer[] | StreamFn, { agent, permission, gate, isInProcess, ...options }: ClientOptions = {}) {
    const toAgent = new TransformStream<acp.AnyMessage>({
      transform: (message, controller) => {
        this.#sent(message);
        controller.enqueue(isInProcess ? message : copy(message));
      },
    });
    const toClient = new TransformStream<acp.AnyMessage>({
      transform: async (message, controller) => {
        await gate?.();
        this.#received(copy(message));
        controller.enqueue(copy(message));
      },
    });
    this.#toAgent = toAgent;
    const createAgent = (session: AcpSessionInfo): Agent =>
      new Agent({ model, streamFn: Array.isArray(answers) ? scriptedModel(answers) : answers, ...agent?.(session) });
    const make = options.createAgent ?? createAgent;
    this.served = createAcpAgent({
      ...options,
      createAgent: async (session) => {
        const made = await make(session);
        this.agents.push(made);
        return made;
      },
    }).connect({ readable: toAgent.readable, writable: toClient.writable });
    this.connection = acp
      .client({ name: "test" })
      .onRequest(acp.methods.client.session.requestPermission, async ({ params, signal }) => {
        return { outcome: (await permission?.(params, signal)) ?? choose("allow_once") };
      })
      .onNotification(acp.methods.client.session.update, ({ params }) => void this.#decoded.push(params))
      .connect({ readable: toClient.readable, writable: toAgent.writable });
    open.add(this);
  }

  initialize(): Promise<acp.InitializeResponse> {
    return this.connection.agent.request("initialize", { protocolVersion: acp.PROTOCOL_VERSION });
  }

  async session(cwd = "/project"): Promise<string> {
    return (await this.connection.agent.request("session/new", { cwd, mcpServers: [] })).sessionId;
  }

  prompt(sessionId: string, prompt: string | acp.ContentBlock[] = "go", options?: acp.SendRequestOptions): Promise<acp.PromptResponse> {
    const blocks: acp.ContentBlock[] = typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
    return this.connection.agent.request("session/prompt", { sessionId, prompt: blocks }, options);
  }

  cancel(sessionId: string): Promise<void> {
    return this.connection.agent.notify("session/cancel", { sessionId });
  }

  updates(sessionId?: string): acp.SessionUpdate[] {
    return this.recorded.flatMap((entry) =>
      entry.type === "update" && (sessionId ?? entry.sessionId) === entry.sessionId ? [entry.update] : [],
    );
  }

  outline(sessionId?: string): string[] {
    return outlineOf(this.updates(sessionId));
  }

  /** Settles once such an entry is recorded, also one of before. */
  until(wanted: (entry: Recorded) => boolean): Promise<Recorded> {
    const known = this.recorded.find(wanted);
    return known ? Promise.resolve(known) : new Promise((resolve) => this.#waiting.push({ wanted, resolve }));
  }

  /** Settles once an update whose outline matches is recorded. */
  untilShown(pattern: RegExp): Promise<Recorded> {
    return this.until((entry) => entry.type === "update" && pattern.test(outlineOf([entry.update])[0] as string));
  }

  /** The client is gone, as one whose process ends. */
  leave(): void {
    this.connection.close();
    this.#toAgent.writable.close().catch(() => {});
  }

  /** Closes the connection, if it is not, and checks all that passed over it. */
  async finish(): Promise<void> {
    open.delete(this);
    const wasOpen = !this.connection.signal.aborted;
    if (wasOpen) await new Promise(setImmediate); // the client's SDK is still handing on what it read
    this.leave();
    await this.served.closed;
    expect(this.#problems).toEqual([]);
    expect(problemsOfSessions(this.recorded)).toEqual([]);
    const raw = this.recorded.flatMap((entry) => (entry.type === "update" ? [{ sessionId: entry.sessionId, update: entry.update }] : []));
    expect(this.#decoded).toEqual(wasOpen ? raw : raw.slice(0, this.#decoded.length));
  }

  #sent(message: acp.AnyMessage): void {
    if (!("method" in message) || !("id" in message)) return;
    const { sessionId = "" } = (message.params ?? {}) as { sessionId?: string };
    const isSecond = message.method === "session/prompt" && this.#running.has(sessionId);
    this.#requests.set(message.id, { method: isSecond ? "refused" : message.method, sessionId });
    if (message.method !== "session/prompt" || isSecond) return;
    this.#running.add(sessionId);
    this.#record({ type: "prompt", sessionId });
  }

  #received(message: acp.AnyMessage): void {
    const { method, params, id, result, error } = message as Record<string, any>;
    if (method === "session/update") {
      this.#checkSchema("SessionNotification", params);
      this.#record({ type: "update", ...params });
    } else if (method === "session/request_permission") {
      this.#checkSchema("RequestPermissionRequest", params);
      this.#record({ type: "ask", sessionId: params.sessionId, toolCall: params.toolCall });
    } else if (method !== undefined) this.#problems.push(`the agent sent ${method}`);
    else this.#answered(this.#requests.get(id), result, error);
  }

  #answered(request: { method: string; sessionId: string } | undefined, result: any, error: any): void {
    const names: Record<string, string> = {
      initialize: "InitializeResponse",
      "session/new": "NewSessionResponse",
      "session/prompt": "PromptResponse",
    };
    if (error) this.#checkSchema("Error", error);
    else this.#checkSchema(names[request?.method ?? ""] ?? "unknown", result);
    if (request?.method !== "session/prompt") return;
    this.#running.delete(request.sessionId);
    this.#record({ type: "answer", sessionId: request.sessionId, ...(error ? { error } : { stopReason: result.stopReason }) });
  }

  #checkSchema(name: string, value: unknown): void {
    this.#problems.push(...problemsOfSchema(name, value));
  }

  #record(entry: Recorded): void {
    this.recorded.push(entry);
    this.#waiting = this.#waiting.filter(({ wanted, resolve }) => {
      if (wanted(entry)) resolve(entry);
      else return true;
      return false;
    });
  }
}

/** A client that is connected and initialized. */
export async function connect(answers: ScriptedAnswer[] | StreamFn, options?: ClientOptions): Promise<AcpClient> {
  const client = new AcpClient(answers, options);
  await client.initialize();
  return client;
}

const open = new Set<AcpClient>();

/** Closes the clients of a test and checks what passed. To be called at the top of a test file. */
export function finishClients(): void {
  afterEach(async () => {
    for (const client of open) await client.finish();
  });
}

function copy<T>(message: T): T {
  return JSON.parse(JSON.stringify(message));
}
