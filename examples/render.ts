/** Shows the events of runs as text. */
import type { AgentEvent, AgentMessage, AssistantMessage, AssistantMessageEvent, ThinkingEvent, ThinkingOptions } from "turnloop";
import { counted, ERASE_LINE, shortened } from "./wording.js";

export interface RenderOptions {
  /** Gets the text of the answers. */
  answer: NodeJS.WritableStream;
  /** Gets everything else: thinking, tool calls, totals. May be the same stream. */
  activity: NodeJS.WritableStream;
  /** The answer is read on a screen, which control characters in it must not steer. */
  terminal: boolean;
  /** Colours, and a progress line that is written over. */
  colours: boolean;
  /** What a failed run is to be called. @default its message */
  explain?: (error: RunError) => string;
  /** Milliseconds; for the times taken. @default performance.now */
  now?: () => number;
}

type EndEvent = Extract<AgentEvent, { type: "agent_end" }>;
export type RunError = NonNullable<EndEvent["error"]>;

const MAX_LINE_LENGTH = 100;
const MAX_ERROR_LENGTH = 300;
const DIM = "2";
const RED = "31";
const GREEN = "32";
const CYAN = "36";
/** A line that is written over may tell each second; every other one stays, so a short wait is not worth it. */
const LIVE_WAITS: ThinkingOptions = { showAfterMs: 300, heartbeatMs: 1000, maxHeartbeats: 600 };
const PLAIN_WAITS: ThinkingOptions = { showAfterMs: 3000, heartbeatMs: 30_000 };

/** For one run after the other. */
export class Renderer {
  /** An Agent's option `thinking`: how the waits for a model are shown. */
  readonly waits: ThinkingOptions;
  readonly #answer: NodeJS.WritableStream;
  readonly #activity: NodeJS.WritableStream;
  readonly #terminal: boolean;
  readonly #colours: boolean;
  readonly #explain: (error: RunError) => string;
  readonly #now: () => number;
  /** Whose text the cursor stands behind, when it is not at the beginning of a line. */
  #openLine: "answer" | "thinking" | "progress" | undefined;
  #startedAt = 0;
  #turns = 0;
  #toolCalls = 0;
  #textShown = false;
  readonly #callsStartedAt = new Map<string, number>();

  constructor({ answer, activity, terminal, colours, explain = ({ message }) => message, now = () => performance.now() }: RenderOptions) {
    this.#answer = answer;
    this.#activity = activity;
    this.#terminal = terminal;
    this.#colours = colours;
    this.#explain = explain;
    this.#now = now;
    this.waits = { ...(colours ? LIVE_WAITS : PLAIN_WAITS), onProgress: (event) => this.#showWait(event) };
  }

  /** A line of the host's own, between what the runs show. */
  notice(text: string): void {
    this.#line(this.#coloured(DIM, printable(text)));
  }

  show(event: AgentEvent): void {
    switch (event.type) {
      case "agent_start":
        this.#startedAt = this.#now();
        this.#turns = 0;
        this.#toolCalls = 0;
        break;
      case "turn_start":
        this.#turns++;
        break;
      case "message_start":
        this.#textShown = false;
        break;
      case "message_update":
        this.#showDelta(event.assistantMessageEvent);
        break;
      case "message_end":
        this.#endMessage(event.message);
        break;
      case "tool_execution_start":
        this.#toolCalls++;
        this.#callsStartedAt.set(event.toolCallId, this.#now());
        this.#line(`→ ${this.#coloured(CYAN, printable(event.toolName))} ${argumentsText(event.args)}`);
        break;
      case "tool_execution_update":
        this.#showProgress(this.#fitted(`… ${event.toolName}: ${resultText(event.partialResult)}`));
        break;
      case "tool_execution_end":
        this.#showResult(event);
        break;
      case "agent_end":
        this.#showEnd(event);
        break;
    }
  }

  #showDelta(update: AssistantMessageEvent): void {
    if (update.type === "thinking_delta") {
      this.#open("thinking");
      this.#activity.write(this.#coloured(DIM, printable(update.delta)));
    } else if (update.type === "text_delta") this.#showText(update.delta);
    else if (update.type === "text_end") this.#closeLine();
  }

  #showText(text: string): void {
    if (!this.#textShown) this.#blankLine();
    this.#textShown = true;
    this.#open("answer");
    this.#answer.write(this.#terminal ? printable(text) : text);
  }

  /** A model need not stream: what came without deltas is shown now. */
  #endMessage(message: AgentMessage): void {
    if (message.role === "assistant" && !this.#textShown) {
      for (const block of (message as AssistantMessage).content) if (block.type === "text" && block.text !== "") this.#showText(block.text);
    }
    this.#closeLine();
  }

  #showWait({ state, title }: ThinkingEvent): void {
    if (state !== "complete") this.#showProgress(title);
    else if (this.#openLine === "progress") this.#closeLine();
  }

  #showProgress(text: string): void {
    if (!this.#colours) return this.#line(text);
    if (this.#openLine !== "progress") this.#closeLine();
    this.#openLine = "progress";
    this.#activity.write(ERASE_LINE + this.#coloured(DIM, text));
  }

  #showResult({ toolCallId, toolName, result, isError }: Extract<AgentEvent, { type: "tool_execution_end" }>): void {
    const time = duration(this.#now() - (this.#callsStartedAt.get(toolCallId) ?? this.#now()));
    this.#callsStartedAt.delete(toolCallId);
    const mark = isError ? this.#coloured(RED, "✗") : this.#coloured(GREEN, "✓");
    const text = `${toolName}${isError ? " failed" : ""}: ${resultText(result)}`;
    this.#line(`${mark} ${this.#fitted(text)} ${this.#coloured(DIM, `(${time})`)}`);
  }

  #showEnd({ outcome, error }: EndEvent): void {
    if (outcome === "error") {
      const text = error ? this.#explain(error) : "unknown";
      this.#line(this.#coloured(RED, `error: ${shortened(printable(text).replace(/\s+/g, " "), MAX_ERROR_LENGTH)}`));
      return;
    }
    if (outcome === "aborted") this.#line(this.#coloured(RED, "stopped"));
    else this.#blankLine();
    const totals = [duration(this.#now() - this.#startedAt), counted(this.#turns, "turn"), counted(this.#toolCalls, "tool call")];
    this.#line(this.#coloured(DIM, totals.join(", ")));
  }

  /** Sets the answer off from the activity where both are read together. */
  #blankLine(): void {
    if (this.#answer === this.#activity) this.#line("");
  }

  #line(text: string): void {
    this.#closeLine();
    this.#activity.write(`${text}\n`);
  }

  #open(line: "answer" | "thinking"): void {
    if (this.#openLine !== line) this.#closeLine();
    this.#openLine = line;
  }

  #closeLine(): void {
    if (this.#openLine === "progress") this.#activity.write(ERASE_LINE);
    else if (this.#openLine) (this.#openLine === "answer" ? this.#answer : this.#activity).write("\n");
    this.#openLine = undefined;
  }

  #coloured(colour: string, text: string): string {
    return this.#colours ? `\x1b[${colour}m${text}\x1b[0m` : text;
  }

  #fitted(text: string): string {
    return shortened(printable(text), MAX_LINE_LENGTH);
  }
}

/** `path: "src/index.ts", lineCount: 5` */
function argumentsText(args: unknown): string {
  const entries = Object.entries((args ?? {}) as Record<string, unknown>);
  return shortened(printable(entries.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ")), MAX_LINE_LENGTH);
}

/** The first line of a result. */
function resultText(result: { content?: { type: string; text?: string }[] }): string {
  const blocks = (result?.content ?? []).map((block) => (block.type === "text" ? (block.text ?? "") : `[${block.type}]`));
  return blocks.join(" ").trim().split("\n")[0] || "(nothing)";
}

/** What models and files say must not steer the terminal. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, "�");
}

function duration(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
