/** The README's StreamFn word for word, on a provider that is one for each scenario. */
import { AssistantMessageBuilder, type LlmContext, type StreamFn } from "turnloop";
import { aborted } from "../helpers.js";

interface Part {
  text?: string;
  call?: { id: string; name: string; json: string };
  usage?: { input: number; output: number };
}

/** Rejects with the signal's own reason, as fetch does; a `key` of "hang, ends" just ends, as some clients do. */
async function* callMyProvider(
  _context: LlmContext,
  { signal, key = "" }: { signal?: AbortSignal | undefined; key?: string | undefined },
): AsyncGenerator<Part> {
  signal?.throwIfAborted();
  if (key === "calls") for (const id of ["a", "b"]) yield { call: { id, name: "weather", json: '{"city":"Paris"}' } };
  else for (const text of ["The sea ", "is wide."]) yield { text };
  yield { usage: { input: 3, output: 4 } };
  if (key === "error") throw new Error("down");
  if (!key.startsWith("hang") || !signal) return;
  await aborted(signal);
  if (key === "hang") throw signal.reason;
}

export const myModel: StreamFn = async function* (model, context, options) {
  const b = new AssistantMessageBuilder(model);
  try {
    for await (const part of callMyProvider(context, { signal: options?.signal, key: options?.apiKey })) {
      if (part.text) yield* b.text(part.text);
      if (part.call) {
        yield* b.toolCallStart(part.call.id, part.call.name);
        yield* b.toolCallDelta(part.call.json); // JSON text, in as many pieces as it comes
        yield* b.toolCallEnd();
      }
      if (part.usage) yield* b.usage(part.usage);
    }
    options?.signal?.throwIfAborted(); // some clients just end
    yield* b.done();
  } catch (error) {
    const isAborted = options?.signal?.aborted; // others reject with the signal's reason, which may be anything
    yield* b.fail(error, isAborted ? { kind: "aborted", retryable: false } : undefined);
  }
};
