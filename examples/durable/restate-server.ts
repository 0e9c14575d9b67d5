/** A Restate server for tests and for trying things out: free ports, a folder of its own that is deleted at the end. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const READY_MS = 30_000;

export interface RestateServer {
  ingress: string;
  admin: string;
  stop(): Promise<void>;
}

export async function startRestateServer(): Promise<RestateServer> {
  const [ingressPort, adminPort, nodePort] = await freePorts(3);
  const folder = mkdtempSync(join(tmpdir(), "turnloop-restate-"));
  const child = spawn(binary(), [], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      PATH: process.env["PATH"],
      DO_NOT_TRACK: "1",
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BASE_DIR: folder,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingressPort}`,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${nodePort}`,
      RESTATE_ADMIN__DISABLE_WEB_UI: "true",
      RESTATE_DEFAULT_NUM_PARTITIONS: "2",
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: "128MB",
      RESTATE_DEFAULT_RETRY_POLICY__INITIAL_INTERVAL: "100ms",
      RESTATE_DEFAULT_RETRY_POLICY__MAX_INTERVAL: "500ms",
      RESTATE_WORKER__INVOKER__HTTP2_STREAMS_PER_CONNECTION_LIMIT: "8", // so that several workers get work
      RESTATE_LOG_FILTER: "error,octocrab=off", // it asks for its newest version
    },
  });
  const kill = (): void => {
    child.kill("SIGKILL"); // nothing it has is wanted any more
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  };
  process.once("exit", kill);
  const server: RestateServer = {
    ingress: `http://127.0.0.1:${ingressPort}`,
    admin: `http://127.0.0.1:${adminPort}`,
    stop: async () => {
      process.off("exit", kill);
      const ended = hasEnded(child);
      child.kill("SIGKILL");
      await ended;
      kill();
    },
  };
  try {
    await ready(child, [`${server.admin}/health`, `${server.ingress}/restate/health`]);
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

/** The server itself: its wrapper, when killed, leaves it running. */
function binary(): string {
  const name = `@restatedev/restate-server-${process.platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), "bin", "restate-server");
  } catch (cause) {
    throw new Error(`There is no Restate server for this platform: ${name} is not installed. Run npm ci in examples/durable.`, { cause });
  }
}

async function ready(child: ChildProcess, addresses: string[]): Promise<void> {
  const deadline = Date.now() + READY_MS;
  for (const address of addresses) {
    while (!(await answers(address))) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`The Restate server ended with ${child.exitCode ?? child.signalCode}.`);
      if (Date.now() > deadline) throw new Error(`The Restate server did not answer at ${address} within ${READY_MS} ms.`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function answers(address: string): Promise<boolean> {
  return fetch(address, { signal: AbortSignal.timeout(1000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

export function hasEnded(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once("exit", () => resolve()));
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
