/** A server's tools as tools of a run (SPEC 12.3). */
import { describe, TurnLoopError } from "../../errors.js";
import type { AgentTool } from "../../tool.js";
import { abortError, requestSignal } from "../shared/call.js";
import { explain } from "../shared/errors.js";
import { anyResult, type McpClient, type McpProgress, type McpRequestOptions, type McpToolDefinition } from "./client.js";
import { type McpDetails, progressResult, toolResult } from "./results.js";
import { readableSchema } from "./schema.js";
import { callAsTask, tasksOf } from "./tasks.js";

/** The longest time a timer can wait: how long a tool may take is the loop's to say (SPEC 5.13). */
const NO_LIMIT = 2 ** 31 - 1;

const METHOD_NOT_FOUND = -32601;

/** No server has so many; one that makes up tools and cursors without end would be read for ever. */
const MAX_PAGES = 1000;

/** Throws `invalid_argument` for what is no client. */
export function checkClient(client: McpClient): void {
  const { listTools, callTool } = Object(client) as Partial<McpClient>;
  if (typeof listTools === "function" && typeof callTool === "function") return;
  const expected = "a connected Client of @modelcontextprotocol/sdk, with listTools and callTool";
  throw new TurnLoopError("invalid_argument", `The tools of an MCP server come through ${expected}; got ${describe(client)}.`);
}

/** All pages of the server's list, without repetitions; none for a server that has no tools at all. Rejects as the client does. */
export async function listTools(client: McpClient): Promise<McpToolDefinition[]> {
  const definitions = new Map<string, McpToolDefinition>();
  const cursors = new Set<string>();
  let cursor: string | undefined;
  try {
    do {
      const before = definitions.size;
      const { tools, nextCursor } = await client.listTools(cursor === undefined ? undefined : { cursor });
      for (const tool of tools) if (!definitions.has(tool.name)) definitions.set(tool.name, tool);
      // a server that takes no notice of the cursor may make up a new one for the same page again and again
      if (tools.length > 0 && definitions.size === before) break;
      cursor = nextCursor && !cursors.has(nextCursor) ? nextCursor : undefined;
      if (cursor) cursors.add(cursor);
      if (cursors.size === MAX_PAGES) throw new Error(`The server still had more tools after ${MAX_PAGES} pages of its list.`);
    } while (cursor);
  } catch (error) {
    if (cursor !== undefined || Object(error).code !== METHOD_NOT_FOUND) throw error;
  }
  return [...definitions.values()];
}

export function agentTool(client: McpClient, definition: McpToolDefinition, name: string): AgentTool {
  const { title, description, inputSchema, annotations } = definition;
  const label = title ?? annotations?.title;
  const schema = readableSchema(inputSchema);
  const tool: AgentTool<object, McpDetails | McpProgress> = {
    name,
    description: description ?? label ?? "",
    // some providers refuse an object schema that names no properties
    parameters: "properties" in schema ? schema : { ...schema, properties: {} },
    async execute(_toolCallId, params, signal, onUpdate) {
      const request = requestSignal(signal);
      const onprogress = (progress: McpProgress): void => onUpdate(progressResult(progress));
      try {
        const answer = await call(client, definition, params, { signal: request.signal, timeout: NO_LIMIT, onprogress }, (status) =>
          onUpdate({ content: [{ type: "text", text: status }] }),
        );
        return toolResult(name, answer);
      } catch (error) {
        throw signal.aborted ? abortError(signal) : new Error(explain(error), { cause: error });
      } finally {
        request.release();
      }
    },
  };
  if (label !== undefined) tool.label = label;
  if (annotations?.readOnlyHint === true) tool.kind = "read";
  return tool;
}

function call(
  client: McpClient,
  { name, execution }: McpToolDefinition,
  params: Record<string, unknown>,
  options: McpRequestOptions,
  onStatus: (message: string) => void,
): Promise<unknown> {
  const request = { name, arguments: params };
  const tasks = execution?.taskSupport === "required" ? tasksOf(client) : undefined;
  return tasks ? callAsTask(tasks, request, options, onStatus) : client.callTool(request, anyResult, options);
}
