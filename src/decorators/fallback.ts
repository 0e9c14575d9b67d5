import { describe, TurnLoopError } from "../errors.js";
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
    throw new TurnLoopError("invalid_argument", `withFallback needs at least one { streamFn, model? }; got ${describe(candidates)}.`);
  }
  return async function* fallingBack(model, context, options) {
    for (const [index, candidate] of candidates.entries()) {
      const { failure, replay } = await beginAttempt(() => candidate.streamFn(candidate.model ?? model, context, options));
      const isLast = index === candidates.length - 1;
      if (!failure || failure.aborted || options?.signal?.aborted || isLast) return yield* replay();
    }
  };
}
