/** A small MCP server over stdio, for mcp-stdio.test.ts. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "fixture", version: "1" });
const cancelled = [];
const text = (words) => ({ content: [{ type: "text", text: words }] });

server.registerTool("add", { description: "Adds", inputSchema: { a: z.number(), b: z.number().int() } }, ({ a, b }) => text(`${a + b}`));

server.registerTool("picture", {}, () => ({
  content: [
    { type: "text", text: "a dot" },
    { type: "image", data: "aGk=", mimeType: "image/png" },
    { type: "resource_link", uri: "file:///dot.svg", name: "dot.svg" },
  ],
}));

server.registerTool("count", { inputSchema: { to: z.number() } }, async ({ to }, { _meta, sendNotification, signal }) => {
  const progressToken = _meta.progressToken;
  await sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1, total: to, message: "one" } });
  return await new Promise((resolve) => {
    signal.addEventListener("abort", () => {
      cancelled.push(signal.reason);
      resolve(text("stopped"));
    });
  });
});

server.registerTool("what_was_cancelled", {}, () => text(JSON.stringify(cancelled)));

server.registerTool("learn", { inputSchema: { name: z.string() } }, ({ name }) => {
  server.registerTool(name, {}, () => text(`I am ${name}`));
  return text("learnt");
});

server.registerTool("die", {}, () => process.exit(1));

await server.connect(new StdioServerTransport());
