/** Where thinking events go (SPEC 9.7). */
import { TurnLoopError } from "../errors.js";
import { isThenable } from "../loop/abort.js";
import type { ThinkingEvent, ThinkingOptions } from "./thinking-card.js";

/** One way to show a wait. */
export interface ProgressChannel {
  /** Asked when a card starts. */
  available(): boolean;
  send(event: ThinkingEvent): void | Promise<void>;
}

/**
 * An `onProgress` that sends each card to the first channel available when it starts, and stays with that one. Without any
 * the card is not shown.
 *
 * @example
 * withThinkingCard(streamFn, { onProgress: routeProgress([toolCardChannel(connection, sessionId), rawTextChannel()]) });
 */
export function routeProgress(channels: readonly ProgressChannel[]): NonNullable<ThinkingOptions["onProgress"]> {
  const open = new Map<string, ProgressChannel>();
  /** A `complete` that failed comes a second time. */
  const closing = new WeakMap<ThinkingEvent, ProgressChannel>();
  return (event) => {
    const { cardId, state } = event;
    const channel = state === "start" ? channels.find(isAvailable) : (open.get(cardId) ?? closing.get(event));
    if (!channel) return undefined;
    if (state === "start") open.set(cardId, channel);
    if (state === "complete") {
      open.delete(cardId);
      closing.set(event, channel);
    }
    return channel.send(event);
  };
}

/** Tells a start and its heartbeats as text, for a client that shows reasoning. It never says that the wait is over. */
export function thoughtTextChannel(send: (text: string) => void | Promise<void>): ProgressChannel {
  return {
    available: () => true,
    send: ({ state, title }) => (state === "complete" ? undefined : send(title)),
  };
}

/** @inline */
type Write = ((text: string) => unknown) | { write(text: string): unknown };

/**
 * One line of text for a start and for each heartbeat. `write` is a function or a writable stream. With `stdioRpc` the
 * standard output belongs to a protocol: giving it throws `invalid_argument`.
 *
 * @param write default: the standard error; where there is none, the channel is not available
 */
export function rawTextChannel(write?: Write, options?: { stdioRpc?: boolean }): ProgressChannel {
  if (options?.stdioRpc && isStdout(write)) {
    throw new TurnLoopError(
      "invalid_argument",
      "rawTextChannel: the standard output carries a protocol (stdioRpc), which text would break. Give process.stderr or leave it out.",
    );
  }
  const target = (): Write | undefined => write ?? standardStream("stderr");
  return {
    available: () => target() !== undefined,
    async send({ state, title }) {
      if (state === "complete") return;
      const to = target();
      const written: unknown = typeof to === "function" ? to(`${title}\n`) : to?.write(`${title}\n`);
      if (isThenable(written)) await written;
    },
  };
}

function isAvailable(channel: ProgressChannel): boolean {
  try {
    return channel.available() === true;
  } catch {
    return false;
  }
}

function isStdout(write: Write | undefined): boolean {
  const stdout = standardStream("stdout");
  return write !== undefined && (write === stdout || write === stdout?.write || Object(write).fd === 1);
}

function standardStream(name: "stdout" | "stderr"): { write(text: string): unknown } | undefined {
  return (globalThis as { process?: Partial<Record<typeof name, { write(text: string): unknown }>> }).process?.[name];
}
