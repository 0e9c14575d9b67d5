/** A stream read event by event, as the loop itself would take it (SPEC 3.1, 3.3, 3.4). */
import { ignoringFailure } from "../loop/abort.js";
import { assertStream } from "../loop/assistant.js";
import type { AssistantMessage } from "../messages.js";
import type { AssistantMessageEvent, AssistantStream } from "../stream.js";

export type StreamEvent = AssistantMessageEvent<string>;

/** How long `result()` may take when a stream ended without a terminal event. */
const RESULT_TIMEOUT_MS = 1000;

export class EventReader {
  readonly #stream: AssistantStream;
  readonly #iterator: AsyncIterator<StreamEvent>;
  readonly #signal: AbortSignal | undefined;
  #ended = false;
  #stopWaiting = (): void => {};

  /** Throws for what cannot be iterated. After an abort `result()` is not waited for. */
  constructor(stream: AssistantStream, signal?: AbortSignal) {
    this.#stream = assertStream(stream);
    this.#signal = signal;
    this.#iterator = stream[Symbol.asyncIterator]();
  }

  /** The next event, the terminal one last; undefined when there is none. */
  async next(): Promise<StreamEvent | undefined> {
    while (!this.#ended) {
      const next = await this.#iterator.next();
      if (this.#ended) return undefined;
      if (next.done) return this.#end(await this.#result());
      const event: StreamEvent | undefined = next.value;
      if (event?.type === "done" || event?.type === "error") return this.#end(event);
      if (typeof event === "object" && event !== null) return event;
    }
    return undefined;
  }

  /** Lets the stream clean up; nobody waits for that. */
  close(): void {
    this.#ended = true;
    this.#stopWaiting();
    ignoringFailure(() => this.#iterator.return?.());
  }

  #end(event: StreamEvent | undefined): StreamEvent | undefined {
    this.#ended = true;
    return event;
  }

  async #result(): Promise<StreamEvent | undefined> {
    if (typeof this.#stream.result !== "function" || this.#signal?.aborted) return undefined;
    const timeout = new Promise<undefined>((resolve) => {
      const timer = setTimeout(resolve, RESULT_TIMEOUT_MS, undefined);
      const stop = (): void => {
        clearTimeout(timer);
        this.#signal?.removeEventListener("abort", stop);
        resolve(undefined);
      };
      this.#stopWaiting = stop;
      this.#signal?.addEventListener("abort", stop);
    });
    try {
      const message: AssistantMessage<string> | undefined = await Promise.race([this.#stream.result(), timeout]);
      return message && terminalEvent(message);
    } finally {
      this.#stopWaiting();
    }
  }
}

function terminalEvent(message: AssistantMessage<string>): StreamEvent {
  const { stopReason } = message;
  if (stopReason === "error" || stopReason === "aborted") return { type: "error", reason: stopReason, error: message };
  return { type: "done", reason: stopReason, message };
}
