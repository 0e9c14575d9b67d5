/**
 * Models behind OpenAI's APIs and the many servers that speak them, through the official `openai` client.
 *
 * @module turnloop/openai
 */
export type { OpenAIOptions } from "./call.js";
export { openaiChat } from "./chat.js";
export type { OpenAIClient } from "./client.js";
export { openaiResponses } from "./responses.js";
