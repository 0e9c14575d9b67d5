/** A small terminal host of turnloop: questions about the files of the current folder. Run it with `npm run demo`. */
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import {
  type AgentLoopConfig,
  type AgentMessage,
  type RunOutcome,
  runAgentLoop,
  type StreamFn,
  toLlmMessages,
  userMessage,
} from "turnloop";
import { offlineModel } from "./offline-model.js";
import { createRenderer } from "./render.js";
import { workspaceTools } from "./workspace-tools.js";

const USAGE = `Usage: npm run demo -- [question]
       node dist-examples/chat.js [--help] [question]

Answers questions about the files of the current folder with a small offline model: no key, no network.

  npm run demo -- "which file in src is the largest, and how does it begin?"
      answers one question
  npm run demo
      chats; Ctrl-C stops an answer, a second Ctrl-C, Ctrl-D or "exit" leaves
  echo "what is 12 * (3 + 4)?" | node dist-examples/chat.js
      answers each line of the standard input, as one conversation

In a terminal everything is shown. When the standard output goes elsewhere, it gets the text of the answers and nothing
else; thinking, tool calls and totals go to the standard error. NO_COLOR turns colours off.

  -h, --help    shows this text

Exit code: 0 answered, 1 an answer failed, 2 wrong usage, 130 stopped by Ctrl-C.
`;

const SYSTEM_PROMPT = "Answer questions about the files of the workspace. Look at them with your tools; do not guess.";
const EXIT_ERROR = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

interface Assistant {
  config: AgentLoopConfig;
  streamFn: StreamFn;
}

/** One conversation: what was said stays for the next question. */
class Chat {
  readonly #assistant: Assistant;
  readonly #tools = workspaceTools(process.cwd());
  readonly #render: ReturnType<typeof createRenderer>;
  #messages: AgentMessage[] = [];

  constructor(assistant: Assistant) {
    this.#assistant = assistant;
    const toTerminal = process.stdout.isTTY === true;
    this.#render = createRenderer({
      answer: process.stdout,
      activity: toTerminal ? process.stdout : process.stderr,
      terminal: toTerminal,
      colours: toTerminal && !process.env.NO_COLOR && process.env.TERM !== "dumb",
    });
  }

  /** Ctrl-C stops the answer; a second one leaves without waiting for it. */
  async ask(question: string): Promise<RunOutcome> {
    const { config, streamFn } = this.#assistant;
    const controller = new AbortController();
    const interrupt = (): void => {
      if (controller.signal.aborted) process.exit(EXIT_INTERRUPTED);
      controller.abort(new Error("stopped by the user"));
    };
    process.on("SIGINT", interrupt);
    try {
      let outcome = "error" as RunOutcome;
      const context = { systemPrompt: SYSTEM_PROMPT, messages: this.#messages, tools: this.#tools };
      const added = await runAgentLoop(
        [userMessage(question)],
        context,
        config,
        (event) => {
          this.#render(event);
          if (event.type === "agent_end") outcome = event.outcome;
        },
        controller.signal,
        streamFn,
      );
      this.#messages = [...this.#messages, ...added];
      return outcome;
    } finally {
      process.off("SIGINT", interrupt);
    }
  }
}

function offlineAssistant(): Assistant {
  return {
    config: {
      model: { id: "offline-planner", provider: "turnloop-examples", api: "offline" },
      convertToLlm: (messages) => toLlmMessages(messages.map(withStopNote)),
    },
    streamFn: offlineModel(),
  };
}

/** Tells the model that the user has stopped an answer: otherwise it would answer that question together with the next. */
function withStopNote(message: AgentMessage): AgentMessage {
  if (message.role !== "assistant" || message.stopReason !== "aborted") return message;
  return { ...message, content: [...message.content, { type: "text", text: "[The user stopped this answer.]" }] };
}

async function answerOne(question: string): Promise<number> {
  return exitCodeOf(await new Chat(offlineAssistant()).ask(question));
}

/** Answers each line of the standard input. Goes on after a failed answer, but not after Ctrl-C. */
async function answerLines(): Promise<number> {
  const chat = new Chat(offlineAssistant());
  let exitCode = 0;
  let answered = 0;
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) {
    const question = line.trim();
    if (question === "") continue;
    if (answered++ > 0) process.stdout.write("\n");
    const outcome = await chat.ask(question);
    exitCode = Math.max(exitCode, exitCodeOf(outcome));
    if (outcome === "aborted") break;
  }
  lines.close();
  if (answered === 0) process.stderr.write("No question came from the standard input. --help shows the usage.\n");
  return exitCode;
}

async function converse(): Promise<number> {
  const chat = new Chat(offlineAssistant());
  process.stdout.write(`Ask about the files in ${process.cwd()}. "help" shows what I understand, Ctrl-D leaves.\n`);
  const prompt = new Prompt();
  for (;;) {
    const question = await prompt.next();
    if (question === undefined || /^(?:exit|quit)$/i.test(question)) return 0;
    if (question !== "") await chat.ask(question);
  }
}

/**
 * Reads questions from the terminal. It holds the terminal only while it waits for one, so that during an answer Ctrl-C
 * is an ordinary signal.
 */
class Prompt {
  #history: string[] = [];
  /** Lines that were pasted together. */
  readonly #waiting: string[] = [];

  /** Undefined: the user leaves. */
  next(): Promise<string | undefined> {
    if (this.#waiting.length > 0) return Promise.resolve(this.#waiting.shift());
    const terminal = createInterface({ input: process.stdin, output: process.stdout, history: this.#history, prompt: "\n> " });
    return new Promise((resolve) => {
      terminal.on("history", (history) => {
        this.#history = history;
      });
      terminal.on("line", (line) => {
        this.#waiting.push(line.trim());
        terminal.close();
      });
      terminal.on("SIGINT", () => terminal.close());
      terminal.on("close", () => {
        if (this.#waiting.length === 0) process.stdout.write("\n");
        resolve(this.#waiting.shift());
      });
      terminal.prompt();
    });
  }
}

function exitCodeOf(outcome: RunOutcome): number {
  if (outcome === "aborted") return EXIT_INTERRUPTED;
  return outcome === "error" ? EXIT_ERROR : 0;
}

function readArguments(args: string[]) {
  return parseArgs({ args, options: { help: { type: "boolean", short: "h" } }, allowPositionals: true });
}

async function main(args: string[]): Promise<number> {
  let parsed: ReturnType<typeof readArguments>;
  try {
    parsed = readArguments(args);
  } catch (error) {
    const [fault] = (error as Error).message.split(". ");
    process.stderr.write(`${fault}. Put a question that begins with "-" after "--"; --help shows the usage.\n`);
    return EXIT_USAGE;
  }
  if (parsed.values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const question = parsed.positionals.join(" ").trim();
  if (question !== "") return answerOne(question);
  if (parsed.positionals.length > 0) {
    process.stderr.write("The question is empty; expected some words. --help shows the usage.\n");
    return EXIT_USAGE;
  }
  return process.stdin.isTTY && process.stdout.isTTY ? converse() : answerLines();
}

/** Whoever reads the output may stop reading, as `head` does. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
}

process.exitCode = await main(process.argv.slice(2));
