/** One conversation with a client (SPEC 10.1, 10.5). */
import type { RequestError, StopReason } from "@agentclientprotocol/sdk";
import type { Agent } from "../../agent/agent.js";
import type { AgentRunResult } from "../../agent/types.js";
import { errorText, TurnLoopError } from "../../errors.js";
import type { AgentEvent } from "../../events.js";
import { type AssistantMessage, userMessage } from "../../messages.js";
import type { ThinkingEvent } from "../../thinking/thinking-card.js";
import { wellFormedDeep } from "../../transcript.js";
import { type AcpConnection, UpdateSender } from "./connection.js";
import { promptContent } from "./prompt.js";
import type { UpdateState } from "./update-state.js";
import { closeCards, toSessionUpdates } from "./updates.js";

type PromptBlocks = Parameters<typeof promptContent>[0];

/** A prompt from its arrival to its answer. */
interface Turn {
  sender: UpdateSender;
  abort: AbortController;
}

export class AcpSession {
  readonly id: string;
  readonly #agent: Agent;
  readonly #connection: AcpConnection;
  readonly #state: UpdateState;
  readonly #errors: typeof RequestError;
  readonly #unsubscribe: () => void;
  #turn: Turn | undefined;

  constructor(id: string, agent: Agent, connection: AcpConnection, state: UpdateState, errors: typeof RequestError) {
    this.id = id;
    this.#agent = agent;
    this.#connection = connection;
    this.#state = state;
    this.#errors = errors;
    this.#unsubscribe = agent.subscribe((event) => this.#show(event));
    agent.on("thinking", this.#onThinking);
  }

  /** Runs a prompt to its end. `cancelled` is the request's own signal. Throws the protocol's errors. */
  async prompt(blocks: PromptBlocks, cancelled: AbortSignal): Promise<StopReason> {
    if (this.#turn || this.#agent.isRunning)
      throw this.#errors.invalidRequest({ sessionId: this.id }, "the session is busy with another prompt; cancel it first");
    const content = promptContent(blocks);
    if (content.length === 0) throw this.#errors.invalidParams(undefined, "the prompt is empty");
    const turn: Turn = { sender: new UpdateSender(this.#connection, this.id), abort: new AbortController() };
    this.#turn = turn;
    const onCancelled = (): void => this.cancel();
    if (cancelled.aborted) onCancelled();
    else cancelled.addEventListener("abort", onCancelled, { once: true });
    try {
      const result = await this.#agent.prompt(userMessage(content), { signal: turn.abort.signal });
      return turn.abort.signal.aborted ? "cancelled" : this.#stopReason(result);
    } catch (error) {
      if (turn.abort.signal.aborted) return "cancelled";
      throw error instanceof this.#errors ? error : this.#internalError(error);
    } finally {
      cancelled.removeEventListener("abort", onCancelled);
      turn.sender.send(closeCards(this.#state));
      this.#turn = undefined;
    }
  }

  /** Stops the running prompt; does nothing when none runs. */
  cancel(): void {
    this.#turn?.abort.abort(new Error("cancelled by the client"));
  }

  /** The client is gone: stops the running prompt and lets go of the agent. Settles when that is idle. */
  async end(): Promise<void> {
    const wasRunning = this.#turn !== undefined;
    this.cancel();
    this.#unsubscribe();
    this.#agent.off("thinking", this.#onThinking);
    if (wasRunning) await this.#agent.waitForIdle();
  }

  #show(event: AgentEvent | { type: "thinking"; event: ThinkingEvent }): void {
    this.#turn?.sender.send(toSessionUpdates(event, this.#state));
  }

  readonly #onThinking = (event: ThinkingEvent): void => this.#show({ type: "thinking", event });

  #stopReason({ outcome, error, messages }: AgentRunResult): StopReason {
    if (outcome === "aborted") return "cancelled";
    if (outcome === "stopped") return "max_turn_requests";
    if (outcome !== "error") return lastAnswer(messages)?.stopReason === "length" ? "max_tokens" : "end_turn";
    if (error?.info?.kind === "refusal") return "refusal";
    throw new this.#errors(INTERNAL_ERROR, wellFormedDeep(error?.message ?? "The run failed."), error?.info);
  }

  /** The agent refused to run. */
  #internalError(error: unknown): RequestError {
    return new this.#errors(INTERNAL_ERROR, wellFormedDeep(errorText(error)), TurnLoopError.is(error) ? { code: error.code } : undefined);
  }
}

/** Of JSON-RPC; with the model's or the agent's own words as message. */
const INTERNAL_ERROR = -32603;

function lastAnswer(messages: AgentRunResult["messages"]): AssistantMessage | undefined {
  for (let i = messages.length - 1; i >= 0; i--) if (messages[i]?.role === "assistant") return messages[i] as AssistantMessage;
  return undefined;
}
