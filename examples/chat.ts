/** A small terminal host of turnloop: questions about the files of the current folder. Run it with `npm run demo`. */
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import type { RunOutcome } from "turnloop";
import { type Assistant, assistantFor, createAgent } from "./assistant.js";
import { Renderer } from "./render.js";
import { COMMANDS, Session } from "./session.js";
import { TerminalLine } from "./terminal-line.js";
import { workspaceTools } from "./workspace-tools.js";

const USAGE = `Usage: npm run demo -- [question]
       node dist-examples/chat.js [--model NAME] [--help] [question]

Answers questions about the files of the current folder with a small offline model: no key, no network.

  npm run demo -- "which file in src is the largest, and how does it begin?"
      answers one question
  npm run demo
      chats; Ctrl-C stops an answer, a second Ctrl-C, Ctrl-D or "exit" leaves
  echo "what is 12 * (3 + 4)?" | node dist-examples/chat.js
      answers each line of the standard input, as one conversation

With --model it talks to any OpenAI-compatible server instead: that of OPENAI_BASE_URL, with the key OPENAI_API_KEY. One of
the two is enough: without an address it is OpenAI's own, and many servers need no key.

  OPENAI_BASE_URL=http://localhost:11434/v1 npm run demo -- --model qwen3

In a chat, what you enter while it works reaches the model with its next turn. Lines that begin with / are commands:

${COMMANDS.replace(/^/gm, "  ")}

In a terminal everything is shown. When the standard output goes elsewhere, it gets the text of the answers and nothing
else; thinking, tool calls and totals go to the standard error. NO_COLOR turns colours off.

  --model NAME  the model of the server
  -h, --help    shows this text

Exit code: 0 answered, 1 an answer failed, 2 wrong usage, 130 stopped by Ctrl-C.
`;

const EXIT_ERROR = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

/** What stands between the assistant and the user. `screen` is what both answers and activity go to, if there is one. */
function rendererFor({ explain }: Assistant, screen?: NodeJS.WritableStream): Renderer {
  const toTerminal = process.stdout.isTTY === true;
  return new Renderer({
    answer: screen ?? process.stdout,
    activity: screen ?? (toTerminal ? process.stdout : process.stderr),
    terminal: toTerminal,
    colours: toTerminal && !process.env.NO_COLOR && process.env.TERM !== "dumb",
    explain,
  });
}

/** The first Ctrl-C stops the answer; the second one leaves without waiting for it. */
function interruptOf(session: Session, whenIdle: () => void): () => void {
  let isStopping = false;
  return () => {
    if (!session.isRunning) return whenIdle();
    if (isStopping) process.exit(EXIT_INTERRUPTED);
    isStopping = session.stop();
    void session.whenIdle().then(() => {
      isStopping = false;
    });
  };
}

/** Answers each line, one after the other. Goes on after a failed answer, but not after Ctrl-C. */
async function answerLines(start: StartSession, lines: AsyncIterable<string> | string[], end: () => void): Promise<number> {
  let isOver = false;
  const session = start(() => {
    isOver = true;
  });
  const interrupt = interruptOf(session, () => process.exit(EXIT_INTERRUPTED));
  process.on("SIGINT", interrupt);
  let exitCode = 0;
  let entered = 0;
  for await (const line of lines) {
    if (line.trim() === "") continue;
    if (entered++ > 0) process.stdout.write("\n");
    const outcome = await session.enter(line);
    exitCode = Math.max(exitCode, exitCodeOf(outcome));
    if (isOver || outcome === "aborted") break;
  }
  process.off("SIGINT", interrupt);
  end();
  if (entered === 0) process.stderr.write("No question came from the standard input. --help shows the usage.\n");
  return exitCode;
}

type StartSession = (onQuit: () => void, screen?: NodeJS.WritableStream) => Session;

async function converse(start: StartSession, modelName: string): Promise<number> {
  process.stdout.write(`Ask about the files in ${process.cwd()}. The model is ${modelName}; "help" and /help say what I understand.\n`);
  return new Promise((leave) => {
    const end = (code: number): void => {
      process.off("SIGINT", interrupt);
      terminal.close();
      leave(code);
    };
    const enter = async (line: string): Promise<void> => {
      await session.enter(/^\s*(?:exit|quit)\s*$/i.test(line) ? "/quit" : line);
      if (hasEnded && !session.isRunning) end(0);
      else if (!session.isRunning) terminal.prompt();
    };
    let hasEnded = false;
    const terminal = new TerminalLine({
      onLine: enter,
      onInterrupt: () => interrupt(),
      onEnd: () => {
        hasEnded = true;
        if (!session.isRunning) end(0);
      },
    });
    const session = start(() => process.exit(0), terminal.output);
    const interrupt = interruptOf(session, () => end(0));
    process.on("SIGINT", interrupt);
    terminal.prompt();
  });
}

function exitCodeOf(outcome: RunOutcome | undefined): number {
  if (outcome === "aborted") return EXIT_INTERRUPTED;
  return outcome === "error" ? EXIT_ERROR : 0;
}

function readArguments(args: string[]) {
  const options = { help: { type: "boolean", short: "h" }, model: { type: "string" } } as const;
  return parseArgs({ args, options, allowPositionals: true });
}

function refuse(fault: string): number {
  process.stderr.write(`${fault}. --help shows the usage.\n`);
  return EXIT_USAGE;
}

async function main(args: string[]): Promise<number> {
  let parsed: ReturnType<typeof readArguments>;
  try {
    parsed = readArguments(args);
  } catch (error) {
    const [fault] = (error as Error).message.split(/\. |\n/);
    process.stderr.write(`${fault}. Put a question that begins with "-" after "--"; --help shows the usage.\n`);
    return EXIT_USAGE;
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const question = positionals.join(" ").trim();
  if (question === "" && positionals.length > 0) return refuse("The question is empty; expected some words");
  let assistant: Assistant;
  let renderer: Renderer | undefined;
  try {
    assistant = assistantFor(values.model, process.env, (text) => renderer?.notice(text));
  } catch (error) {
    return refuse((error as Error).message);
  }
  const start: StartSession = (onQuit, screen) => {
    renderer = rendererFor(assistant, screen);
    const agent = createAgent({ ...assistant, tools: workspaceTools(process.cwd()), thinking: renderer.waits });
    return new Session(agent, renderer, { canSwitchModel: assistant.canSwitchModel, onQuit });
  };
  if (question !== "") return answerLines(start, [question], () => {});
  if (process.stdin.isTTY && process.stdout.isTTY) return converse(start, assistant.model.id);
  const lines = createInterface({ input: process.stdin });
  return answerLines(start, lines, () => lines.close());
}

/** Whoever reads the output may stop reading, as `head` does. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
}

process.exitCode = await main(process.argv.slice(2));
