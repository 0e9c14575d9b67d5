import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { client, ndJsonStream, type RequestPermissionRequest, type RequestPermissionResponse } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, beforeEach, onTestFinished, vi } from "vitest";
import { type RawServer, rawServer } from "../adapters/helpers.js";
import { deferred } from "../helpers.js";
import { bundleDemo, environment, watch } from "./demo.js";
import { temporaryFolder } from "./helpers.js";

/** A message of either side. */
export interface Frame {
  jsonrpc?: string;
  id?: number | string | null;
  method?: string;
  params?: any;
  result?: any;
  error?: { code: number; message: string; data?: unknown };
}

const require = createRequire(import.meta.url);
const acpx = require.resolve("acpx/dist/cli.js");
const CRASHED = /^\s+at .*:\d+:\d+\)?$/m;
let agent = "";

vi.setConfig({ testTimeout: 30_000 });

/** An answer of the server that is on its way. */
interface Held {
  asked: Promise<void>;
  release(): Promise<void>;
  /** Settles when the request is over, however it ended. */
  closed: Promise<void>;
}

interface ModelServer {
  /** Makes the example talk to the server. */
  env(changes?: Record<string, string>): Record<string, string>;
  answer: RawServer["answer"];
  requests(): RawServer["requests"];
  /** Answers the next request when it is released. */
  hold(body: string): Held;
}

/** Bundles the example, and starts a server for its model that answers as each test says. */
export function agentAndServer(): ModelServer {
  agent = join(bundleDemo({ withClient: true }), "acp-agent.js");
  let server: RawServer;
  beforeAll(async () => {
    server = await rawServer();
  });
  beforeEach(() => void server.requests.splice(0));
  afterAll(() => server.close());
  return {
    env: (changes = {}) => ({ OPENAI_BASE_URL: server.url, OPENAI_MODEL: "test", ...changes }),
    answer: (...handlers) => server.answer(...handlers),
    requests: () => server.requests,
    hold(body) {
      const asked = deferred();
      let response: ServerResponse | undefined;
      const closed = server.answer((waiting) => {
        response = waiting;
        asked.resolve();
      });
      return { closed, asked: asked.promise, release: () => asked.promise.then(() => void response?.end(body)) };
    },
  };
}

/** The lines of an output as frames; throws if one is not. */
export function framesOf(output: string): Frame[] {
  return output
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const frame = JSON.parse(line) as Frame;
      if (frame.jsonrpc !== "2.0") throw new Error(`not a JSON-RPC frame: ${line}`);
      return frame;
    });
}

function running(command: string, args: string[], cwd: string, env: Record<string, string>) {
  const process = spawn(command, args, { cwd, env: { ...environment(), ...env }, detached: true });
  onTestFinished(() => void process.kill("SIGKILL"));
  const { child, finished, output } = watch(process);
  return {
    child,
    finished,
    output,
    /** Waits for a frame of its output. */
    async frame(matches: (frame: Frame) => unknown): Promise<Frame> {
      for (;;) {
        const found = framesOf(output.stdout).find(matches);
        if (found) return found;
        const next = await Promise.race([once(child.stdout, "data"), finished]);
        if ("code" in next) throw new Error(`it ended without such a frame: ${output.stdout}\n${output.stderr}`);
      }
    },
  };
}

/** The example, with nobody at its other end yet. */
export function startAgent(env: Record<string, string> = {}, args: string[] = []) {
  const started = running(process.execPath, [agent, ...args], temporaryFolder(), env);
  /** Writes them all at once. */
  const send = (...lines: (Frame | string)[]): void => {
    const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify({ jsonrpc: "2.0", ...line })));
    started.child.stdin.write(texts.map((text) => `${text}\n`).join(""));
  };
  return {
    ...started,
    send,
    /** Begins a session by hand. */
    async open(): Promise<string> {
      send({ id: "initialize", method: "initialize", params: { protocolVersion: 1, clientCapabilities: {} } });
      await started.frame(({ id }) => id === "initialize");
      send({ id: "new", method: "session/new", params: { cwd: temporaryFolder(), mcpServers: [] } });
      return (await started.frame(({ id }) => id === "new")).result.sessionId;
    },
    /** Closes its input, as a client does that is done. */
    async leave() {
      started.child.stdin.end();
      const { code, stdout, stderr } = await started.finished;
      if (CRASHED.test(stderr)) throw new Error(`the agent crashed: ${stderr}`);
      return { code, frames: framesOf(stdout), stderr };
    },
  };
}

/** A prompt of one text. */
export function promptFrame(id: string, sessionId: string, text: string): Frame {
  return { id, method: "session/prompt", params: { sessionId, prompt: [{ type: "text", text }] } };
}

/** The text of the answers. */
export function answerIn(frames: readonly Frame[]): string {
  const chunks = frames.filter(({ params }) => params?.update?.sessionUpdate === "agent_message_chunk");
  return chunks.map(({ params }) => params.update.content.text).join("");
}

type Decide = (question: RequestPermissionRequest) => RequestPermissionResponse | Promise<RequestPermissionResponse>;

export const allow: Decide = () => ({ outcome: { outcome: "selected", optionId: "allow_once" } });

/** The example with the SDK's client at its other end. `wire` is what went either way, in the order this side saw it. */
export async function connected({ env, decide = allow }: { env?: Record<string, string>; decide?: Decide } = {}) {
  const started = startAgent(env);
  const wire: Frame[] = [];
  const tap = (): PassThrough => {
    let rest = "";
    return new PassThrough().on("data", (chunk: Buffer) => {
      const text = rest + chunk;
      rest = text.slice(text.lastIndexOf("\n") + 1);
      wire.push(...framesOf(text));
    });
  };
  const outgoing = tap();
  outgoing.pipe(started.child.stdin);
  const incoming = Readable.toWeb(started.child.stdout.pipe(tap())) as ReadableStream<Uint8Array>;
  const connection = client({ name: "test" })
    .onRequest("session/request_permission", ({ params }) => decide(params))
    .onNotification("session/update", () => {})
    .connect(ndJsonStream(Writable.toWeb(outgoing), incoming));
  const initialized = await connection.agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  return {
    ...started,
    wire,
    initialized,
    agent: connection.agent,
    async session(cwd = temporaryFolder()): Promise<string> {
      return (await connection.agent.request("session/new", { cwd, mcpServers: [] })).sessionId;
    },
    prompt: (sessionId: string, text: string) =>
      connection.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] }),
  };
}

/** The acpx command line at the other end. Of its own output in JSON, each line is what went one way or the other. */
export function runAcpx(cwd: string, flags: string[], question: string, env: Record<string, string> = {}) {
  const command = `"${process.execPath}" "${agent}"`;
  const home = { HOME: temporaryFolder(), NO_UPDATE_NOTIFIER: "1" };
  const started = running(process.execPath, [acpx, ...flags, "--agent", command, "exec", question], cwd, { ...home, ...env });
  started.child.stdin.end();
  return started;
}
