/** What is used of an MCP client, from any copy of its SDK (SPEC 12.3). Nothing of the SDK is imported. */

/** A tool as a server lists it. */
export interface McpToolDefinition {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: object;
  annotations?: { title?: string | undefined; readOnlyHint?: boolean | undefined } | undefined;
  execution?: { taskSupport?: string | undefined } | undefined;
}

/** A `Client` of `@modelcontextprotocol/sdk` 1.x, connected; or anything of that shape. */
export interface McpClient {
  listTools(params?: { cursor?: string }, options?: any): Promise<{ tools: McpToolDefinition[]; nextCursor?: string | undefined }>;
  callTool(params: { name: string; arguments?: Record<string, unknown> }, resultSchema?: any, options?: any): Promise<unknown>;
  /** How `syncMcpTools` hears of changes; a client without it is listed once. */
  setNotificationHandler?(schema: any, handler: any): void;
}

/** What a server says of its progress. */
export interface McpProgress {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}

/** The part of the client's request options that is used. */
export interface McpRequestOptions {
  signal: AbortSignal;
  /** Milliseconds. */
  timeout: number;
  onprogress(progress: McpProgress): void;
}

/**
 * Takes a result as it is, in place of the SDK's schema: a content type that the client's copy does not know would cost
 * the whole result of a call that has been made. In the shape of a Zod 3 schema, which every 1.x accepts.
 */
export const anyResult = {
  parse: (value: unknown): unknown => value,
  safeParse: (data: unknown): unknown => ({ success: true, data }),
};
