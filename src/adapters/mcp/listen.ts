/** How `tools/list_changed` is heard beside whatever the host listens to (SPEC 12.3). */
import type { McpClient } from "./client.js";

const METHOD = "notifications/tools/list_changed";

type Handler = (notification: unknown) => unknown;

/** What is read of an SDK client. It has no public way to ask for a handler; the map has had this name in every 1.x. */
interface Notified {
  fallbackNotificationHandler?: Handler;
  _notificationHandlers?: Map<string, Handler>;
}

/** One listener of ours among a client's handlers. */
interface Link {
  active: boolean;
  before: Handler | undefined;
}

const links = new WeakMap<Handler, Link>();

/** The notification's schema in the shape of a Zod 3 one, which every 1.x accepts: it is asked for the method and to parse. */
const listChanged = {
  shape: { method: { value: METHOD, _def: { value: METHOD } } },
  parse: (value: unknown): unknown => value,
  safeParse: (data: unknown): unknown => ({ success: true, data }),
};

/**
 * Calls `listener` at each change until the returned function is called. The handler the client had before goes on
 * hearing, and is put back at the end. What `listener` rejects with reaches the client's `onerror`.
 */
export function onToolsChanged(client: McpClient, listener: () => Promise<void>): () => void {
  if (!client.setNotificationHandler) return () => {};
  const notified = client as Notified;
  const handlers = notified._notificationHandlers;
  const link: Link = { active: true, before: handlers?.get(METHOD) };
  client.setNotificationHandler(listChanged, async (notification: unknown) => {
    const passOn = link.before ?? notified.fallbackNotificationHandler;
    await Promise.all([link.active ? listener() : undefined, Promise.resolve(notification).then(passOn)]);
  });
  const own = handlers?.get(METHOD);
  if (own) links.set(own, link);
  return () => {
    link.active = false;
    // a handler set later is not ours to take away; it may still call this one, which then only passes on
    if (!handlers || handlers.get(METHOD) !== own) return;
    const before = firstInUse(link.before);
    if (before) handlers.set(METHOD, before);
    else handlers.delete(METHOD);
  };
}

/** Skips listeners of ours that have been stopped meanwhile. */
function firstInUse(handler: Handler | undefined): Handler | undefined {
  let current = handler;
  for (let link = current && links.get(current); link && !link.active; link = current && links.get(current)) current = link.before;
  return current;
}
