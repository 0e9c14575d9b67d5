/** An Agent per session, served to an ACP client (SPEC 10.1, 10.5). */
import type { AgentConnection, AgentContext, Implementation, McpServer, Stream } from "@agentclientprotocol/sdk";
import type { Agent } from "../../agent/agent.js";
import { describe, TurnLoopError } from "../../errors.js";
import type { ThinkingOptions } from "../../thinking/thinking-card.js";
import { importPeer } from "../shared/call.js";
import { rememberCards } from "./permission.js";
import { AcpSession } from "./session.js";
import { isAbsoluteAnywhere } from "./tool-card.js";
import { createUpdateState } from "./updates.js";

/** What a new session is about. */
export interface AcpSessionInfo {
  sessionId: string;
  /** The absolute path the client works in, of this system or the client's. A session with another is refused. */
  cwd: string;
  /** Reaches the client: for `requestPermission`, or requests of your own. */
  connection: AgentContext;
  /** What the client wants its agent to be connected to. */
  mcpServers: McpServer[];
}

export interface AcpAgentOptions {
  /** Makes the agent of a new session. A throw is the error of that request. */
  createAgent(session: AcpSessionInfo): Agent<any> | Promise<Agent<any>>;
  /** Sets the option of the same name of each agent: the wait for the model is shown as a card. @default what the agent has */
  thinking?: boolean | ThinkingOptions;
  /** How the agent introduces itself. @default turnloop */
  agentInfo?: Implementation;
}

export interface AcpAgentConnection {
  /** Resolves when the connection is closed, by either side, and no prompt runs any more; rejects if the SDK cannot be loaded. */
  closed: Promise<void>;
  /** Stops what runs, closes the connection and the writable side of its stream. */
  close(): void;
}

export interface AcpAgent {
  /** Serves one client over a stream of the SDK, such as that of `ndJsonStream`. */
  connect(stream: Stream): AcpAgentConnection;
}

/**
 * Serves agents over the Agent Client Protocol (version 1): one Agent per session, any number of sessions per connection.
 * Needs the package `@agentclientprotocol/sdk`. The standard output of a stdio agent belongs to the protocol: log to the
 * standard error.
 *
 * @example
 * const { closed } = createAcpAgent({ thinking: true, createAgent: ({ cwd }) => new Agent({ model, streamFn, tools: toolsFor(cwd) }) })
 *   .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
 * await closed;
 */
export function createAcpAgent(options: AcpAgentOptions): AcpAgent {
  return {
    connect(stream) {
      const end = new AbortController();
      const closed = serve(options, stream, end.signal);
      closed.catch(() => {}); // a host that does not look is not to crash
      return { closed, close: () => end.abort() };
    },
  };
}

async function serve(options: AcpAgentOptions, stream: Stream, end: AbortSignal): Promise<void> {
  const sdk = await importPeer("createAcpAgent", "@agentclientprotocol/sdk", () => import("@agentclientprotocol/sdk"));
  const { methods, RequestError } = sdk;
  const sessions = new Map<string, AcpSession>();
  const find = (sessionId: string): AcpSession => {
    const session = sessions.get(sessionId);
    if (!session) throw RequestError.sessionNotFound(sessionId);
    return session;
  };
  let connection: AgentConnection | undefined;
  const app = sdk
    .agent({ name: "turnloop" })
    // a handler registered later hears of a message later: a cancel, then a prompt in one breath are to be heard in that order, and so
    // are a prompt, then a cancel
    .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel())
    .onRequest(methods.agent.session.prompt, async ({ params, signal }) => {
      return { stopReason: await find(params.sessionId).prompt(params.prompt, signal) };
    })
    .onRequest(methods.agent.session.new, async ({ params }) => {
      const { cwd, mcpServers } = params;
      if (!isAbsoluteAnywhere(cwd)) throw RequestError.invalidParams({ cwd }, "cwd must be an absolute path");
      const sessionId = crypto.randomUUID();
      const { client, signal } = connection as AgentConnection;
      const agent = assertAgent(await options.createAgent({ sessionId, cwd, mcpServers, connection: client }));
      if (signal.aborted) throw new Error("the connection was closed meanwhile");
      if (options.thinking !== undefined) agent.thinking = options.thinking;
      const state = createUpdateState({ tools: agent.tools, cwd });
      rememberCards(client, sessionId, state);
      sessions.set(sessionId, new AcpSession(sessionId, agent, client, state, RequestError));
      return { sessionId };
    })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: sdk.PROTOCOL_VERSION,
      agentCapabilities: { promptCapabilities: { image: true, embeddedContext: true } },
      agentInfo: options.agentInfo ?? { name: "turnloop", version: "0.1.0" },
      authMethods: [],
    }));
  // The SDK locks what it writes to for as long as a write takes, and nobody could close it then.
  const writer = stream.writable.getWriter();
  connection = app.connect({ readable: stream.readable, writable: new WritableStream({ write: (message) => writer.write(message) }) });
  const close = (): void => connection?.close();
  if (end.aborted) close();
  else end.addEventListener("abort", close);
  await connection.closed;
  end.removeEventListener("abort", close);
  writer.close().catch(() => {}); // so that the client learns of it; what broke is closed already
  await Promise.all([...sessions.values()].map((session) => session.end()));
}

/** Structurally: the host's Agent may be of another copy of this package. */
function assertAgent(agent: Agent<any>): Agent<any> {
  const { prompt, subscribe } = Object(agent) as Partial<Agent>;
  if (typeof prompt === "function" && typeof subscribe === "function") return agent;
  throw new TurnLoopError("invalid_argument", `createAgent must return an Agent; got ${describe(agent)}.`);
}
