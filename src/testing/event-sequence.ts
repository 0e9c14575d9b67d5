import type { AgentEvent } from "../events.js";
import type { AgentMessage, AssistantMessage, ToolCall, ToolResultMessage } from "../messages.js";
import { isFailed, isToolCall } from "../transcript.js";

type EventOf<T extends AgentEvent["type"]> = Extract<AgentEvent, { type: T }>;

/**
 * Checks the events of one whole run against the grammar of SPEC 4.6 and the pairing of SPEC 2.6. Throws an Error of one
 * line that says what is wrong at which event. `resumed`: the first turn has no answer of its own (SPEC 15.3).
 */
export function assertEventSequence(events: readonly AgentEvent[], options: { resumed?: boolean } = {}): void {
  new SequenceReader(events).run(options.resumed ?? false);
}

class SequenceReader {
  readonly #events: readonly AgentEvent[];
  #at = 0;
  /** Every message the run has ended so far. */
  readonly #messages: AgentMessage[] = [];

  constructor(events: readonly AgentEvent[]) {
    this.#events = events;
  }

  run(resumed: boolean): void {
    this.#take("agent_start");
    let turns = 0;
    do this.#turn(resumed && turns++ === 0);
    while (this.#peek() === "turn_start");
    const end = this.#take("agent_end");
    if (!Array.isArray(end.messages)) this.#fail("agent_end with messages", 1);
    if ((end.outcome === "suspended") !== (end.pending ?? []).length > 0)
      this.#fail("agent_end with pending calls if suspended, only then", 1);
    if (this.#at < this.#events.length) this.#fail("nothing after agent_end");
    const expected = this.#messages.length;
    if (end.messages.length !== expected) this.#fail(`agent_end with the ${expected} messages of the run, got ${end.messages.length}`, 1);
    end.messages.forEach((message, i) => {
      const { role, toolCallId } = this.#messages[i] as Partial<ToolResultMessage>;
      if (message?.role !== role || (message as Partial<ToolResultMessage>).toolCallId !== toolCallId)
        this.#fail(`agent_end.messages[${i}] to be the message that ended ${i + 1}.`, 1);
    });
  }

  #turn(resumed: boolean): void {
    this.#take("turn_start");
    let answer: AssistantMessage | undefined;
    const started: string[] = [];
    const ended: string[] = [];
    const results: ToolResultMessage[] = [];
    for (let type = this.#peek(); type !== "turn_end"; type = this.#peek()) {
      if (type === "message_start") {
        const message = this.#message();
        if (message.role === "assistant" && !answer && !resumed) answer = message as AssistantMessage;
        else if (message.role === "toolResult" && (answer || resumed)) {
          const result = message as ToolResultMessage;
          if (!ended.includes(result.toolCallId)) this.#fail(`the result of call ${result.toolCallId} after its tool_execution_end`, 1);
          results.push(result);
        } else if (answer || message.role === "assistant") this.#fail(`no ${message.role} message here`, 1);
      } else this.#toolEvent(started, ended, answer !== undefined, resumed);
    }
    const end = this.#take("turn_end");
    if (!answer && !resumed) this.#fail("an assistant message in the turn", 1);
    this.#checkBatch(answer ?? end.message, started, ended, results, resumed);
    if (!Array.isArray(end.toolResults) || !end.message) this.#fail("turn_end with message and toolResults", 1);
    const shown = end.toolResults.map((result) => result.toolCallId);
    if (shown.join("\n") !== results.map((result) => result.toolCallId).join("\n"))
      this.#fail("turn_end.toolResults to be the results of the turn", 1);
  }

  /** message_start message_update* message_end of one message. */
  #message(): AgentMessage {
    const { message: opened } = this.#take("message_start");
    if (typeof opened?.role !== "string") this.#fail("message_start with a message", 1);
    while (this.#peek() === "message_update") {
      if (opened.role !== "assistant") this.#fail("message_update for an assistant message only");
      this.#at++;
    }
    const { message } = this.#take("message_end");
    if (message?.role !== opened.role) this.#fail(`message_end of the ${opened.role} message that started`, 1);
    this.#messages.push(message);
    return message;
  }

  #toolEvent(started: string[], ended: string[], answered: boolean, resumed: boolean): void {
    const event = this.#events[this.#at] as EventOf<"tool_execution_start" | "tool_execution_update" | "tool_execution_end">;
    if (!String(event?.type).startsWith("tool_execution_")) this.#fail("turn_end, a message or a tool event");
    const { type, toolCallId: id } = event;
    if (!answered && !resumed) this.#fail("no tool event before the turn's answer has ended");
    if (type === "tool_execution_start") {
      if (resumed) this.#fail("no second tool_execution_start in a resumed turn");
      if (started.includes(id)) this.#fail(`one tool_execution_start for call ${id}`);
      started.push(id);
    } else if ((!started.includes(id) && !resumed) || ended.includes(id)) {
      this.#fail(`${type} only between start and end of call ${id}`);
    } else if (type === "tool_execution_end") ended.push(id);
    this.#at++;
  }

  #checkBatch(answer: AssistantMessage, started: string[], ended: string[], results: ToolResultMessage[], resumed: boolean): void {
    const calls: ToolCall[] = isFailed(answer) ? [] : answer.content.filter(isToolCall);
    const answered = results.map((result) => result.toolCallId);
    const last = this.#lastTurnEnd();
    const suspended = (last?.pending ?? []).map(({ toolCall }) => toolCall.id);
    for (const id of suspended) {
      if (!started.includes(id)) this.#fail(`tool_execution_start of the suspended call ${id} in the last turn`, 1);
      if (ended.includes(id) || answered.includes(id)) this.#fail(`no end and no result of the suspended call ${id}`, 1);
    }
    let interrupted = false;
    for (const { id } of calls) {
      if (suspended.includes(id) || (resumed && !answered.includes(id))) continue;
      // interrupted, or suspended when the sink failed (SPEC 16.2, 15.2): it has its start only, those behind it maybe nothing
      const isOpen = !ended.includes(id) && !answered.includes(id);
      interrupted ||= last?.outcome === "error" && isOpen && started.includes(id);
      if (interrupted && isOpen) continue;
      if (!resumed && !started.includes(id)) this.#fail(`tool_execution_start of call ${id} in its turn`, 1);
      if (!ended.includes(id)) this.#fail(`tool_execution_end of call ${id} in its turn`, 1);
      if (!answered.includes(id)) this.#fail(`a result message for call ${id} in its turn`, 1);
    }
    const order = calls.map(({ id }) => id).filter((id) => answered.includes(id));
    if (order.join("\n") !== answered.join("\n"))
      this.#fail(`one result a call, in source order (${order.join(", ")}), got (${answered.join(", ")})`, 1);
    const stray = [...started, ...ended].find((id) => !calls.some((call) => call.id === id));
    if (stray !== undefined) this.#fail(`tool events for calls of the answer only, got ${stray}`, 1);
  }

  /** The end of the run, if it follows the turn that was just read: some of its calls may have their start only. */
  #lastTurnEnd(): EventOf<"agent_end"> | undefined {
    const next = this.#events[this.#at];
    return next?.type === "agent_end" ? next : undefined;
  }

  #peek(): AgentEvent["type"] | undefined {
    return this.#events[this.#at]?.type;
  }

  #take<T extends AgentEvent["type"]>(type: T): EventOf<T> {
    const event = this.#events[this.#at];
    if (event?.type !== type) this.#fail(type);
    this.#at++;
    return event as EventOf<T>;
  }

  #fail(expected: string, back = 0): never {
    const at = this.#at - back;
    throw new Error(`Event ${at} (${this.#events[at]?.type ?? "end of events"}): expected ${expected}.`);
  }
}
