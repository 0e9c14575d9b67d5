import { getEventListeners } from "node:events";
import { Agent } from "turnloop";
import { type AcpAgentConnection, createAcpAgent } from "turnloop/acp";
import { scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { aborted, deferred, makeTool, model } from "../helpers.js";
import { type AcpClient, type ClientOptions, connect, finishClients } from "./acp-helpers.js";

finishClients();

const never = (): Promise<never> => new Promise(() => {});
const hang = makeTool("hang", () => never());
const obey = makeTool("obey", async (_id, _args, signal) => {
  await aborted(signal);
  throw signal.reason;
});
const tools = [hang, obey, makeTool("echo", () => "echoed")];
const quick = (more: object = {}): Partial<ClientOptions> => ({ agent: () => ({ tools, abortGraceMs: 1, ...more }) });
const pause = (): Promise<void> => new Promise(setImmediate);

// SPEC 10.1, 14.3
describe("the end of a connection", () => {
  /** Listeners that the served agents have from `subscribe`. */
  let subscribers = 0;
  const counted = (agent: Agent): Agent => {
    const subscribe = agent.subscribe.bind(agent);
    agent.subscribe = (listener) => {
      subscribers++;
      const stop = subscribe(listener);
      return () => {
        subscribers--;
        stop();
      };
    };
    return agent;
  };
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
  beforeEach(() => {
    unhandled.length = 0;
    process.on("unhandledRejection", onUnhandled);
  });
  afterEach(async () => {
    await pause();
    process.off("unhandledRejection", onUnhandled);
    expect(unhandled).toEqual([]);
  });

  it.each<[string, (client: AcpClient) => void]>([
    ["the client leaves", (client) => client.leave()],
    ["the agent closes", (client) => client.served.close()],
    ["the agent closes twice", (client) => [client.served, client.served].forEach((served) => void served.close())],
  ])("stops what runs and lets go of the agents when %s", async (_, close) => {
    const client = await connect([], {
      thinking: true,
      createAgent: () =>
        counted(new Agent({ model, streamFn: scriptedModel([[{ toolCall: "obey", id: "a" }], "never"]), tools, abortGraceMs: 1 })),
    });
    const ids = [await client.session(), await client.session(), await client.session()];
    const prompts = ids.slice(1).map((id) => client.prompt(id));
    const outcomes = Promise.allSettled(prompts);
    const ended = client.agents
      .slice(1)
      .map((agent) => new Promise<string>((resolve) => agent.once("agent_end", ({ outcome }) => resolve(outcome))));
    await Promise.all(
      ids
        .slice(1)
        .map((id) =>
          client.until((entry) => entry.type === "update" && entry.sessionId === id && /^a in_p/.test(client.outline(id).at(-1) ?? "")),
        ),
    );
    const before = subscribers;
    close(client);
    await client.served.closed;
    expect([before, subscribers]).toEqual([3, 0]);
    expect(await Promise.all(ended)).toEqual(["aborted", "aborted"]);
    expect(client.agents.map(({ isRunning }) => isRunning)).toEqual([false, false, false]);
    expect(client.agents.map((agent) => agent.listenerCount("thinking"))).toEqual([0, 0, 0]);
    expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });

  it("hears nothing more of an agent that the host goes on with", async () => {
    const client = await connect(["one", "two"], { thinking: true });
    const sent = vi.fn();
    await client.prompt(await client.session());
    client.leave();
    await client.served.closed;
    client.agents[0]?.on("agent_end", sent);
    expect((await client.agents[0]?.prompt("go on"))?.outcome).toBe("completed");
    expect(sent).toHaveBeenCalledOnce();
    expect(client.outline().filter((line) => line.includes("two"))).toEqual([]);
  });

  it("does not wait for a run that the host has begun", async () => {
    const client = await connect([[{ toolCall: "obey" }]], quick());
    await client.session();
    const run = client.agents[0]?.prompt("by the host");
    client.leave();
    await client.served.closed;
    expect(client.agents[0]?.isRunning).toBe(true);
    client.agents[0]?.abort();
    await run;
  });

  it.each<[string, (connection: AcpAgentConnection, toAgent: TransformStream) => void]>([
    ["closed at once", (connection) => connection.close()],
    ["whose client is gone at once", (_, toAgent) => void toAgent.writable.close()],
    ["whose client fails at once", (_, toAgent) => void toAgent.writable.abort(new Error("broken pipe"))],
  ])("resolves closed for one %s", async (_, end) => {
    const toAgent = new TransformStream();
    const connection = createAcpAgent({ createAgent: never }).connect({ readable: toAgent.readable, writable: new WritableStream() });
    end(connection, toAgent);
    expect(await connection.closed).toBeUndefined();
  });

  it("does not wait for an agent that is still being made, and does not start it", async () => {
    const making = deferred<Agent>();
    const made = vi.fn(() => making.promise);
    const client = await connect([], { createAgent: made });
    const session = client.session();
    session.catch(() => {});
    await vi.waitUntil(() => made.mock.calls.length > 0);
    client.leave();
    await client.served.closed;
    const agent = new Agent({ model, streamFn: scriptedModel([]) });
    making.resolve(agent);
    await pause();
    expect(agent.listenerCount("thinking")).toBe(0);
  });

  it("survives a client whose pipe breaks in the middle of a prompt", async () => {
    let isBroken = false;
    const gate = (): Promise<void> | undefined => (isBroken ? Promise.reject(new Error("EPIPE")) : undefined);
    const client = await connect(["Hello", "again"], { gate, thinking: true });
    const id = await client.session();
    isBroken = true;
    await expect(client.prompt(id)).rejects.toThrow();
    await client.served.closed;
    expect(client.agents[0]).toMatchObject({ isRunning: false, lastError: { message: expect.stringMatching(/cancelled by the client/) } });
    expect(client.outline()).toEqual([]);
  });

  it("leaves no listener on the client's signals, however many prompts there were", async () => {
    const client = await connect(Array.from({ length: 30 }, () => "ok"));
    const id = await client.session();
    await client.prompt(id);
    const before = getEventListeners(client.connection.signal, "abort").length;
    for (let i = 0; i < 20; i++) await client.prompt(id);
    expect(getEventListeners(client.connection.signal, "abort").length).toBe(before);
    expect(client.agents[0]?.listenerCount("thinking")).toBe(1);
  });
});
