/** A server's tools as tools of a run (SPEC 12.3). */
import type { AgentTool } from "../../tool.js";
import { abortError, requestSignal } from "../shared/call.js";
import { explain } from "../shared/errors.js";
import { anyResult, type McpClient, type McpProgress, type McpRequestOptions, type McpToolDefinition } from "./client.js";
import { type McpDetails, progressResult, toolResult } from "./results.js";
import { callAsTask, tasksOf } from "./tasks.js";

/** The longest time a timer can wait: how long a tool may take is the loop's to say (SPEC 5.13). */
const NO_LIMIT = 2 ** 31 - 1;

const METHOD_NOT_FOUND = -32601;

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
    } while (cursor);
  } catch (error) {
    if (cursor !== undefined || Object(error).code !== METHOD_NOT_FOUND) throw error;
  }
  return [...definitions.values()];
}

export function agentTool(client: McpClient, definition: McpToolDefinition, name: string): AgentTool {
  const { title, description, inputSchema, annotations } = definition;
  const label = title ?? annotations?.title;
  const tool: AgentTool<object, McpDetails | McpProgress> = {
    name,
    description: description ?? label ?? "",
    // some providers refuse an object schema that names no properties
    parameters: "properties" in inputSchema ? inputSchema : { ...inputSchema, properties: {} },
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
