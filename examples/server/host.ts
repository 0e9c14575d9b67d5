/** The server as an object: started, asked, shut down. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Conversations, type ConversationsOptions } from "./conversations.js";
import { HttpError, sendJson } from "./http.js";
import type { Page } from "./page-files.js";
import { answer } from "./routes.js";

export interface HostOptions extends Partial<Omit<ConversationsOptions, "createAgent">> {
  /** Called once for each conversation. */
  createAgent: ConversationsOptions["createAgent"];
  /** @default no page */
  page?: Page;
  /** @default "127.0.0.1" */
  hostname?: string;
  /** 0: one that is free. @default 0 */
  port?: number;
  /** The most that a request may send. @default 64 kB */
  bodyBytes?: number;
  /** How long clients may take to get their last bytes at the end. @default 2000 */
  closeGraceMs?: number;
}

export interface Host {
  /** Without a slash at its end. */
  url: string;
  conversations: Conversations;
  /** Takes no more requests, aborts the runs, and resolves when every client has got the end, or was given up. */
  close(): Promise<void>;
}

/** What is kept of the conversations comes to 1 GB at the most. */
const LIMITS = {
  maxConversations: 200,
  logBytes: 2_000_000,
  transcriptBytes: 2_000_000,
  maxWaiting: 16,
  maxClients: 16,
  idleMs: 30 * 60_000,
  heartbeatMs: 15_000,
  reconnectMs: 1000,
  now: Date.now,
};
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** Rejects if it cannot listen there. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { hostname = "127.0.0.1", port = 0, page = new Map(), bodyBytes = 64_000, closeGraceMs = 2000 } = options;
  const conversations = new Conversations({ ...LIMITS, ...options });
  const isLoopback = LOOPBACK.includes(hostname) || hostname === "::1";
  // a foreign page whose name leads here must not get at the tools
  const isOwnName = (host: string): boolean => !isLoopback || LOOPBACK.includes(host.replace(/:\d+$/, ""));
  const routes = { conversations, page, bodyBytes, isOwnName };
  const server = createServer((request, response) => {
    if (server.listening) return void answer(routes, request, response);
    const { status, code, message, headers } = new HttpError(503, "closing", "The server is shutting down.", { connection: "close" });
    sendJson(response, status, { error: { code, message } }, headers);
  });
  server.listen(port, hostname);
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    url: `http://${address.family === "IPv6" ? `[${address.address}]` : address.address}:${address.port}`,
    conversations,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      await conversations.close();
      server.closeIdleConnections();
      const givingUp = setTimeout(() => server.closeAllConnections(), closeGraceMs);
      await closed;
      clearTimeout(givingUp);
    },
  };
}
