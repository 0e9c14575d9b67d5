import { InMemoryTaskMessageQueue, InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { type AgentEvent, runAgentLoop, ToolRegistry, userMessage } from "turnloop";
import { mcpTools, syncMcpTools } from "turnloop/mcp";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { deferred, model, resultsOf, run, textOf } from "../helpers.js";
import { callOnce, connect, listed, mcpServer, RawMcpServer } from "./mcp-helpers.js";

async function namesOf(originals: string[], prefix?: string): Promise<string[]> {
  const { client } = await connect(new RawMcpServer({ list: () => ({ tools: originals.map((name) => listed(name)) }) }));
  return (await mcpTools(client, { prefix })).map(({ name }) => name);
}

// SPEC 12.3
describe("the list of an MCP server's tools", () => {
  it.each<[string, Record<string, object>, string[], (string | undefined)[]]>([
    ["one page", { "": { tools: [listed("a")] } }, ["a"], [undefined]],
    ["no tools", { "": { tools: [] } }, [], [undefined]],
    [
      "all pages",
      { "": { tools: [listed("a")], nextCursor: "2" }, 2: { tools: [], nextCursor: "3" }, 3: { tools: [listed("b")] } },
      ["a", "b"],
      [undefined, "2", "3"],
    ],
    [
      "a cursor that comes again",
      { "": { tools: [listed("a")], nextCursor: "2" }, 2: { tools: [listed("b")], nextCursor: "2" } },
      ["a", "b"],
      [undefined, "2"],
    ],
    [
      "cursors in a ring",
      {
        "": { tools: [listed("a")], nextCursor: "2" },
        2: { tools: [listed("b")], nextCursor: "3" },
        3: { tools: [listed("c")], nextCursor: "2" },
      },
      ["a", "b", "c"],
      [undefined, "2", "3"],
    ],
    ["an empty cursor", { "": { tools: [listed("a")], nextCursor: "" } }, ["a"], [undefined]],
    [
      "a server that ignores the cursor and makes up new ones",
      { "": { tools: [listed("a")], nextCursor: "2" }, 2: { tools: [listed("a")], nextCursor: "3" } },
      ["a"],
      [undefined, "2"],
    ],
    ["a tool listed twice", { "": { tools: [listed("a"), listed("a")] } }, ["a"], [undefined]],
  ])("ends with %s", async (_name, pages, names, cursors) => {
    const asked: (string | undefined)[] = [];
    const list = (cursor: string | undefined): unknown => {
      asked.push(cursor);
      return pages[cursor ?? ""];
    };
    const { client } = await connect(new RawMcpServer({ list }));
    expect((await mcpTools(client)).map(({ name }) => name)).toEqual(names);
    expect(asked).toEqual(cursors);
  });

  it("is refused when it has no end", async () => {
    let pages = 0;
    const list = () => ({ tools: [listed(`t${++pages}`)], nextCursor: `c${pages}` });
    const { client } = await connect(new RawMcpServer({ list }));
    await expect(mcpTools(client)).rejects.toThrow("still had more tools after 1000 pages");
    expect(pages).toBe(1000);
  });

  it("is refused for what is no client, naming what came", async () => {
    for (const [given, came] of [
      [undefined, "undefined"],
      ["npx my-server", '"npx my-server"'],
      [{ listTools: () => {} }, "listTools"],
    ] as const) {
      const refusal = { code: "invalid_argument", message: expect.stringContaining(came) };
      await expect(mcpTools(given as never)).rejects.toMatchObject(refusal);
      await expect(syncMcpTools(given as never, new ToolRegistry())).rejects.toMatchObject(refusal);
    }
    const { client } = await connect(new RawMcpServer({ list: () => ({ tools: [] }) }));
    for (const registry of [undefined, [], new Map()]) {
      await expect(syncMcpTools(client, registry as never)).rejects.toMatchObject({ code: "invalid_argument" });
    }
    expect(await mcpTools(client, null as never)).toEqual([]);
  });

  it("is empty for a server that has none, and a rejection for one that fails", async () => {
    const { client } = await connect(new RawMcpServer({}));
    expect(await mcpTools(client)).toEqual([]);
    const failing = () => {
      throw new Error("disk full");
    };
    const { client: broken } = await connect(new RawMcpServer({ list: failing }));
    await expect(mcpTools(broken)).rejects.toThrow("disk full");
    const half = (cursor: string | undefined) => {
      if (cursor) throw Object.assign(new Error("no more"), { code: -32601 });
      return { tools: [listed("a")], nextCursor: "2" };
    };
    const { client: cut } = await connect(new RawMcpServer({ list: half }));
    await expect(mcpTools(cut)).rejects.toThrow("no more");
  });

  it("says what the server says of a tool", async () => {
    const inputSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
    const tools = [
      listed("read", { title: "Read a file", description: "Reads", inputSchema, annotations: { title: "No", readOnlyHint: true } }),
      listed("write", { annotations: { title: "Write a file", readOnlyHint: false, destructiveHint: true } }),
      { name: "bare", inputSchema: { type: "object" } },
    ];
    const { client } = await connect(new RawMcpServer({ list: () => ({ tools }) }));
    const parameters = { type: "object", properties: {} };
    expect(await mcpTools(client, { prefix: "fs_" })).toEqual([
      {
        name: "fs_read",
        label: "Read a file",
        description: "Reads",
        parameters: inputSchema,
        kind: "read",
        execute: expect.any(Function),
      },
      { name: "fs_write", label: "Write a file", description: "Write a file", parameters, execute: expect.any(Function) },
      { name: "fs_bare", description: "", parameters, execute: expect.any(Function) },
    ]);
  });
});

// SPEC 5.7, 12.3
describe("a schema whose patterns are not those of JavaScript", () => {
  const call = ({ arguments: args }: { arguments: object }) => ({ content: [{ type: "text", text: JSON.stringify(args) }] });
  const toolOf = async (inputSchema: object) => {
    const { client } = await connect(new RawMcpServer({ list: () => ({ tools: [listed("t", { inputSchema })] }), call }));
    return mcpTools(client);
  };

  it.each([
    ["an escape that the u flag refuses", "^[a-z]+\\-[0-9]+$"],
    ["a class that the u flag refuses", "^[\\w-.]+$"],
    ["Python's", "(?P<x>a)\\Z"],
  ])("leaves %s to the server", async (_, pattern) => {
    const name = { type: "string", pattern, minLength: 2 };
    const inputSchema = {
      ...{ type: "object", properties: { name, pattern: { $ref: "#/$defs/n" }, all: { items: { anyOf: [name] } } } },
      ...{ $defs: { n: name }, patternProperties: { [pattern]: { type: "number" }, "^x": name }, additionalProperties: false },
      default: { pattern },
    };
    const [tool] = await toolOf(inputSchema);
    const free = { type: "string", minLength: 2 };
    expect(tool?.parameters).toEqual({
      ...{ type: "object", properties: { name: free, pattern: { $ref: "#/$defs/n" }, all: { items: { anyOf: [free] } } } },
      ...{ $defs: { n: free }, patternProperties: { "^x": free } },
      default: { pattern },
    });
    const args = { name: "ab-1", pattern: "cd", all: ["ef"], x: "gh", other: 1 };
    expect(JSON.parse(textOf(await callOnce([tool as never], args)))).toEqual(args);
    expect(textOf(await callOnce([tool as never], { name: "a" }))).toMatch(/^Invalid arguments/);
  });

  it("is the server's own object where all can be read", async () => {
    const [tool] = await toolOf({ type: "object", properties: { a: { type: "string", pattern: "^a\\.b$" } } });
    expect(textOf(await callOnce([tool as never], { a: "a-b" }))).toContain("does not match pattern");
  });
});

// SPEC 12.3
describe("names", () => {
  const long = "x".repeat(70);
  it.each<[string, string[], string | undefined, string[]]>([
    ["stay", ["a-b_C9"], undefined, ["a-b_C9"]],
    ["lose what providers refuse", ["files/read.me", "über 🙂"], undefined, ["files_read_me", "_ber__"]],
    ["get the prefix as it is", ["read"], "my server.", ["my_server_read"]],
    ["get a number when they become equal", ["a.b", "a/b", "a b"], undefined, ["a_b", "a_b_2", "a_b_3"]],
    ["that are clean are not given away", ["a.b", "a_b", "a_b_2"], undefined, ["a_b_3", "a_b", "a_b_2"]],
    ["are never empty", ["", " "], undefined, ["tool", "_"]],
  ])("%s", async (_name, originals, prefix, expected) => {
    expect(await namesOf(originals, prefix)).toEqual(expected);
  });

  it("of more than 64 characters are cut, differ, and do not depend on what else is listed", async () => {
    const [one, other] = await namesOf([`${long}1`, `${long}2`]);
    expect(one).toMatch(/^x{55}_[0-9a-f]{8}$/);
    expect(other).toMatch(/^x{55}_[0-9a-f]{8}$/);
    expect(one).not.toBe(other);
    expect(await namesOf([`${long}2`])).toEqual([other]);
    expect(await namesOf(["x".repeat(64)])).toEqual(["x".repeat(64)]);
    const dotted = await namesOf([`${"x".repeat(63)}.`, `${"x".repeat(63)}/`]);
    expect(dotted).toEqual([`${"x".repeat(63)}_`, `${"x".repeat(62)}_2`]);
  });

  it("are the server's own in the call", async () => {
    const call = ({ name, arguments: args }: { name: string; arguments: object }) => ({
      content: [{ type: "text", text: JSON.stringify([name, args]) }],
    });
    const { client } = await connect(new RawMcpServer({ list: () => ({ tools: [listed("files/read.me")] }), call }));
    const result = await callOnce(await mcpTools(client, { prefix: "x_" }), { path: "a" });
    expect(textOf(result)).toBe('["files/read.me",{"path":"a"}]');
  });

  it("of two servers that are equal are refused by a run, a prefix helps", async () => {
    const { client: one } = await connect(new RawMcpServer({ list: () => ({ tools: [listed("read")] }) }));
    const { client: two } = await connect(new RawMcpServer({ list: () => ({ tools: [listed("read")] }) }));
    const start = (tools: Awaited<ReturnType<typeof mcpTools>>) =>
      runAgentLoop([userMessage("go")], { systemPrompt: "", messages: [], tools }, { model }, () => {}, undefined, scriptedModel(["done"]));
    await expect(start([...(await mcpTools(one)), ...(await mcpTools(two))])).rejects.toMatchObject({ code: "duplicate_tool" });
    await expect(start([...(await mcpTools(one)), ...(await mcpTools(two, { prefix: "two_" }))])).resolves.toHaveLength(2);
  });
});

// SPEC 12.3
describe("a call of an MCP server's tool", () => {
  it("is checked against the server's schema before it is made", async () => {
    // SPEC 5.7
    const inputSchema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { pair: { type: "array", prefixItems: [{ type: "string" }, { $ref: "#/$defs/count" }], items: false } },
      required: ["pair"],
      $defs: { count: { type: "integer", minimum: 1 } },
    };
    const seen: unknown[] = [];
    const call = ({ arguments: args }: { arguments: object }) => {
      seen.push(args);
      return { content: [{ type: "text", text: "ok" }] };
    };
    const { client } = await connect(new RawMcpServer({ list: () => ({ tools: [listed("set", { inputSchema })] }), call }));
    const tools = await mcpTools(client);
    const record = await run(
      [[{ toolCall: "set", args: { pair: ["a", 0] } }], [{ toolCall: "set", args: { pair: ["a", "2"] } }], [{ toolCall: "set" }], "done"],
      { tools },
    );
    expect(record.requests[0]?.tools).toEqual([{ name: "set", description: "", parameters: inputSchema }]);
    expect(seen).toEqual([{ pair: ["a", 2] }]);
    const [bad, good, missing] = resultsOf(record);
    expect([bad?.isError, good?.isError, missing?.isError]).toEqual([true, false, true]);
    expect(textOf(bad)).toContain("pair[1]");
    expect(textOf(missing)).toContain("pair");
  });

  it("shows progress as it comes", async () => {
    const server = mcpServer();
    server.registerTool("copy", { inputSchema: { files: z.number() } }, async ({ files }, { _meta, sendNotification, sendRequest }) => {
      const progressToken = _meta?.progressToken as number;
      const steps = [{ progress: 1, total: files, message: "one copied" }, { progress: 2, total: files }, { progress: 3 }];
      for (const step of steps) await sendNotification({ method: "notifications/progress", params: { progressToken, ...step } });
      await sendRequest({ method: "ping" }, z.object({}));
      return { content: [{ type: "text", text: "copied" }] };
    });
    const { client, errors } = await connect(server);
    const record = await run([[{ toolCall: "copy", args: { files: 3 }, id: "c1" }], "done"], { tools: await mcpTools(client) });
    const updates = record.events.filter((event): event is AgentEvent & { type: "tool_execution_update" } =>
      event.type.endsWith("execution_update"),
    );
    expect(updates.map(({ partialResult }) => partialResult)).toEqual([
      { content: [{ type: "text", text: "one copied" }], details: { progress: 1, total: 3, message: "one copied" } },
      { content: [{ type: "text", text: "2/3" }], details: { progress: 2, total: 3 } },
      { content: [{ type: "text", text: "3" }], details: { progress: 3 } },
    ]);
    expect(textOf(resultsOf(record)[0])).toBe("copied");
    expect(errors).toEqual([]);
  });

  /** A server whose tool waits for ever, and what became of it. */
  function waiting() {
    const started = deferred();
    const cancelled = deferred<unknown>();
    const server = mcpServer();
    server.registerTool("wait", {}, ({ signal }) => {
      signal.addEventListener("abort", () => cancelled.resolve(signal.reason));
      started.resolve();
      return new Promise<never>(() => {});
    });
    return { server, started: started.promise, cancelled: cancelled.promise };
  }

  it("is cancelled at the server by an abort of the run", async () => {
    // SPEC 7.4
    const { server, started, cancelled } = waiting();
    const { client } = await connect(server);
    const controller = new AbortController();
    void started.then(() => controller.abort(new Error("enough")));
    const record = await run([[{ toolCall: "wait" }]], { tools: await mcpTools(client), signal: controller.signal });
    expect(await cancelled).toBe("Error: enough");
    expect(record.outcome).toBe("aborted");
    expect(textOf(resultsOf(record)[0])).toBe('Tool "wait" was aborted (enough) and may have partly run: aborted: enough');
  });

  it("is cancelled at the server by its time limit, and the run goes on", async () => {
    // SPEC 5.13
    const { server, cancelled } = waiting();
    const { client } = await connect(server);
    const tools = (await mcpTools(client)).map((tool) => ({ ...tool, timeoutMs: 5 }));
    const record = await run([[{ toolCall: "wait" }], "done"], { tools });
    expect(await cancelled).toBe("Error: The tool did not finish within its limit of 5 ms.");
    expect(textOf(resultsOf(record)[0])).toContain("limit of 5 ms");
    expect(record.outcome).toBe("completed");
  });

  it("has no limit of the client's, and leaves nothing on the run's signal", async () => {
    // SPEC 7.1
    const asked: { timeout?: number; signal?: AbortSignal }[] = [];
    const client = {
      listTools: async () => ({ tools: [{ name: "look", inputSchema: { type: "object" } }] }),
      callTool: async (_params: unknown, _schema: unknown, options: { signal: AbortSignal }) => {
        asked.push(options);
        return { content: [{ type: "text", text: "seen" }] };
      },
    };
    const controller = new AbortController();
    const [tool] = await mcpTools(client);
    await tool?.execute("c1", {}, controller.signal, () => {}, { turn: 1, index: 0 });
    controller.abort();
    expect(asked).toEqual([{ timeout: 2 ** 31 - 1, signal: expect.any(AbortSignal), onprogress: expect.any(Function) }]);
    expect(asked[0]?.signal?.aborted).toBe(false);
  });

  it("that fails at the server, or is refused by it, is an error result", async () => {
    const server = mcpServer();
    server.registerTool("bad", {}, () => {
      throw new Error("no disk");
    });
    server.registerTool("loose", { outputSchema: { n: z.number() } }, () => ({ content: [], structuredContent: { n: 1 } }));
    const { client } = await connect(server);
    const record = await run([[{ toolCall: "bad" }, { toolCall: "loose" }], "done"], { tools: await mcpTools(client) });
    expect(resultsOf(record).map((result) => [result.isError, textOf(result)])).toEqual([
      [true, "no disk"],
      [false, '{"n":1}'],
    ]);
    const refusing = () => {
      throw Object.assign(new Error("Unknown tool"), { code: -32602 });
    };
    const { client: other } = await connect(new RawMcpServer({ list: () => ({ tools: [listed("look")] }), call: refusing }));
    expect(await callOnce(await mcpTools(other))).toMatchObject({
      isError: true,
      content: [{ type: "text", text: "MCP error -32602: Unknown tool" }],
    });
  });
});

// SPEC 12.3
describe("a tool that the server runs as a task only", () => {
  async function taskServer(then: (store: InMemoryTaskStore, taskId: string) => Promise<void>) {
    const taskStore = new InMemoryTaskStore();
    const capabilities = { tasks: { requests: { tools: { call: {} } }, cancel: {} } };
    const server = new McpServer(
      { name: "tasks", version: "1" },
      { taskStore, taskMessageQueue: new InMemoryTaskMessageQueue(), capabilities },
    );
    server.experimental.tasks.registerToolTask(
      "build",
      { execution: { taskSupport: "required" } },
      {
        async createTask({ taskStore: store }) {
          const task = await store.createTask({ ttl: 60_000, pollInterval: 1 });
          await then(taskStore, task.taskId);
          return { task };
        },
        getTask: async ({ taskId, taskStore: store }) => (await store.getTask(taskId)) as never,
        getTaskResult: async ({ taskId, taskStore: store }) => (await store.getTaskResult(taskId)) as never,
      },
    );
    return { taskStore, ...(await connect(server)) };
  }

  it.each<["completed" | "failed", boolean]>([
    ["completed", false],
    ["failed", true],
  ])("is called as one, and %s gives its result", async (status, isError) => {
    const { client, taskStore } = await taskServer(async (store, id) => {
      await store.storeTaskResult(id, status, { content: [{ type: "text", text: "12 files" }], isError });
    });
    expect(await callOnce(await mcpTools(client))).toMatchObject({ content: [{ type: "text", text: "12 files" }], isError });
    taskStore.cleanup();
  });

  it("shows its status, and an abort cancels the task without waiting for the next poll", async () => {
    const { client, taskStore } = await taskServer((store, id) => store.updateTaskStatus(id, "working", "compiling"));
    const controller = new AbortController();
    const shown: unknown[] = [];
    const record = await run([[{ toolCall: "build" }]], {
      tools: await mcpTools(client),
      signal: controller.signal,
      onEvent(event) {
        if (event.type !== "tool_execution_update") return;
        shown.push(event.partialResult.content);
        controller.abort("stop");
      },
    });
    expect(shown).toEqual([[{ type: "text", text: "compiling" }]]);
    expect(textOf(resultsOf(record)[0])).toBe('Tool "build" was aborted (stop) and may have partly run: aborted: stop');
    await client.ping(); // the cancellation was sent before it
    expect(taskStore.getAllTasks()).toMatchObject([{ status: "cancelled" }]);
    taskStore.cleanup();
  });
});
