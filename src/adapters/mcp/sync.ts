/** A registry that follows a server's list of tools (SPEC 12.3). */
import { describe, TurnLoopError } from "../../errors.js";
import type { AgentTool, ToolRegistry } from "../../tool.js";
import type { McpClient, McpToolDefinition } from "./client.js";
import { onToolsChanged } from "./listen.js";
import { assignNames } from "./names.js";
import { agentTool, checkClient, listTools } from "./tools.js";

/** What is used of a `ToolRegistry`. */
export type McpRegistry = Pick<ToolRegistry, "get" | "has" | "register" | "replace" | "unregister"> & Iterable<AgentTool>;

interface Added {
  tool: AgentTool;
  definition: McpToolDefinition;
}

/** The tools that were added to registries, so that a client that is synced again finds its own. */
const addedFor = new WeakMap<AgentTool, { client: McpClient; definition: McpToolDefinition }>();

/** Keeps the registry in step until the returned function is called. */
export async function sync(client: McpClient, registry: McpRegistry, prefix: string): Promise<() => void> {
  checkClient(client);
  if (typeof (Object(registry) as Partial<McpRegistry>).register !== "function") {
    throw new TurnLoopError("invalid_argument", `syncMcpTools adds to a ToolRegistry, for example agent.tools; got ${describe(registry)}.`);
  }
  const mirror = new Mirror(client, registry, prefix);
  let isStopped = false;
  const refresh = oneAtATime(async () => {
    if (isStopped) return;
    const definitions = await listTools(client);
    if (!isStopped) mirror.update(definitions);
  });
  // before the first list: a change while it is being read is not missed
  const stopListening = onToolsChanged(client, refresh);
  const stop = (): void => {
    if (isStopped) return;
    isStopped = true;
    stopListening();
  };
  try {
    await refresh();
  } catch (error) {
    stop();
    throw error;
  }
  return stop;
}

/** A call while one waits to begin joins it, so any number of calls during a run of `work` are one run after it. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | undefined;
  return () => {
    waiting ??= last = last
      .catch(() => {})
      .then(() => {
        waiting = undefined;
        return work();
      });
    return waiting;
  };
}

/** What was added to the registry, by the server's names. A tool the host has replaced or removed since is the host's. */
class Mirror {
  readonly #client: McpClient;
  readonly #registry: McpRegistry;
  readonly #prefix: string;
  readonly #added = new Map<string, Added>();

  constructor(client: McpClient, registry: McpRegistry, prefix: string) {
    this.#client = client;
    this.#registry = registry;
    this.#prefix = prefix;
  }

  update(definitions: readonly McpToolDefinition[]): void {
    this.#find();
    this.#removeAllBut(new Set(definitions.map(({ name }) => name)));
    const fresh = definitions.map(({ name }) => name).filter((name) => !this.#added.has(name));
    const names = assignNames(fresh, this.#prefix, (name) => this.#registry.has(name));
    for (const definition of definitions) {
      const known = this.#added.get(definition.name);
      if (!known) this.#registry.register(this.#make(definition, names.get(definition.name) as string));
      else if (this.#isOurs(known) && !isSame(known.definition, definition)) {
        this.#registry.replace(this.#make(definition, known.tool.name));
      }
    }
  }

  /** Each time: a sync of the same client that was never stopped goes on beside this one. */
  #find(): void {
    for (const tool of this.#registry) {
      const origin = addedFor.get(tool);
      if (origin?.client === this.#client) this.#added.set(origin.definition.name, { tool, definition: origin.definition });
    }
  }

  #removeAllBut(listed: ReadonlySet<string>): void {
    for (const [original, known] of this.#added) {
      if (listed.has(original)) continue;
      if (this.#isOurs(known)) this.#registry.unregister(known.tool.name);
      this.#added.delete(original);
    }
  }

  #make(definition: McpToolDefinition, name: string): AgentTool {
    const tool = agentTool(this.#client, definition, name);
    this.#added.set(definition.name, { tool, definition });
    addedFor.set(tool, { client: this.#client, definition });
    return tool;
  }

  #isOurs({ tool }: Added): boolean {
    return this.#registry.get(tool.name) === tool;
  }
}

function isSame(a: McpToolDefinition, b: McpToolDefinition): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
