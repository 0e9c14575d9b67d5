import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Conversations } from "../restate-client.js";
import { freePorts, type RestateServer, startRestateServer } from "../restate-server.js";
import { startWorkerProcess, type WorkerProcess } from "../worker-process.js";

const UNTIL_MS = 20_000;

/** A Restate server and workers to kill, with the folder that their scripted host writes to. */
export class World {
  readonly #folder = mkdtempSync(join(tmpdir(), "turnloop-durable-"));
  readonly #workers = new Map<number, WorkerProcess>();
  readonly #server: RestateServer;
  readonly conversations: Conversations;
  #balancer: Server | undefined;

  static async create(): Promise<World> {
    return new World(await startRestateServer());
  }

  private constructor(server: RestateServer) {
    this.#server = server;
    this.conversations = new Conversations(server);
  }

  /** Starts workers; the server is given one address for all of them. Gives their ports. */
  async startWorkers(count: number): Promise<number[]> {
    const ports = await freePorts(count);
    await Promise.all(ports.map((port) => this.restart(port)));
    await this.conversations.register(`http://127.0.0.1:${await this.#balance(ports)}`);
    return ports;
  }

  /** On the same port: a run belongs to the address it was started on. */
  async restart(port: number): Promise<void> {
    const file = new URL("../dist/test/scripted-worker.js", import.meta.url);
    this.#workers.set(port, await startWorkerProcess(file, port, { TEST_FOLDER: this.#folder }));
  }

  async kill(port: number): Promise<void> {
    await this.#workers.get(port)?.kill();
    this.#workers.delete(port);
  }

  /** Whatever has this name waits in the middle until it is released. */
  hold(name: string): void {
    writeFileSync(join(this.#folder, `hold ${name}`), "");
  }

  release(name: string): void {
    rmSync(join(this.#folder, `hold ${name}`));
  }

  lines(file: string): string[] {
    const path = join(this.#folder, file);
    return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
  }

  /** How often each model call and tool of a conversation was begun, by name. */
  effects(conversation: string): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const line of this.lines("effects")) {
      const [key, ...name] = line.split(" ");
      if (key === conversation) counts[name.join(" ")] = (counts[name.join(" ")] ?? 0) + 1;
    }
    return counts;
  }

  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = Date.now() + UNTIL_MS;
    while (!(await holds())) {
      if (Date.now() > deadline) throw new Error(`waited ${UNTIL_MS} ms for: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async destroy(): Promise<void> {
    for (const port of [...this.#workers.keys()]) await this.kill(port);
    this.#balancer?.close();
    await this.#server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Each connection goes to the next worker; one that is down takes it with it, and the server connects anew. */
  #balance(ports: number[]): Promise<number> {
    let next = 0;
    const server = createServer((incoming: Socket) => {
      const outgoing = connect(ports[next++ % ports.length] as number, "127.0.0.1");
      incoming.pipe(outgoing).pipe(incoming);
      for (const [socket, other] of [
        [incoming, outgoing],
        [outgoing, incoming],
      ] as const) {
        socket.on("error", () => {});
        socket.on("close", () => other.destroy());
      }
    });
    this.#balancer = server;
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)));
  }
}
