import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { Agent, ToolRegistry } from "turnloop";
import { mcpTools, syncMcpTools } from "turnloop/mcp";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { deferred, makeTool, model, textOf } from "../helpers.js";
import { connect, listed, mcpServer, RawMcpServer } from "./mcp-helpers.js";

const METHOD = "notifications/tools/list_changed";

/** A server whose list is `tools`, a registry, and a way to wait until an announcement has been dealt with. */
async function setUp(tools: object[], options?: Parameters<typeof connect>[1]) {
  const world = { tools, lists: 0, before: async () => {} };
  const server = new RawMcpServer({
    async list() {
      world.lists++;
      await world.before();
      return { tools: world.tools };
    },
    call: ({ name }) => ({ content: [{ type: "text", text: `${name} called` }] }),
  });
  const connected = await connect(server, options);
  const registry = new ToolRegistry();
  const change = async (next: object[]): Promise<void> => {
    world.tools = next;
    server.announce();
    await settled(connected.client);
  };
  return { world, server, registry, change, ...connected };
}

/** Two lists read one after the other take fewer round trips than these. */
async function settled(client: Client): Promise<void> {
  for (let i = 0; i < 5; i++) await client.ping();
}

const names = (registry: ToolRegistry): string[] => [...registry].map(({ name }) => name);

// SPEC 12.3
describe("a registry in step with an MCP server", () => {
  it("gets what is there, what comes and what changes, and loses what goes", async () => {
    const { client, registry, change } = await setUp([listed("a"), listed("b"), listed("c")]);
    registry.register(makeTool("mine", () => ""));
    await syncMcpTools(client, registry, { prefix: "x." });
    expect(names(registry)).toEqual(["mine", "x_a", "x_b", "x_c"]);
    const a = registry.get("x_a");
    await change([listed("d"), listed("a"), listed("b", { description: "new" })]);
    expect(names(registry)).toEqual(["mine", "x_a", "x_b", "x_d"]);
    expect(registry.get("x_a")).toBe(a);
    expect(registry.get("x_b")?.description).toBe("new");
  });

  it("is followed by a run, from the next turn on", async () => {
    // SPEC 8.2
    const server = mcpServer();
    server.registerTool("grow", {}, () => {
      server.registerTool("grown", {}, () => ({ content: [{ type: "text", text: "here I am" }] }));
      return { content: [{ type: "text", text: "growing" }] };
    });
    const { client } = await connect(server);
    const streamFn = scriptedModel([[{ toolCall: "grow" }], [{ toolCall: "grown" }], "done"]);
    const agent = new Agent({ model, streamFn, shouldStopAfterTurn: () => settled(client).then(() => false) });
    const stop = await syncMcpTools(client, agent.tools);
    const { messages } = await agent.prompt("go");
    expect(streamFn.requests.map(({ tools }) => tools?.map(({ name }) => name))).toEqual([["grow"], ["grow", "grown"], ["grow", "grown"]]);
    expect(textOf(messages[4])).toBe("here I am");
    stop();
  });

  it("keeps every tool it did not add: a name that is taken gets a number and keeps it", async () => {
    const { client, registry, change } = await setUp([listed("a"), listed("b")]);
    const mine = [makeTool("a", () => ""), makeTool("a_2", () => "")];
    for (const tool of mine) registry.register(tool);
    await syncMcpTools(client, registry);
    expect(names(registry)).toEqual(["a", "a_2", "a_3", "b"]);
    registry.unregister("a_2");
    await change([listed("a", { description: "changed" })]);
    expect(names(registry)).toEqual(["a", "a_3"]);
    expect(registry.get("a")).toBe(mine[0]);
    expect(registry.get("a_3")?.description).toBe("changed");
    await change([]);
    expect([...registry]).toEqual([mine[0]]);
  });

  it("leaves to the host what the host has replaced or removed", async () => {
    const { client, registry, change } = await setUp([listed("a"), listed("b"), listed("c")]);
    await syncMcpTools(client, registry);
    const wrapped = { ...(registry.get("a") as ReturnType<typeof makeTool>), timeoutMs: 1000 };
    registry.replace(wrapped);
    registry.unregister("b");
    await change([listed("a", { description: "new" }), listed("b"), listed("c")]);
    expect(names(registry)).toEqual(["a", "c"]);
    await change([listed("c")]);
    expect(registry.get("a")).toBe(wrapped);
  });

  it("does not take over tools of mcpTools, nor those of another server", async () => {
    const { client, change } = await setUp([listed("a")]);
    const other = await setUp([listed("a")]);
    const [byHand] = await mcpTools(client);
    const registry = new ToolRegistry(byHand && [byHand]);
    await syncMcpTools(client, registry);
    await syncMcpTools(other.client, registry);
    expect(names(registry)).toEqual(["a", "a_2", "a_3"]);
    await change([]);
    expect(names(registry)).toEqual(["a", "a_3"]);
    expect(registry.get("a")).toBe(byHand);
  });

  it("has its tools left in it by stop, which may be called again", async () => {
    const { client, registry, change, world } = await setUp([listed("a")]);
    const stop = await syncMcpTools(client, registry);
    stop();
    stop();
    await change([listed("b")]);
    expect(names(registry)).toEqual(["a"]);
    expect(world.lists).toBe(1);
  });

  it("is not touched by a list that arrives after stop", async () => {
    const { client, registry, server, world } = await setUp([listed("a")]);
    const stop = await syncMcpTools(client, registry);
    const asked = deferred();
    const gate = deferred();
    world.before = () => {
      asked.resolve();
      return gate.promise;
    };
    world.tools = [];
    server.announce();
    await asked.promise;
    stop();
    gate.resolve();
    await settled(client);
    expect(names(registry)).toEqual(["a"]);
  });

  it("finds its tools again when the same client is synced again", async () => {
    const { client, registry, change } = await setUp([listed("a"), listed("b")]);
    const stop = await syncMcpTools(client, registry);
    stop();
    const a = registry.get("a");
    await change([listed("a"), listed("c")]);
    await syncMcpTools(client, registry);
    expect(names(registry)).toEqual(["a", "c"]);
    expect(registry.get("a")).toBe(a);
  });

  it("reads one list at a time, and once more for any number of changes meanwhile", async () => {
    const { client, registry, server, world } = await setUp([listed("a")]);
    let open = 0;
    let most = 0;
    const asked = deferred();
    const gate = deferred();
    world.before = async () => {
      most = Math.max(most, ++open);
      asked.resolve();
      await gate.promise;
      open--;
    };
    const synced = syncMcpTools(client, registry);
    await asked.promise;
    world.tools = [listed("b")];
    for (let i = 0; i < 20; i++) server.announce();
    await client.ping();
    gate.resolve();
    await synced;
    await settled(client);
    expect([names(registry), world.lists, most]).toEqual([["b"], 2, 1]);
  });

  it("keeps its tools when a list cannot be read, and follows the next change", async () => {
    const { client, registry, change, world, errors } = await setUp([listed("a")]);
    await syncMcpTools(client, registry);
    world.before = () => Promise.reject(new Error("not now"));
    await change([listed("b")]);
    expect(names(registry)).toEqual(["a"]);
    expect(errors).toEqual([expect.stringContaining("not now")]);
    world.before = async () => {};
    await change([listed("b")]);
    expect(names(registry)).toEqual(["b"]);
  });

  it("gets nothing, and the client is left as it was, when the first list cannot be read", async () => {
    const { client, registry, change, world } = await setUp([listed("a")]);
    world.before = () => Promise.reject(new Error("not now"));
    await expect(syncMcpTools(client, registry)).rejects.toThrow("not now");
    world.before = async () => {};
    await change([listed("b")]);
    expect([registry.size, world.lists]).toEqual([0, 1]);
  });

  it("is filled once from a client that cannot say what changes", async () => {
    const registry = new ToolRegistry();
    const client = { listTools: async () => ({ tools: [{ name: "a", inputSchema: {} }] }), callTool: async () => ({}) };
    const stop = await syncMcpTools(client, registry);
    stop();
    expect(names(registry)).toEqual(["a"]);
  });
});

// SPEC 12.3
describe("a client that is synced again into its registry", () => {
  it("has each tool once while both follow, and when one has stopped", async () => {
    const { client, registry, change } = await setUp([listed("a")]);
    const first = await syncMcpTools(client, registry);
    const second = await syncMcpTools(client, registry);
    expect(names(registry)).toEqual(["a"]);
    await change([listed("a", { description: "new" }), listed("b")]);
    expect([...registry].map(({ name, description }) => [name, description])).toEqual([
      ["a", "new"],
      ["b", ""],
    ]);
    first();
    await change([listed("a", { description: "newer" }), listed("c")]);
    expect([...registry].map(({ name, description }) => [name, description])).toEqual([
      ["a", "newer"],
      ["c", ""],
    ]);
    second();
  });
});

// SPEC 12.3
describe("what the host itself hears of changes", () => {
  it("goes on when it set a handler before, and that one is put back", async () => {
    const { client, registry, change, world } = await setUp([listed("a")]);
    const heard: string[] = [];
    client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => void heard.push(method));
    const stop = await syncMcpTools(client, registry);
    await change([listed("b")]);
    expect([heard, names(registry)]).toEqual([[METHOD], ["b"]]);
    stop();
    await change([listed("c")]);
    expect([heard.length, names(registry), world.lists]).toEqual([2, ["b"], 2]);
  });

  it("goes on by the client's listChanged option", async () => {
    const heard: unknown[] = [];
    const onChanged = (_error: unknown, tools: { name: string }[] | null): void => void heard.push(tools?.map(({ name }) => name));
    const { client, registry, change } = await setUp([listed("a")], { listChanged: { tools: { onChanged, debounceMs: 0 } } });
    const stop = await syncMcpTools(client, registry);
    await change([listed("b")]);
    stop();
    await change([listed("c")]);
    expect([heard, names(registry)]).toEqual([[["b"], ["c"]], ["b"]]);
  });

  it("goes on by its fallback handler", async () => {
    const { client, registry, change } = await setUp([listed("a")]);
    const heard: string[] = [];
    client.fallbackNotificationHandler = async ({ method }) => void heard.push(method);
    const stop = await syncMcpTools(client, registry);
    await change([listed("b")]);
    stop();
    await change([]);
    expect([heard, names(registry)]).toEqual([[METHOD, METHOD], ["b"]]);
  });

  it("does not stop the tools from following when its handler throws", async () => {
    const { client, registry, change, errors } = await setUp([listed("a")]);
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      throw new Error("host's own");
    });
    await syncMcpTools(client, registry);
    await change([listed("b")]);
    expect(names(registry)).toEqual(["b"]);
    expect(errors).toEqual([expect.stringContaining("host's own")]);
  });

  it("stays with a handler that it sets later, which stop does not take away", async () => {
    const { client, registry, change } = await setUp([listed("a")]);
    const heard: string[] = [];
    const stop = await syncMcpTools(client, registry);
    client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => void heard.push(method));
    stop();
    await change([listed("b")]);
    expect([heard, names(registry)]).toEqual([[METHOD], ["a"]]);
  });

  it.each([
    ["first in, first out", [0, 1, 2]],
    ["last in, first out", [2, 1, 0]],
    ["the middle one first", [1, 0, 2]],
  ])("is as before when several registries follow one client and stop %s", async (_name, order) => {
    const { client, change } = await setUp([listed("a")]);
    const heard: string[] = [];
    client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => void heard.push(method));
    const handlers = (client as unknown as { _notificationHandlers: Map<string, unknown> })._notificationHandlers;
    const own = handlers.get(METHOD);
    const registries = [new ToolRegistry(), new ToolRegistry(), new ToolRegistry()];
    const stops: (() => void)[] = [];
    for (const registry of registries) stops.push(await syncMcpTools(client, registry));
    const following = new Set(registries.keys());
    let n = 0;
    for (const index of order) {
      await change([listed(`t${++n}`)]);
      expect(heard).toHaveLength(n);
      for (const i of following) expect(names(registries[i] as ToolRegistry)).toEqual([`t${n}`]);
      stops[index]?.();
      following.delete(index);
    }
    expect(handlers.get(METHOD)).toBe(own);
  });
});
