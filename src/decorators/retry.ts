import { assertAtLeast } from "../errors.js";
import { abortError, ignoringFailure, pause } from "../loop/abort.js";
import { AssistantMessageBuilder } from "../message-builder.js";
import type { ModelErrorInfo } from "../messages.js";
import type { StreamFn } from "../stream.js";
import { beginAttempt } from "./attempt.js";

export interface RetryOptions {
  /** @default 3 */
  maxRetries?: number;
  /** No wait is shorter. @default 500 */
  minDelayMs?: number;
  /** No wait is longer, whatever the server asks for. @default 30_000 */
  maxDelayMs?: number;
  /** Decides in place of `info.retryable`. `attempt` counts from 1; `info` is `unknown` for failures that say nothing. */
  shouldRetry?(info: ModelErrorInfo, attempt: number): boolean;
  /** Called before each wait. What it throws is ignored. */
  onRetry?(retry: { attempt: number; delayMs: number; info: ModelErrorInfo }): void;
}

/**
 * Calls the model again when it failed before any non-empty delta and the failure is retryable: exponential backoff with
 * jitter, the server's `retryAfterMs` honoured. Nothing of a failed attempt is shown. An abort ends a wait at once (SPEC 11.1).
 */
export function withRetry(streamFn: StreamFn, options: RetryOptions = {}): StreamFn {
  const { maxRetries = 3, minDelayMs = 500, maxDelayMs = 30_000, shouldRetry = (info) => info.retryable, onRetry } = options;
  for (const [name, value] of Object.entries({ maxRetries, minDelayMs, maxDelayMs })) {
    assertAtLeast(0, `withRetry: ${name}`, value);
  }
  return async function* retrying(model, context, streamOptions) {
    const signal = streamOptions?.signal;
    for (let attempt = 1; ; attempt++) {
      if (signal?.aborted) return yield* new AssistantMessageBuilder(model).fail(abortError(signal));
      const { failure, replay } = await beginAttempt(() => streamFn(model, context, streamOptions), signal);
      const again = failure && !failure.aborted && !signal?.aborted && attempt <= maxRetries && shouldRetry(failure.info, attempt) === true;
      if (!again) return yield* replay();
      const delayMs = waitBefore(attempt, failure.info, minDelayMs, maxDelayMs);
      // a host that cannot be told must not cost the call its next attempt
      ignoringFailure(() => onRetry?.({ attempt, delayMs, info: failure.info }));
      await pause(delayMs, signal);
    }
  };
}

function waitBefore(attempt: number, { retryAfterMs = 0 }: ModelErrorInfo, minDelayMs: number, maxDelayMs: number): number {
  const backoff = minDelayMs * 2 ** (attempt - 1) * (1 + Math.random());
  const asked = retryAfterMs > 0 ? retryAfterMs : 0;
  return Math.max(minDelayMs, Math.min(Math.max(backoff, asked), maxDelayMs));
}
