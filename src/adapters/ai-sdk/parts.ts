/** The parts of one answer, from a model's stream (SPEC 12.2, 14.3). */
import type { AiSdkLanguageModel, StreamPart } from "./language-model.js";

/** How long a stream may stay open after its last part. */
const CLOSING_MS = 1000;

type Opened = Awaited<ReturnType<AiSdkLanguageModel["doStream"]>>;

/**
 * Asks the model. Ends when the signal fires, whatever the model makes of it: some streams end, some fail, some hang. What
 * nobody reads any more is cancelled.
 */
export async function* readParts(languageModel: AiSdkLanguageModel, options: object, signal: AbortSignal): AsyncGenerator<StreamPart> {
  const opened = await unlessAborted(Promise.resolve(languageModel.doStream(options)), signal);
  if (!opened) return;
  const reader = opened.stream.getReader();
  // a pending read settles when its reader is cancelled
  const cancel = (): void => quietly(reader.cancel(signal.reason));
  let closing: ReturnType<typeof setTimeout> | undefined;
  signal.addEventListener("abort", cancel);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      if (typeof value !== "object" || value === null) continue;
      if (value.type === "finish") closing ??= setTimeout(cancel, CLOSING_MS);
      yield value;
    }
  } finally {
    clearTimeout(closing);
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

/** Undefined when the signal fires first; a stream that comes later is cancelled. */
function unlessAborted(opening: Promise<Opened>, signal: AbortSignal): Promise<Opened | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      resolve(undefined);
      quietly(opening.then(({ stream }) => stream.getReader().cancel(signal.reason)));
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    opening.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function quietly(promise: Promise<unknown>): void {
  promise.then(undefined, () => {});
}
