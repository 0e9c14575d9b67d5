/** A provider's data about a block, kept in the block's signature for its replay (SPEC 12.1). */
import type { Metadata } from "./language-model.js";

/** `provider` is that of the language model: the host's own name for it may stand for several. */
export function sign(provider: string, metadata: Metadata | undefined): string {
  return JSON.stringify(metadata ? { provider, metadata } : { provider });
}

/** What goes back with a block that was written through `provider`; undefined for one of another origin. */
export function replay(signature: string | undefined, provider: string): { providerOptions?: Metadata } | undefined {
  let signed: { provider?: unknown; metadata?: Metadata } | null = null;
  try {
    signed = JSON.parse(signature ?? "null");
  } catch {
    // another adapter's
  }
  if (signed?.provider !== provider) return undefined;
  return signed.metadata ? { providerOptions: signed.metadata } : {};
}
