import type { ConversationHost } from "./conversation.js";

/** Serves on the port of the environment variable PORT and says so, in one line on stdout. */
export async function startWorker(host: ConversationHost): Promise<void> {
  defineWithResolvers();
  const { serve } = await import("./serve.js"); // the SDK is imported after that
  const port = await serve(host, Number(process.env["PORT"] ?? 0));
  console.log(`serving on ${port}`);
}

/** The SDK needs `Promise.withResolvers`, which Node has from 22 on; without it every invocation fails and is tried again, silently. */
function defineWithResolvers(): void {
  if ("withResolvers" in Promise) return;
  Object.defineProperty(Promise, "withResolvers", {
    configurable: true,
    writable: true,
    value: <T>() => {
      let resolve!: (value: T | PromiseLike<T>) => void;
      let reject!: (reason: unknown) => void;
      const promise = new Promise<T>((onResolve, onReject) => {
        resolve = onResolve;
        reject = onReject;
      });
      return { promise, resolve, reject };
    },
  });
}
