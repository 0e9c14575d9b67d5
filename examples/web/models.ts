/** The two models the page can talk to. */
import { type Model, type ModelErrorInfo, type StreamFn, withRetry, withStallTimeout } from "turnloop";
import { openaiChat } from "turnloop/openai";
import { offlineModel } from "../offline-model.js";
import { SKILLS } from "./skills.js";
import { sleep } from "./tools/proofread.js";

export interface Endpoint {
  baseURL: string;
  apiKey: string;
  model: string;
}

export interface ModelChoice {
  model: Model;
  streamFn: StreamFn;
  /** What to show: "offline", or the host of the server. */
  place: string;
}

const CHUNK_DELAY_MS = 30;
const FIRST_WORD_DELAY_MS = 500;
const FIRST_EVENT_MS = 120_000;
const IDLE_MS = 60_000;

/** A planner in the page. It takes a moment before its first word, as a real one does. */
export function offlineChoice(): ModelChoice {
  const plan = offlineModel({ chunkDelayMs: CHUNK_DELAY_MS, skills: SKILLS, countWords: true });
  return {
    place: "in this page",
    model: { id: "offline-planner", provider: "turnloop-examples", api: "offline" },
    async *streamFn(model, context, options) {
      // the planner itself tells of an abort
      await sleep(FIRST_WORD_DELAY_MS, options?.signal).catch(() => {});
      yield* await plan(model, context, options);
    },
  };
}

/** Whatever speaks Chat Completions at the address and lets this page in (CORS). */
export function endpointChoice({ baseURL, apiKey, model }: Endpoint, onRetry: (text: string) => void): ModelChoice {
  const chat = openaiChat({ baseURL, apiKey: apiKey || "none", dangerouslyAllowBrowser: true });
  return {
    place: new URL(baseURL).host,
    model: { id: model, provider: "openai-compatible" },
    streamFn: withRetry(withStallTimeout(chat, { firstEventMs: FIRST_EVENT_MS, idleMs: IDLE_MS }), {
      // behind a network error stands a wrong address or a server that lets no page in, more often than a short fault
      shouldRetry: (info) => info.retryable && info.kind !== "network",
      onRetry: ({ delayMs, info }) => onRetry(`${reasonOf(info)}; trying again in ${(delayMs / 1000).toFixed(1)} s`),
    }),
  };
}

function reasonOf({ kind, status }: ModelErrorInfo): string {
  const words = kind.replace("_", " ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${status === undefined ? "" : ` (${status})`}`;
}
