/**
 * What the core suite asks of its host beyond the web's interfaces, for hosts without Node's: listeners that can be counted, unhandled
 * rejections, macrotasks, an environment. To be loaded first.
 */
interface Entry {
  type: string;
  listener: unknown;
  capture: boolean;
  /** For a listener that is called once: one more, after which it is not there. */
  after?: () => void;
}

const entries = new WeakMap<EventTarget, Entry[]>();
export const listenersOf = (target: EventTarget, type: string): unknown[] =>
  (entries.get(target) ?? []).filter((entry) => entry.type === type).map(({ listener }) => listener);

const { addEventListener, removeEventListener } = EventTarget.prototype;
const capturing = (options: AddEventListenerOptions | boolean | undefined): boolean =>
  typeof options === "object" ? Boolean(options?.capture) : Boolean(options);

function forget(target: EventTarget, { type, listener, capture }: Entry): void {
  const held = entries.get(target) ?? [];
  const at = held.findIndex((entry) => entry.type === type && entry.listener === listener && entry.capture === capture);
  if (at < 0) return;
  const [entry] = held.splice(at, 1);
  if (entry?.after) removeEventListener.call(target, type, entry.after, capture);
}

EventTarget.prototype.addEventListener = function (type, listener, options) {
  const entry: Entry = { type, listener, capture: capturing(options) };
  forget(this, entry);
  entries.set(this, [...(entries.get(this) ?? []), entry]);
  addEventListener.call(this, type, listener, options);
  if (typeof options !== "object" || !options?.once) return;
  entry.after = () => forget(this, entry);
  addEventListener.call(this, type, entry.after, options);
};
EventTarget.prototype.removeEventListener = function (type, listener, options) {
  forget(this, { type, listener, capture: capturing(options) });
  removeEventListener.call(this, type, listener, options);
};

type Handler = (reason: unknown) => void;

/** The part of Node's `process` that tests use. A host that has none reports only unhandled rejections, no warnings. */
class BrowserProcess {
  readonly env: Record<string, string | undefined> = {};
  readonly #handlers = new Map<string, Handler[]>();

  constructor() {
    // in a window not by its own method, which vitest's browser mode watches: when somebody listens, it does so no longer
    const listen = globalThis.document ? addEventListener : globalThis.addEventListener;
    listen.call(globalThis, "unhandledrejection", (event: Event) => {
      const handlers = this.listeners("unhandledRejection");
      if (handlers.length > 0) event.preventDefault();
      for (const handler of handlers) handler((event as PromiseRejectionEvent).reason);
    });
  }

  listeners(name: string): Handler[] {
    return [...(this.#handlers.get(name) ?? [])];
  }

  on(name: string, handler: Handler): void {
    this.#handlers.set(name, [...this.listeners(name), handler]);
  }

  off(name: string, handler: Handler): void {
    const handlers = this.listeners(name);
    const at = handlers.lastIndexOf(handler);
    if (at >= 0) this.#handlers.set(name, [...handlers.slice(0, at), ...handlers.slice(at + 1)]);
  }

  removeAllListeners(name: string): void {
    this.#handlers.delete(name);
  }
}

/** A task for each call, never under a fake clock: by messages in browsers, where timers in timers wait 4 ms. */
function immediate(): (callback: () => void) => void {
  const { document, setTimeout } = globalThis;
  if (!document) {
    return (callback) => void setTimeout(callback, 0);
  }
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.onmessage = () => waiting.shift()?.();
  return (callback) => {
    waiting.push(callback);
    port2.postMessage(undefined);
  };
}

const host = globalThis as { process?: unknown; setImmediate?: unknown };
host.process ??= new BrowserProcess();
host.setImmediate ??= immediate();
