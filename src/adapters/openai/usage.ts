import type { Usage } from "../../messages.js";

/** What both APIs say of the input beside its count. */
export interface InputDetails {
  cached_tokens?: number | null;
  cache_write_tokens?: number | null;
}

/**
 * The count of input tokens holds what was read from and written to the cache; `input` does not (SPEC 12.2). Some servers
 * count reasoning in the total only.
 */
export function usageOf(
  inputTokens: unknown,
  outputTokens: unknown,
  total: unknown,
  details: InputDetails | null | undefined,
): Partial<Usage> {
  const cacheRead = count(details?.cached_tokens);
  const cacheWrite = count(details?.cache_write_tokens);
  const input = Math.max(0, count(inputTokens) - cacheRead - cacheWrite);
  return { input, output: Math.max(count(outputTokens), count(total) - count(inputTokens)), cacheRead, cacheWrite };
}

function count(value: unknown): number {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? value : 0;
}
