/**
 * An Agent in an editor: the Agent Client Protocol (version 1), through `@agentclientprotocol/sdk`.
 *
 * @module turnloop/acp
 */
export { type AcpAgent, type AcpAgentConnection, type AcpAgentOptions, type AcpSessionInfo, createAcpAgent } from "./agent.js";
export type { AcpConnection } from "./connection.js";
export { type PermissionOptions, requestPermission } from "./permission.js";
export { createProgressCallback, thinkingComplete, thinkingProgress, thinkingStart, toolCardChannel } from "./thinking.js";
export type { UpdateState } from "./update-state.js";
export { createUpdateState, toSessionUpdates } from "./updates.js";
