/** The demo's assistant on a web server, for several users at once. Run it with `npm run server`. */
import { fileURLToPath } from "node:url";
import type { AgentOptions } from "turnloop";
import { assistantFor, createAgent } from "../assistant.js";
import { workspaceTools } from "../workspace-tools.js";
import { type Host, startHost } from "./host.js";
import { readPage } from "./page-files.js";

const USAGE = `Usage: npm run server
       node dist-examples/server/main.js

Serves a page to talk about the files of the current folder. The model is a small offline one. With OPENAI_MODEL it is that model
of an OpenAI-compatible server: OPENAI_BASE_URL, OPENAI_API_KEY or both say which.

  PORT        where to listen (default 3000; 0 takes one that is free)
  HOST        the address to listen on (default 127.0.0.1: this machine only)
  -h, --help  shows this text

Whoever reaches the address can have the files of the folder read: put a log-in in front of it before it leaves this machine.
`;

const DEFAULT_PORT = 3000;
const MAX_PORT = 65_535;

/** Reading a file is the user's to allow. */
const ask: AgentOptions["beforeToolCall"] = ({ toolCall }) =>
  toolCall.name === "read_file" ? { suspend: true, reason: "It shows the content of a file to the model." } : undefined;

async function main({ PORT, HOST, OPENAI_MODEL }: NodeJS.ProcessEnv): Promise<void> {
  const port = Number(PORT || DEFAULT_PORT);
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) throw new Error(`PORT must be a number up to ${MAX_PORT}; got "${PORT}"`);
  const assistant = assistantFor(OPENAI_MODEL || undefined, process.env, (text) => process.stderr.write(`${text}\n`));
  const host = await startHost({
    page: readPage(fileURLToPath(new URL(".", import.meta.url))),
    port,
    hostname: HOST || "127.0.0.1",
    createAgent: () => createAgent({ ...assistant, tools: workspaceTools(process.cwd()), thinking: true, beforeToolCall: ask }),
  });
  shutDownOnSignal(host);
  process.stdout.write(`The files of ${process.cwd()} and ${assistant.model.id} are at ${host.url}/\n`);
}

/** A second signal does not wait. */
function shutDownOnSignal(host: Host): void {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      process.once(signal, () => process.exit(1));
      void host.close();
    });
  }
}

if (process.argv.slice(2).some((argument) => argument === "-h" || argument === "--help")) {
  process.stdout.write(USAGE);
} else {
  try {
    await main(process.env);
  } catch (error) {
    const { code, port, message } = error as NodeJS.ErrnoException & { port?: number };
    process.stderr.write(`${code === "EADDRINUSE" ? `Port ${port} is taken; PORT=0 takes one that is free.` : message}\n`);
    process.exitCode = 1;
  }
}
