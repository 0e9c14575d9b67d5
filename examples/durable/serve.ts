import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { createEndpointHandler } from "@restatedev/restate-sdk";
import { type ConversationHost, conversationServices } from "./conversation.js";

/** Serves the conversations on 127.0.0.1; gives the port. */
export function serve(host: ConversationHost, port: number): Promise<number> {
  const server = createServer(createEndpointHandler({ services: conversationServices(host) }));
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}
