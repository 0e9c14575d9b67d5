/** One client of an event stream. It reads from the log when its connection takes more, so it never holds up a run. */
import type { ServerResponse } from "node:http";
import type { EventLog } from "./event-log.js";

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  // nginx would collect the stream otherwise
  "x-accel-buffering": "no",
};

export interface SseTimes {
  /** Milliseconds between two signs of life. A client that has taken nothing from one to the next is disconnected. */
  heartbeatMs: number;
  /** How long a client is told to wait before it connects again. */
  reconnectMs: number;
}

interface ClientOptions extends SseTimes {
  /** The last event the client knows. */
  after: number;
  /** What it gets before the events after that one. */
  snapshot?: Buffer;
}

export class SseClient {
  readonly #response: ServerResponse;
  readonly #log: EventLog;
  readonly #heartbeat: NodeJS.Timeout;
  #sent: number;
  /** Nothing has been taken since the last heartbeat. */
  #isStuck = false;

  constructor(response: ServerResponse, log: EventLog, { after, snapshot, heartbeatMs, reconnectMs }: ClientOptions) {
    this.#response = response;
    this.#log = log;
    this.#sent = after;
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs).unref();
    response.on("drain", () => {
      this.#isStuck = false;
      this.pump();
    });
    response.on("close", () => clearInterval(this.#heartbeat));
    // a broken connection is told by "close"
    response.on("error", () => {});
    response.writeHead(200, HEADERS);
    response.write(`retry: ${reconnectMs}\n\n`);
    if (snapshot) response.write(snapshot);
    this.pump();
  }

  /** What waits in this process to be sent: never more than the stream's high-water mark and one event. */
  get bufferedBytes(): number {
    return this.#response.writableLength;
  }

  /** Sends what is new as far as the client takes it. One whose next event is gone from the log is too slow, and disconnected. */
  pump(): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    while (!this.#response.writableNeedDrain && this.#sent < this.#log.last && this.#log.canFollow(this.#sent)) {
      this.#response.write(this.#log.get(++this.#sent));
    }
    if (!this.#log.canFollow(this.#sent)) this.#response.destroy();
  }

  end(): void {
    if (this.#sent < this.#log.last) this.#response.destroy();
    else this.#response.end();
  }

  #beat(): void {
    if (!this.#response.writableNeedDrain) this.#response.write(": still here\n\n");
    else if (this.#isStuck) this.#response.destroy();
    else this.#isStuck = true;
  }
}
