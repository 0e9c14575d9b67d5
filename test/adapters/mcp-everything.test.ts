import { createRequire } from "node:module";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { type AgentTool, ToolRegistry } from "turnloop";
import { mcpTools, syncMcpTools } from "turnloop/mcp";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { resultsOf, run, textOf } from "../helpers.js";

const require = createRequire(import.meta.url);

async function start(capabilities: object = {}): Promise<Client> {
  const client = new Client({ name: "host", version: "1" }, { capabilities });
  const server = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [server, "stdio"], stderr: "ignore" }));
  return client;
}

// SPEC 12.3
describe("the reference server of MCP, which was not written here", () => {
  let client: Client;
  let tools: AgentTool[];

  beforeAll(async () => {
    client = await start();
    tools = await mcpTools(client);
  });
  afterAll(() => client.close());

  it("lists tools that a run accepts", async () => {
    const record = await run(["done"], { tools });
    expect(record.outcome).toBe("completed");
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "get-sum", "get-tiny-image", "simulate-research-query"]));
  });

  it("has every kind of its results kept", async () => {
    const gzip = { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" };
    const calls: [string, object][] = [
      ["echo", { message: "hi 🌊" }],
      ["get-sum", { a: "1", b: 2 }],
      ["get-sum", { a: 1 }],
      ["get-tiny-image", {}],
      ["get-structured-content", { location: "Chicago" }],
      ["get-resource-links", { count: 2 }],
      ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
      ["get-resource-reference", { resourceType: "Blob", resourceId: 0 }],
      ["gzip-file-as-resource", gzip],
    ];
    const record = await run([calls.map(([toolCall, args]) => ({ toolCall, args })), "done"], { tools });
    expect(record.outcome).toBe("completed");
    const results = resultsOf(record);
    expect(results.map(({ isError }) => isError)).toEqual([false, false, true, false, false, false, false, true, false]);
    const [echo, sum, refused, image, structured, links, resource, failed, archive] = results;
    expect([textOf(echo), textOf(sum)]).toEqual(["Echo: hi 🌊", "The sum of 1 and 2 is 3."]);
    expect(textOf(refused)).toMatch(/^Invalid arguments.*\n- b: required/);
    expect(image?.content[1]).toEqual({ type: "image", data: expect.stringMatching(/^iVBOR/), mimeType: "image/png" });
    expect(structured?.details.structuredContent).toEqual(JSON.parse(textOf(structured)));
    expect(links?.content.slice(1).map((block) => block.type === "text" && block.text.split("\n")[0])).toEqual([
      "[resource link demo://resource/dynamic/blob/1, Blob Resource 1, text/plain]",
      "[resource link demo://resource/dynamic/text/2, Text Resource 2, text/plain]",
    ]);
    expect(resource?.content[1]).toMatchObject({ text: expect.stringMatching(/^\[resource demo:\/\/.*, text\/plain\]\nResource 1:/) });
    expect(textOf(failed)).toContain("resourceId");
    expect(textOf(archive)).toMatch(/^\[resource demo:\/\/resource\/session\/a\.gz, application\/gzip, \d+ bytes, not shown\]$/);
  });

  it("shows the progress of a long operation, which an abort ends at once", async () => {
    // SPEC 7.4
    const controller = new AbortController();
    const shown: unknown[] = [];
    const record = await run([[{ toolCall: "trigger-long-running-operation", args: { duration: 600, steps: 6000 } }]], {
      tools,
      signal: controller.signal,
      onEvent(event) {
        if (event.type !== "tool_execution_update") return;
        shown.push(event.partialResult.details);
        controller.abort("enough");
      },
    });
    expect([record.outcome, shown]).toEqual(["aborted", [{ progress: 1, total: 6000 }]]);
    expect(textOf(resultsOf(record)[0])).toContain("aborted (enough)");
  });

  it("answers a tool that it runs as a task only, telling how far it is", { timeout: 30_000 }, async () => {
    const shown: string[] = [];
    const record = await run([[{ toolCall: "simulate-research-query", args: { topic: "tides" } }], "done"], {
      tools,
      onEvent(event) {
        if (event.type === "tool_execution_update") shown.push(event.partialResult.content[0].text);
      },
    });
    expect(textOf(resultsOf(record)[0])).toMatch(/^# Research Report: tides/);
    expect(shown).toEqual(expect.arrayContaining(["Gathering sources...", "Generating report..."]));
  });

  it("is followed by a registry when it announces tools for what its client can do", async () => {
    const able = await start({ sampling: {} });
    const registry = new ToolRegistry();
    const stop = await syncMcpTools(able, registry, { prefix: "every_" });
    await vi.waitFor(() => expect(registry.has("every_trigger-sampling-request")).toBe(true), { timeout: 5000 });
    expect(registry.has("every_echo")).toBe(true);
    stop();
    await able.close();
  });
});
