import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { type AgentTool, ToolRegistry } from "turnloop";
import { mcpTools, syncMcpTools } from "turnloop/mcp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resultsOf, run, textOf } from "../helpers.js";

// SPEC 12.3
describe("an MCP server in a process of its own", () => {
  const client = new Client({ name: "host", version: "1" });
  let tools: AgentTool[];

  beforeAll(async () => {
    const server = join(import.meta.dirname, "mcp-server.mjs");
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [server] }));
    tools = await mcpTools(client);
  });
  afterAll(() => client.close());

  it("is called by a run, arguments checked and results kept", async () => {
    // SPEC 5.7
    const record = await run(
      [[{ toolCall: "add", args: { a: "1.5", b: 2 } }, { toolCall: "add", args: { a: 1, b: 0.5 } }, { toolCall: "picture" }], "done"],
      { tools },
    );
    const [sum, refused, picture] = resultsOf(record);
    expect(textOf(sum)).toBe("3.5");
    expect(refused?.isError).toBe(true);
    expect(textOf(refused)).toMatch(/b\b.*integer/);
    expect(picture?.content).toEqual([
      { type: "text", text: "a dot" },
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "text", text: "[resource link file:///dot.svg, dot.svg]" },
    ]);
    expect(record.outcome).toBe("completed");
  });

  it("shows progress, and hears of an abort", async () => {
    // SPEC 7.4
    const controller = new AbortController();
    const shown: unknown[] = [];
    const record = await run([[{ toolCall: "count", args: { to: 9 } }]], {
      tools,
      signal: controller.signal,
      onEvent(event) {
        if (event.type !== "tool_execution_update") return;
        shown.push(event.partialResult);
        controller.abort("enough");
      },
    });
    expect(shown).toEqual([{ content: [{ type: "text", text: "one" }], details: { progress: 1, total: 9, message: "one" } }]);
    expect(record.outcome).toBe("aborted");
    expect(textOf(resultsOf(record)[0])).toContain("aborted (enough)");
    const after = await run([[{ toolCall: "what_was_cancelled" }], "done"], { tools });
    expect(textOf(resultsOf(after)[0])).toBe('["enough"]');
  });

  it("is followed by a registry, and its death during a call is an error result from which the run goes on", async () => {
    const registry = new ToolRegistry();
    const stop = await syncMcpTools(client, registry, { prefix: "s_" });
    const followed = async (): Promise<false> => {
      while (!registry.has("s_trick")) await client.ping();
      return false;
    };
    const record = await run(
      [
        [{ toolCall: "s_learn", args: { name: "trick" } }],
        [{ toolCall: "s_trick" }],
        [{ toolCall: "s_die" }, { toolCall: "s_count", args: { to: 1 } }],
        [{ toolCall: "s_trick" }],
        "done",
      ],
      { tools: registry, config: { shouldStopAfterTurn: followed } },
    );
    expect(record.outcome).toBe("completed");
    expect(resultsOf(record).map((result) => [result.isError, textOf(result)])).toEqual([
      [false, "learnt"],
      [false, "I am trick"],
      [true, "MCP error -32000: Connection closed"],
      [true, "MCP error -32000: Connection closed"],
      [true, "Not connected"],
    ]);
    stop();
    await expect(mcpTools(client)).rejects.toThrow("Not connected");
    expect(registry.has("s_trick")).toBe(true);
  });
});
