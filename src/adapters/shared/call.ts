/** What every adapter does around a call of a vendor's client (SPEC 12.1, 12.2). */
import { errorText } from "../../errors.js";

/**
 * A signal for one request: a client may never take its listeners off it, and one run's signal serves many calls. `release`
 * when the request is complete; `cancel` when nobody reads on: what is still open of it is cancelled.
 */
export function requestSignal(signal: AbortSignal | undefined): { signal: AbortSignal; release(): void; cancel(): void } {
  const controller = new AbortController();
  const forward = (): void => controller.abort(signal?.reason);
  if (signal?.aborted) forward();
  else signal?.addEventListener("abort", forward);
  const release = (): void => signal?.removeEventListener("abort", forward);
  const cancel = (): void => {
    release();
    controller.abort();
  };
  return { signal: controller.signal, release, cancel };
}

/** What an aborted call ends with. */
export function abortError(signal: AbortSignal): Error {
  return Object.assign(new Error(`aborted: ${errorText(signal.reason)}`), { name: "AbortError" });
}

/** Loads an optional peer dependency; a missing one is named, with what to do. */
export async function importPeer<T>(caller: string, peer: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new Error(`${caller} needs the package "${peer}", which could not be loaded. Install it: npm install ${peer}.`, { cause });
  }
}
