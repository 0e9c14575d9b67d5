/** What is used of the SDK's client context, and how updates reach the client (SPEC 10.1, 10.2). */
import type { SessionUpdate } from "@agentclientprotocol/sdk";

/** The client as an agent sees it: the SDK's `AgentContext`, or anything that sends as it does. */
export interface AcpConnection {
  notify(method: string, params?: any): Promise<void>;
  request(method: string, params?: any, options?: any): Promise<any>;
}

/** Sends one update. Resolves when it is written; rejects when the connection is closed. Never throws. */
export async function sendUpdate(connection: AcpConnection, sessionId: string, update: SessionUpdate): Promise<void> {
  await connection.notify("session/update", { sessionId, update });
}

type Progress = Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>;

/**
 * Sends updates in order. A tool that reports progress faster than the client reads it does not fill the line: what it
 * said while its last progress was being written is replaced by what it said last.
 */
export class UpdateSender {
  readonly #connection: AcpConnection;
  readonly #sessionId: string;
  /** Cards whose last progress is being written, with the newest progress since. */
  readonly #writing = new Map<string, Progress | undefined>();

  constructor(connection: AcpConnection, sessionId: string) {
    this.#connection = connection;
    this.#sessionId = sessionId;
  }

  send(updates: readonly SessionUpdate[]): void {
    for (const update of updates) {
      if (update.sessionUpdate !== "tool_call_update") this.#write(update);
      else if (update.status === "in_progress" && this.#writing.has(update.toolCallId)) this.#writing.set(update.toolCallId, update);
      else this.#sendProgress(update);
    }
  }

  #sendProgress(update: Progress): void {
    const { toolCallId, status } = update;
    const written = this.#write(update);
    if (status !== "in_progress") {
      this.#writing.delete(toolCallId);
      return;
    }
    this.#writing.set(toolCallId, undefined);
    written.then(() => {
      const newest = this.#writing.get(toolCallId);
      if (newest) this.#sendProgress(newest);
      else this.#writing.delete(toolCallId);
    });
  }

  /** A client that is gone hears nothing; its connection's end stops the run. */
  #write(update: SessionUpdate): Promise<void> {
    return sendUpdate(this.#connection, this.#sessionId, update).catch(() => {});
  }
}
