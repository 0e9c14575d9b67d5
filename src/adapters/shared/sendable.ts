import type { Message } from "../../messages.js";
import type { LlmContext } from "../../stream.js";
import { pairToolCalls, toLlmMessages, toWellFormed } from "../../transcript.js";

/** The shortest of the providers' limits for the name of a tool. */
const MAX_NAME = 64;

/** The messages as providers accept them. Of what the loop sends only names have to change; a StreamFn called by hand may get anything. */
export function sendable({ messages, tools = [] }: LlmContext): Message[] {
  const declared = new Set(tools.map(({ name }) => name));
  return pairToolCalls(toWellFormed(toLlmMessages(messages))).map((message) => named(message, declared));
}

/**
 * Models make up names ("", "functions.read", a sentence). Such a call is answered, and stays in the transcript: providers
 * would refuse every request from then on. Declared names stay as they are: the server that takes them knows best.
 */
function named(message: Message, declared: ReadonlySet<string>): Message {
  const valid = (name = ""): string => (declared.has(name) ? name : name.replace(/[^\w-]/gu, "_").slice(0, MAX_NAME) || "unnamed");
  if (message.role === "toolResult") {
    const toolName = valid(message.toolName);
    return toolName === message.toolName ? message : { ...message, toolName };
  }
  if (message.role === "user" || message.content.every((block) => block.type !== "toolCall" || block.name === valid(block.name)))
    return message;
  const content = message.content.map((block) => (block.type === "toolCall" ? { ...block, name: valid(block.name) } : block));
  return { ...message, content };
}
