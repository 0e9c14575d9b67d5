import type { LanguageModelV2StreamPart, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { MockLanguageModelV3 } from "ai/test";
import { MockLanguageModelV2 } from "ai5/test";
import type { AssistantMessage } from "turnloop";
import { type AiSdkLanguageModel, aiSdk } from "turnloop/ai-sdk";
import { ask } from "./helpers.js";

export type Version = AiSdkLanguageModel["specificationVersion"];
export const versions: Version[] = ["v2", "v3", "v4"];

export interface FakeModel {
  model: AiSdkLanguageModel;
  /** The options of each call, oldest first. */
  calls: any[];
}

/** A stream of these parts, which then ends or goes silent. */
export function streamOf(parts: readonly unknown[], end: "close" | "hang" = "close"): ReadableStream<any> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      if (end === "close") controller.close();
    },
  });
}

/** A model of this specification that answers each call with the stream: v2 and v3 are the AI SDK's own mocks. */
export function fakeModel(version: Version, doStream: () => ReadableStream<any>, provider = "fake.responses"): FakeModel {
  const calls: any[] = [];
  const answer = async (options: unknown) => {
    calls.push(options);
    return { stream: doStream() };
  };
  const common = { provider, modelId: "m", doStream: answer };
  if (version === "v2") return { model: new MockLanguageModelV2(common), calls };
  if (version === "v3") return { model: new MockLanguageModelV3(common), calls };
  return { model: { specificationVersion: "v4", ...common }, calls };
}

export type Part = LanguageModelV2StreamPart | LanguageModelV3StreamPart;

const usage = {
  flat: { inputTokens: 100, outputTokens: 7, totalTokens: 107, cachedInputTokens: 60 },
  nested: {
    inputTokens: { total: 100, noCache: 40, cacheRead: 60, cacheWrite: undefined },
    outputTokens: { total: 7, text: 5, reasoning: 2 },
  },
};

type Unified = (LanguageModelV3StreamPart & { type: "finish" })["finishReason"]["unified"];

/** The last part, as a version says it. `raw` is the provider's word in v3 and v4. */
export function finish(version: Version, unified: Unified = "stop", raw: string | undefined = unified): Part {
  return version === "v2"
    ? { type: "finish", finishReason: unified, usage: usage.flat }
    : { type: "finish", finishReason: { unified, raw }, usage: usage.nested };
}

export const text = (id: string, ...deltas: string[]): Part[] => [
  { type: "text-start", id },
  ...deltas.map((delta): Part => ({ type: "text-delta", id, delta })),
  { type: "text-end", id },
];

/** One answer of a model that sends these parts. */
export async function answerOf(version: Version, parts: readonly unknown[]): Promise<Awaited<ReturnType<typeof ask>>> {
  return ask(aiSdk(fakeModel(version, () => streamOf(parts)).model));
}

export const contentOf = async (version: Version, parts: readonly unknown[]): Promise<AssistantMessage["content"]> =>
  (await answerOf(version, [...parts, finish(version)])).message.content;
