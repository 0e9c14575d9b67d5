import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { AgentTool, ToolResultMessage } from "turnloop";
import { resultsOf, run } from "../helpers.js";

interface Connectable {
  connect(transport: Transport): Promise<void>;
}

/** A client of the SDK, connected in memory. What its `onerror` hears is in `errors`. */
export async function connect(server: Connectable, options?: ConstructorParameters<typeof Client>[1]) {
  const client = new Client({ name: "host", version: "1" }, options);
  const errors: string[] = [];
  client.onerror = (error) => errors.push(error.message);
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  await client.connect(near);
  return { client, errors };
}

export function mcpServer(): McpServer {
  return new McpServer({ name: "test", version: "1" });
}

/** What a raw server answers; a throw is a JSON-RPC error, with its `code` if it has one. */
interface RawAnswers {
  list?(cursor: string | undefined): unknown;
  call?(params: { name: string; arguments: object; _meta?: object }): unknown;
}

/** A server that sends what it is told to, right or wrong: those of the SDK refuse to. */
export class RawMcpServer implements Connectable {
  readonly #answers: RawAnswers;
  #transport: Transport | undefined;

  constructor(answers: RawAnswers) {
    this.#answers = answers;
  }

  async connect(transport: Transport): Promise<void> {
    this.#transport = transport;
    transport.onmessage = (message) => void this.#receive(message as { id?: number; method: string; params?: any });
    await transport.start();
  }

  /** Sends `tools/list_changed`. */
  announce(): void {
    void this.#transport?.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  }

  async #receive({ id, method, params }: { id?: number; method: string; params?: any }): Promise<void> {
    if (id === undefined) return;
    let answer: object;
    try {
      answer = { result: await this.#answer(method, params) };
    } catch (error) {
      answer = { error: { code: -32603, ...(error as object), message: (error as Error).message } };
    }
    await this.#transport?.send({ jsonrpc: "2.0", id, ...answer } as never);
  }

  #answer(method: string, params: any): unknown {
    const { list, call } = this.#answers;
    if (method === "initialize") {
      const capabilities = { tools: { listChanged: true } };
      return { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: "raw", version: "1" } };
    }
    if (method === "ping") return {};
    if (method === "tools/list" && list) return list(params?.cursor);
    if (method === "tools/call" && call) return call(params);
    throw Object.assign(new Error("Method not found"), { code: -32601 });
  }
}

/** A tool as a server lists it. */
export function listed(name: string, more: object = {}): object {
  return { name, inputSchema: { type: "object", properties: {} }, ...more };
}

/** The result of one call of the first tool, made by a run. */
export async function callOnce(tools: AgentTool[], args: object = {}): Promise<ToolResultMessage> {
  const record = await run([[{ toolCall: tools[0]?.name ?? "", args }], "done"], { tools });
  return resultsOf(record)[0] as ToolResultMessage;
}
