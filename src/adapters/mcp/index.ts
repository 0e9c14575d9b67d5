/**
 * The tools of MCP servers as tools of a run, through a client of `@modelcontextprotocol/sdk` 1.x that the host has
 * connected. Nothing of that package is loaded here.
 *
 * @module turnloop/mcp
 */
import type { AgentTool } from "../../tool.js";
import type { McpClient } from "./client.js";
import { assignNames } from "./names.js";
import { type McpRegistry, sync } from "./sync.js";
import { agentTool, checkClient, listTools } from "./tools.js";

export type { McpClient, McpProgress, McpToolDefinition } from "./client.js";
export type { McpDetails } from "./results.js";
export type { McpRegistry } from "./sync.js";

export interface McpOptions {
  /** Put before every name as it is (`"github_"`): tells servers apart, whose names must differ in a run. Default: none. */
  prefix?: string;
}

/**
 * The server's tools, all pages of the list, as they are now (SPEC 12.3). Rejects with the client's error when they
 * cannot be listed.
 *
 * - **Names**: characters outside `[a-zA-Z0-9_-]` become `_`; of two that become equal the second gets a number (`_2`); more
 *   than 64 characters are cut and end in a hash. The server is called by its own name. Names of two servers may be
 *   equal: a run refuses them with `duplicate_tool`, a `prefix` each tells them apart.
 * - **Arguments** are checked against the server's schema by the loop, before the call; patterns that JavaScript cannot read
 *   are left out, for the server to check.
 * - **Results**: text and images as they are; resources as text under their address, or as images; links, audio and
 *   drawings (SVG) as a line of text; `details` is a {@link McpDetails}. A server that is gone, or refuses, is an error result.
 * - **Progress** comes as updates, `details` being a {@link McpProgress}.
 * - **Time**: the client's limit of 60 s per request does not apply, only `timeoutMs` and `toolTimeoutMs` do (SPEC 5.13);
 *   `{ ...tool, timeoutMs: 30_000 }` gives one tool a limit. Abort and limit cancel the request at the server.
 * - `kind` is `read` where the server says that the tool only reads.
 *
 * @throws TurnLoopError `invalid_argument`, as a rejection: `client` is no MCP client.
 *
 * @example
 * const client = new Client({ name: "my-host", version: "1.0.0" });
 * await client.connect(new StdioClientTransport({ command: "my-mcp-server" }));
 * const tools = await mcpTools(client, { prefix: "files_" });
 * await runAgentLoop(prompts, { systemPrompt, messages: [], tools }, config, emit, signal, streamFn);
 */
export async function mcpTools(client: McpClient, options?: McpOptions): Promise<AgentTool[]> {
  checkClient(client);
  const definitions = await listTools(client);
  const originals = definitions.map(({ name }) => name);
  const names = assignNames(originals, options?.prefix ?? "", () => false);
  return definitions.map((definition) => agentTool(client, definition, names.get(definition.name) as string));
}

/**
 * Adds the server's tools to a registry (an Agent's `tools`, say) and keeps them in step as the server announces changes,
 * until the returned function is called (SPEC 12.3). That function may be called again, and leaves the tools where they are.
 * Rejects, and adds nothing, when the tools cannot be listed at first.
 *
 * A name that is taken gets a number (`search_2`) and keeps it; a `prefix` avoids that. Tools that this did not add are
 * never replaced or removed, nor are those that the host has since replaced (with a wrapper, say) or removed. Lists are read
 * one at a time; when one fails, the tools stay and the client's `onerror` hears of it. A handler the host has set on the
 * client for `notifications/tools/list_changed`, by `listChanged` or as a fallback keeps hearing; one that is set later takes
 * the place of this. The same client may be connected and synced again: it finds its tools.
 *
 * @throws TurnLoopError `invalid_argument`, as a rejection: `client` is no MCP client, or `registry` no ToolRegistry.
 *
 * @example
 * const stop = await syncMcpTools(client, agent.tools, { prefix: "github_" });
 * await agent.prompt("Which issues are open?"); // tools that come meanwhile count from the next turn on
 * stop();
 */
export function syncMcpTools(client: McpClient, registry: McpRegistry, options?: McpOptions): Promise<() => void> {
  return sync(client, registry, options?.prefix ?? "");
}
