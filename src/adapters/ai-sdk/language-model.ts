/** What is used of a language model of the AI SDK, as a shape: specifications v2, v3 and v4, from any copy of its packages (SPEC 12.1). */

/**
 * What every `LanguageModel` object of the AI SDK is: what `openai("gpt-5")` of `@ai-sdk/openai` gives, a gateway's model, one
 * behind `wrapLanguageModel`. Its types (`LanguageModelV2`, `LanguageModelV3`, `LanguageModelV4`) are accepted without a cast.
 */
export interface AiSdkLanguageModel {
  readonly specificationVersion: "v2" | "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  doStream(options: any): PromiseLike<{ stream: { getReader(): PartReader } }>;
}

/** @inline */
interface PartReader {
  read(): Promise<{ done: boolean; value?: any }>;
  cancel(reason?: unknown): Promise<void>;
}

/** A provider's own data about a block, by provider. It comes as `providerMetadata` and goes back as `providerOptions`. */
export type Metadata = Record<string, Record<string, unknown>>;

/** The fields that are read of a part of a stream; which of them are there depends on `type`. */
export interface StreamPart {
  type: string;
  id?: string;
  delta?: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  inputEncoding?: string;
  providerExecuted?: boolean;
  providerMetadata?: Metadata | undefined;
  usage?: PartUsage | undefined;
  /** v2: a word; v3 and v4: the word of all providers, and this provider's own. */
  finishReason?: string | { unified: string; raw?: string | undefined };
  error?: unknown;
}

/** v2: numbers; v3 and v4: numbers in groups. */
export interface PartUsage {
  inputTokens?: number | { total?: number; noCache?: number; cacheRead?: number; cacheWrite?: number };
  outputTokens?: number | { total?: number; text?: number; reasoning?: number };
  /** v2 */
  cachedInputTokens?: number;
  totalTokens?: number;
  reasoningTokens?: number;
}

/** The messages of a request. */
export type PromptMessage = { role: "system"; content: string } | { role: "user" | "assistant" | "tool"; content: PromptPart[] };

export type PromptPart = { type: string; providerOptions?: Metadata } & Record<string, unknown>;
