/** An agent for editors: the demo's assistant over the Agent Client Protocol, on standard input and output. */
import { Console } from "node:console";
import { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import { type AcpAgent, type AcpAgentOptions, createAcpAgent, requestPermission } from "turnloop/acp";
import { assistantFor, createAgent } from "./assistant.js";
import { workspaceTools } from "./workspace-tools.js";

const USAGE = `Usage: npm run acp --silent
       node dist-examples/acp-agent.js [--help]

Speaks the Agent Client Protocol (version 1) on the standard input and output, where an editor starts it. It answers questions
about the files of the session's folder with a small offline model: no key, no network. The user is asked before it looks at
a file. All else it has to say goes to the standard error. It ends when its input does.

With OPENAI_MODEL it talks to any OpenAI-compatible server instead: that of OPENAI_BASE_URL, with the key OPENAI_API_KEY. One of
the two is enough: without an address it is OpenAI's own, and many servers need no key.

  HEARTBEAT_MS  milliseconds between two signs of life while the model is silent, 0 for none; default 30000
  -h, --help    shows this text

Exit code: 0 the client is gone, 2 wrong usage.
`;

const EXIT_USAGE = 2;

/** Looking at files is the user's to allow; arithmetic needs no permission. */
const FREE_TOOLS = ["calculate"];

/** Throws an Error for an environment that cannot work. */
function agentFor(environment: NodeJS.ProcessEnv): AcpAgent {
  const { OPENAI_MODEL, HEARTBEAT_MS } = environment;
  const assistant = assistantFor(OPENAI_MODEL || undefined, environment, (text) => console.error(text));
  return createAcpAgent({
    thinking: thinkingOf(HEARTBEAT_MS),
    agentInfo: { name: "turnloop-example", title: "turnloop example", version: "0.1.0" },
    createAgent: ({ cwd, connection, sessionId }) =>
      createAgent({
        ...assistant,
        tools: workspaceTools(cwd),
        beforeToolCall: requestPermission(connection, sessionId, { ask: ({ toolCall }) => !FREE_TOOLS.includes(toolCall.name) }),
      }),
  });
}

function thinkingOf(heartbeat: string | undefined): AcpAgentOptions["thinking"] {
  if (!heartbeat) return true;
  if (!/^\d+$/.test(heartbeat)) throw new Error(`HEARTBEAT_MS must be a number of milliseconds such as 30000; got "${heartbeat}"`);
  return { heartbeatMs: Number(heartbeat) };
}

async function main(args: string[]): Promise<number> {
  let agent: AcpAgent;
  try {
    const { values } = parseArgs({ args, options: { help: { type: "boolean", short: "h" } } });
    if (values.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    agent = agentFor(process.env);
  } catch (error) {
    const [fault] = (error as Error).message.split(/\. (?=[A-Z])/);
    console.error(`${fault}. --help shows the usage.`);
    return EXIT_USAGE;
  }
  if (process.stdin.isTTY) console.error("Waiting for an ACP client on the standard input. --help shows the usage; Ctrl-D ends.");
  else process.on("SIGINT", () => {}); // Ctrl-C where the client runs is the client's: it cancels, or closes the input
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
  await agent.connect(ndJsonStream(Writable.toWeb(process.stdout), input)).closed;
  return 0;
}

/** Protocol frames only on the standard output: a package that logs, as the client of OpenAI does when OPENAI_LOG is set, would break it. */
globalThis.console = new Console(process.stderr);

/** Nobody has to read: a broken standard output ends the connection, a broken standard error nothing. */
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

process.exitCode = await main(process.argv.slice(2));
