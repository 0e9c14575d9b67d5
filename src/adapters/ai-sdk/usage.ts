import type { Usage } from "../../messages.js";
import type { Metadata, PartUsage } from "./language-model.js";

/** `input` holds neither cache reads nor writes (SPEC 12.2). */
export function readUsage(usage: PartUsage, metadata: Metadata | undefined): Partial<Usage> {
  const { inputTokens: given, outputTokens: written } = usage;
  const output = typeof written === "object" ? (written?.total ?? count(written?.text) + count(written?.reasoning)) : written;
  if (typeof given !== "object" || given === null) {
    return { ...flatInput(given, usage.cachedInputTokens, metadata), output: count(output) + reasoningApart(usage) };
  }
  const cacheRead = count(given.cacheRead);
  const cacheWrite = count(given.cacheWrite);
  const input = count(given.noCache ?? count(given.total) - cacheRead - cacheWrite);
  return { input, output: count(output), cacheRead, cacheWrite };
}

/**
 * v2 does not say whether the input's count holds what came from the cache: it does for most providers, and does not for
 * those two, which tell what was written to it beside.
 */
function flatInput(inputTokens: unknown, cachedInputTokens: unknown, metadata: Metadata | undefined): Partial<Usage> {
  const { anthropic, bedrock } = metadata ?? {};
  const cacheRead = count(cachedInputTokens);
  const cacheWrite = count(anthropic?.["cacheCreationInputTokens"] ?? Object(bedrock?.["usage"]).cacheWriteInputTokens);
  const apart = anthropic !== undefined || bedrock !== undefined || cacheRead > count(inputTokens);
  return { input: apart ? count(inputTokens) : count(inputTokens) - cacheRead, cacheRead, cacheWrite };
}

/** v2: some providers count reasoning in the total, and not in the output they charge for. */
function reasoningApart({ inputTokens, outputTokens, totalTokens, reasoningTokens }: PartUsage): number {
  return Math.min(count(reasoningTokens), count(count(totalTokens) - count(inputTokens) - count(outputTokens)));
}

function count(value: unknown): number {
  return typeof value === "number" && value > 0 && Number.isFinite(value) ? value : 0;
}
