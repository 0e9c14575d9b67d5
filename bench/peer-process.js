/** A peer's process, as peers.js sees it. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("worker.js", import.meta.url));

/** No peer may report to a service; none may write to the console either. */
const env = { ...process.env, LANGSMITH_TRACING: "false", LANGCHAIN_TRACING_V2: "false", OPENAI_AGENTS_DISABLE_TRACING: "1" };

export class PeerProcess {
  #child;
  #answered;

  constructor(file) {
    this.file = file;
  }

  /** The answer to a command. Rejects when the peer fails; after `limitMs` the process is ended and the next command starts another. */
  async ask(command, options = {}, limitMs = 120_000) {
    if (!this.#child) await this.#start();
    return this.#request(() => this.#child.send({ command, ...options }), limitMs);
  }

  end() {
    this.#child?.removeAllListeners();
    this.#child?.kill();
    this.#child = undefined;
  }

  #start() {
    return this.#request(() => {
      // 4 GB for each: what a peer keeps of a long run is for it to keep
      const execArgv = ["--expose-gc", "--no-warnings", "--max-old-space-size=4096"];
      this.#child = fork(WORKER, [this.file], { env, execArgv, stdio: ["ignore", "ignore", "ignore", "ipc"] });
      this.#child.on("message", ({ value, error }) => this.#answered(error, value));
      this.#child.on("exit", (code, signal) => this.#answered(`its process ended (${signal ?? code})`));
    }, 60_000);
  }

  #request(send, limitMs) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#answered(`took more than ${Math.round(limitMs / 1000)} s`), limitMs);
      this.#answered = (error, value) => {
        clearTimeout(timer);
        this.#answered = () => {};
        if (error === undefined) return resolve(value);
        this.end();
        reject(new Error(error));
      };
      send();
    });
  }
}
