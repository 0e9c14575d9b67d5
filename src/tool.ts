/** Tools: what the model can call (SPEC 5, 8.6). */
import type { Static, TSchema } from "@sinclair/typebox";
import { describe, TurnLoopError } from "./errors.js";
import type { ImageContent, TextContent, Usage } from "./messages.js";

/** What a tool gives back. `details` belongs to the host: the loop passes it on and never serialises it. */
export interface AgentToolResult<D = any> {
  content: (TextContent | ImageContent)[];
  details?: D;
  usage?: Usage;
  /** The run ends after this batch when every result of the batch says true (SPEC 5.9). */
  terminate?: boolean;
  isError?: boolean;
}

/** Where in the run a call stands. */
export interface ToolCallPosition {
  /** From 1. */
  turn: number;
  /** In the batch, from 0. */
  index: number;
  /** In durable runs: the same for every attempt at this call. */
  idempotencyKey?: string;
}

/** The parameter type a schema stands for: TypeBox, Standard Schema (its output side), else any object. */
export type ParametersOf<P> = P extends TSchema
  ? Static<P>
  : P extends { readonly "~standard": { readonly types?: { readonly output: infer Output } | undefined } }
    ? Output
    : any;

export interface AgentTool<P = any, D = any> {
  /** Unique among the tools of a run. */
  name: string;
  /** For user interfaces. */
  label?: string;
  description: string;
  /** A TypeBox schema, a plain JSON Schema, or a Standard Schema (Zod, Valibot, ArkType) of an object. */
  parameters: P;
  /** What the model is shown of a Standard Schema that has no JSON Schema converter of its own. */
  jsonSchema?: object;
  /** For user interfaces. */
  kind?: "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "other";
  /** Repairs arguments before validation. Gets a copy; a throw is an error result for this call (SPEC 5.6). */
  prepareArguments?(args: unknown): unknown;
  /**
   * Does the work. `params` are validated and the tool's own. `signal` fires when the run or this call is aborted (the
   * call then has `abortGraceMs` to settle) and on timeout. `onUpdate` shows progress. Whatever is thrown becomes an
   * error result; a string is one text block (SPEC 5.9 to 5.11).
   */
  execute(
    toolCallId: string,
    params: ParametersOf<P>,
    signal: AbortSignal,
    onUpdate: (partial: AgentToolResult<D>) => void,
    call: ToolCallPosition,
  ): Promise<AgentToolResult<D> | string> | AgentToolResult<D> | string;
  /** `sequential` makes every batch it is part of run one call after the other. Default: the run's `toolExecution`. */
  executionMode?: "sequential" | "parallel";
  /** Milliseconds. Default: the run's `toolTimeoutMs`; 0, negative or NaN: none (SPEC 5.13). */
  timeoutMs?: number;
}

/** Infers the parameter and details types of a tool from its schema and its `execute`. Returns its argument. */
export function defineTool<const P, D = any>(tool: AgentTool<P, D>): AgentTool<P, D> {
  return tool;
}

/** An ordered set of tools by name. A run takes it as `context.tools`; changes count from the run's next turn on. */
export class ToolRegistry implements Iterable<AgentTool> {
  readonly #tools = new Map<string, AgentTool>();

  constructor(tools: Iterable<AgentTool> = []) {
    for (const tool of tools) this.register(tool);
  }

  /** Adds a tool. Throws `invalid_tool`, or `duplicate_tool` when the name is taken. */
  register(tool: AgentTool): void {
    assertTool(tool);
    if (this.#tools.has(tool.name)) throw duplicateTool(tool.name);
    this.#tools.set(tool.name, tool);
  }

  /** Puts a tool in the place of the one of the same name, or at the end if there is none. Throws `invalid_tool`. */
  replace(tool: AgentTool): void {
    assertTool(tool);
    this.#tools.set(tool.name, tool);
  }

  /** True if there was such a tool. */
  unregister(name: string): boolean {
    return this.#tools.delete(name);
  }

  get(name: string): AgentTool | undefined {
    return this.#tools.get(name);
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  get size(): number {
    return this.#tools.size;
  }

  /** A new registry with the named tools that are here, in registration order. */
  filter(names: Iterable<string>): ToolRegistry {
    const wanted = new Set(names);
    return new ToolRegistry([...this].filter((tool) => wanted.has(tool.name)));
  }

  /** In registration order. */
  [Symbol.iterator](): IterableIterator<AgentTool> {
    return this.#tools.values();
  }
}

/** Throws `invalid_tool` unless the tool can be named to a model and executed. */
export function assertTool(tool: unknown): asserts tool is AgentTool {
  const { name, execute } = (typeof tool === "object" && tool !== null ? tool : {}) as Partial<AgentTool>;
  if (typeof name !== "string" || name.trim() === "") {
    throw new TurnLoopError("invalid_tool", `A tool needs a non-empty string as name; got ${describe(name)} in ${describe(tool)}.`);
  }
  if (typeof execute !== "function") {
    throw new TurnLoopError("invalid_tool", `Tool "${name}" needs an execute function; got ${describe(execute)}.`);
  }
}

export function duplicateTool(name: string): TurnLoopError {
  return new TurnLoopError("duplicate_tool", `Two tools are named "${name}"; tool names must be unique in a run. Rename one.`);
}
