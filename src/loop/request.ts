/** From the transcript to the request of one model call (SPEC 2.5 to 2.7, 6.1). */
import { describe, TurnLoopError } from "../errors.js";
import type { AgentMessage, Message } from "../messages.js";
import type { LlmContext, StreamOptions } from "../stream.js";
import { Pairing, pairToolCalls, toLlmMessage, toLlmMessages, toWellFormed, wellFormedDeep, wellFormedMessage } from "../transcript.js";
import { ABORTED } from "./abort.js";
import { type Run, toolSetOf } from "./run.js";

export interface Request {
  context: LlmContext;
  options: StreamOptions;
}

/**
 * Builds the next request, or ABORTED: nobody waits for it then. Throws what a hook threw, and a clear error for a request that cannot be sent.
 * Without hooks it costs no await.
 */
export function buildRequest(run: Run): Request | Promise<Request | typeof ABORTED> {
  const { transformContext, getApiKey, apiKey } = run.config;
  run.tools = toolSetOf(run.toolSource);
  if (transformContext || getApiKey || customConversion(run)) return askHooks(run);
  return assemble(run, run.requestLog.messages(run.transcript), apiKey);
}

async function askHooks(run: Run): Promise<Request | typeof ABORTED> {
  const { config, abort } = run;
  const hooked = config.transformContext || customConversion(run);
  const messages = hooked ? await hookedMessages(run) : run.requestLog.messages(run.transcript);
  if (messages === ABORTED || abort.aborted) return ABORTED;
  const apiKey = config.getApiKey && (await config.getApiKey(run.model.provider));
  return abort.aborted ? ABORTED : assemble(run, messages, apiKey ?? config.apiKey);
}

function assemble(run: Run, messages: Message[], apiKey: string | undefined): Request {
  assertSendable(messages);
  const { declarations } = run.tools;
  const context: LlmContext = { messages: messages.slice() };
  if (run.systemPrompt) context.systemPrompt = wellFormedDeep(run.systemPrompt);
  if (declarations.length > 0) context.tools = declarations.slice();
  const options: StreamOptions = { signal: undefined, ...run.streamOptions };
  options.signal = run.abort.signal;
  if (apiKey !== undefined) options.apiKey = apiKey;
  return { context, options };
}

/** The default conversion, remembered: each message is converted, checked and paired once in a run. */
export class RequestLog {
  readonly #pairing = new Pairing();
  #read = 0;

  /** The request's messages; the array grows with the next request. */
  messages(transcript: readonly AgentMessage[]): Message[] {
    for (; this.#read < transcript.length; this.#read++) {
      const message = toLlmMessage(transcript[this.#read] as AgentMessage);
      if (message) this.#pairing.add(wellFormedMessage(message));
    }
    return this.#pairing.finish();
  }
}

function customConversion(run: Run): boolean {
  return run.config.convertToLlm !== undefined && run.config.convertToLlm !== toLlmMessages;
}

async function hookedMessages(run: Run): Promise<Message[] | typeof ABORTED> {
  const { config, abort } = run;
  let kept = run.transcript.slice();
  if (config.transformContext) kept = await config.transformContext(kept, abort.signal);
  if (abort.aborted) return ABORTED;
  assertMessages("transformContext", kept);
  const converted = await (config.convertToLlm ? config.convertToLlm(kept) : toLlmMessages(kept));
  if (abort.aborted) return ABORTED;
  assertMessages("convertToLlm", converted, ["user", "assistant", "toolResult"]);
  return pairToolCalls(toWellFormed(converted as Message[]));
}

function assertMessages(hook: string, value: unknown, roles?: string[]): asserts value is AgentMessage[] {
  if (!Array.isArray(value)) {
    throw new TurnLoopError("invalid_argument", `${hook} must return an array of messages; got ${describe(value)}.`);
  }
  const wrong = value.findIndex((message) => typeof message?.role !== "string" || (roles && !roles.includes(message.role)));
  if (wrong < 0) return;
  const expected = roles ? `the roles ${roles.join(", ")}` : "objects with a role";
  throw new TurnLoopError(
    "invalid_argument",
    `${hook} must return messages with ${expected}; got ${describe(value[wrong])} at index ${wrong}.`,
  );
}

function assertSendable(messages: readonly Message[]): void {
  const last = messages[messages.length - 1];
  if (last && last.role !== "assistant") return;
  const what = last
    ? "ends in an assistant message, so there is nothing for the model to answer"
    : "is empty: no message is left after transformContext and convertToLlm";
  throw new TurnLoopError("invalid_argument", `The request ${what}. Add a user message, or keep one in these hooks.`);
}
