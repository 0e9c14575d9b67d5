/** An agent for editors: the demo's assistant over the Agent Client Protocol, on standard input and output. `npm run acp` */
import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import { createAcpAgent, requestPermission } from "turnloop/acp";
import { assistantFor, createAgent } from "./assistant.js";
import { workspaceTools } from "./workspace-tools.js";

const USAGE = `Usage: npm run acp
       node dist-examples/acp-agent.js

Speaks the Agent Client Protocol (version 1) on standard input and output; an editor starts it. The model is a small offline
one. With OPENAI_MODEL it is that model of an OpenAI-compatible server: OPENAI_BASE_URL, OPENAI_API_KEY or both say which.

  HEARTBEAT_MS  milliseconds between two signs of life while the model is silent (default 30000)
  -h, --help    shows this text
`;

/** Looking at files is the user's to allow; arithmetic needs no permission. */
const FREE_TOOLS = ["calculate"];

function main(): Promise<void> {
  const { OPENAI_MODEL, HEARTBEAT_MS } = process.env;
  const assistant = assistantFor(OPENAI_MODEL || undefined, process.env, (text) => process.stderr.write(`${text}\n`));
  const agent = createAcpAgent({
    thinking: HEARTBEAT_MS ? { heartbeatMs: Number(HEARTBEAT_MS) } : true,
    agentInfo: { name: "turnloop-example", title: "turnloop example", version: "0.1.0" },
    createAgent: ({ cwd, connection, sessionId }) =>
      createAgent({
        ...assistant,
        tools: workspaceTools(cwd),
        beforeToolCall: requestPermission(connection, sessionId, { ask: ({ toolCall }) => !FREE_TOOLS.includes(toolCall.name) }),
      }),
  });
  return agent.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>)).closed;
}

if (process.argv.slice(2).some((argument) => argument === "-h" || argument === "--help")) {
  process.stdout.write(USAGE);
} else {
  try {
    await main();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
