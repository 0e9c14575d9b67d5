/** The hooks and polls a host gave to an Agent, as the loop takes them. */
import type { AgentLoopConfig } from "../config.js";
import { isThenable } from "../loop/abort.js";
import { takeIn } from "../loop/incoming.js";
import { HOOKS } from "../loop/run.js";
import type { AgentMessage } from "../messages.js";
import type { MessageQueue } from "./queue.js";

/** The host's own hooks, also those of a class. */
export function hooksOf(options: object): Partial<AgentLoopConfig> {
  const hooks: Record<string, unknown> = {};
  for (const hook of HOOKS) {
    const method: unknown = (options as Record<string, unknown>)[hook];
    if (typeof method === "function") hooks[hook] = method.bind(options);
  }
  return hooks;
}

type Polled = AgentMessage[] | undefined;

/** What a host's poll gave, and what waits. Nothing is taken from the queue when the loop would refuse the former. */
export function withQueued(polled: Polled | Promise<Polled>, queue: MessageQueue): AgentMessage[] | Promise<AgentMessage[]> {
  if (isThenable(polled)) return Promise.resolve(polled).then((settled) => withQueued(settled as Polled, queue));
  if (polled === undefined || polled === null) return queue.take();
  if (!Array.isArray(polled)) return polled;
  takeIn(polled);
  return [...polled, ...queue.take()];
}
