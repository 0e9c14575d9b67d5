import { misuse } from "../errors.js";
import { abortError } from "../loop/abort.js";
import { AssistantMessageBuilder } from "../message-builder.js";
import type { Model, StreamFn } from "../stream.js";
import { beginAttempt } from "./attempt.js";

export interface FallbackCandidate {
  streamFn: StreamFn;
  /** @default the model of the call */
  model?: Model;
}

/** Tries the candidates in order: the next one when one fails before any non-empty delta, whatever the failure, an abort aside (SPEC 11.3). */
export function withFallback(candidates: readonly FallbackCandidate[]): StreamFn {
  if (!Array.isArray(candidates) || candidates.length === 0 || candidates.some((candidate) => typeof candidate?.streamFn !== "function")) {
    throw misuse("The candidates of withFallback", "an array of at least one { streamFn, model? }", candidates);
  }
  return async function* fallingBack(model, context, options) {
    const signal = options?.signal;
    for (const [index, candidate] of candidates.entries()) {
      if (signal?.aborted) return yield* new AssistantMessageBuilder(model).fail(abortError(signal));
      const { failure, replay } = await beginAttempt(() => candidate.streamFn(candidate.model ?? model, context, options), signal);
      const isLast = index === candidates.length - 1;
      if (!failure || failure.aborted || signal?.aborted || isLast) return yield* replay();
    }
  };
}
