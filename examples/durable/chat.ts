/**
 * `npm run durable -- "a question"`: a Restate server, a worker and one conversation about the files here, all gone at the end.
 * With `--crash` the worker is killed after its first tool call and started again.
 */
import type { AgentMessage } from "turnloop";
import { Conversations } from "./restate-client.js";
import { freePorts, startRestateServer } from "./restate-server.js";
import { startWorkerProcess, type WorkerProcess } from "./worker-process.js";

const ANSWER_MS = 120_000;
const CONVERSATION = "example";

const args = process.argv.slice(2);
let crashes = args.includes("--crash");
const question = args.filter((arg) => arg !== "--crash").join(" ") || "How many lines does README.md have, and what is 12 * (3 + 4)?";

const server = await startRestateServer();
let worker: Promise<WorkerProcess> | undefined;
try {
  const [port = 0] = await freePorts(1);
  const start = (): Promise<WorkerProcess> =>
    startWorkerProcess(new URL("./worker.js", import.meta.url), port, { WORKSPACE: process.env["INIT_CWD"] ?? process.cwd() }, (line) => {
      console.log(`worker: ${line}`);
      if (crashes && line.endsWith(" is done")) crash();
    });
  const crash = (): void => {
    crashes = false;
    console.log("(the worker is killed, and started again)");
    worker = worker?.then((running) => running.kill()).then(start);
    worker?.catch(() => {}); // reported below
  };
  worker = start();
  await worker;
  const conversations = new Conversations(server);
  await conversations.register(`http://127.0.0.1:${port}`);
  console.log(`you: ${question}`);
  const reply = await conversations.reply(await conversations.prompt(CONVERSATION, question), ANSWER_MS);
  console.log(reply.error ?? textOf(reply.messages.at(-1)));
} finally {
  await worker?.then((running) => running.kill()).catch((error: unknown) => console.error(error));
  await server.stop();
}

function textOf(message: AgentMessage | undefined): string {
  if (message?.role !== "assistant") return "";
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}
