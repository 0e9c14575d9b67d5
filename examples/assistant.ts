/** The model the demo talks to: a server that speaks OpenAI's Chat Completions, or the offline one. */
import {
  Agent,
  type AgentMessage,
  type AgentOptions,
  type AgentTool,
  type Model,
  type ModelErrorInfo,
  type StreamFn,
  toLlmMessages,
  withRetry,
  withStallTimeout,
} from "turnloop";
import { openaiChat } from "turnloop/openai";
import { offlineModel } from "./offline-model.js";
import type { RunError } from "./render.js";

export interface Assistant {
  model: Model;
  streamFn: StreamFn;
  /** Any model name may be asked for, not only the one there is. */
  canSwitchModel: boolean;
  explain(error: RunError): string;
}

const SYSTEM_PROMPT = "Answer questions about the files of the workspace. Look at them with your tools; do not guess.";
const FIRST_EVENT_MS = 120_000;
const IDLE_MS = 60_000;
const DEFAULT_SERVER = "https://api.openai.com/v1";

interface Environment {
  OPENAI_BASE_URL?: string;
  OPENAI_API_KEY?: string;
}

/** The server of the environment if a model of it is named. Throws an Error for what cannot work. */
export function assistantFor(modelName: string | undefined, environment: Environment, notice: (text: string) => void): Assistant {
  if (modelName === undefined) return offlineAssistant();
  const id = modelName.trim();
  const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = environment;
  if (id === "") throw new Error("The model's name is empty");
  if (!baseURL && !apiKey) throw new Error(`The model "${id}" needs a server; set OPENAI_BASE_URL, OPENAI_API_KEY or both`);
  if (baseURL && !isWebAddress(baseURL)) {
    throw new Error(`OPENAI_BASE_URL must be a web address such as http://localhost:11434/v1; got "${baseURL}"`);
  }
  return serverAssistant(id, baseURL || DEFAULT_SERVER, apiKey, notice);
}

type AgentParts = Pick<AgentOptions, "model" | "streamFn" | "thinking" | "beforeToolCall"> & { tools: AgentTool[] };

export function createAgent({ model, streamFn, tools, thinking, beforeToolCall }: AgentParts): Agent {
  return new Agent({
    model,
    streamFn,
    tools,
    thinking,
    beforeToolCall,
    systemPrompt: SYSTEM_PROMPT,
    convertToLlm: (messages) => toLlmMessages(messages.map(withStopNote)),
  });
}

function offlineAssistant(): Assistant {
  return {
    model: { id: "offline-planner", provider: "turnloop-examples", api: "offline" },
    streamFn: offlineModel(),
    canSwitchModel: false,
    explain: ({ message }) => message,
  };
}

function serverAssistant(id: string, server: string, apiKey: string | undefined, notice: (text: string) => void): Assistant {
  let hasAnswered = false;
  const isMissing = ({ kind, status }: ModelErrorInfo): boolean => kind === "network" && status === undefined && !hasAnswered;
  /** Servers at home want no key, but the client does. */
  const chat = openaiChat({ baseURL: server, apiKey: apiKey || "none" });
  const streamFn = withRetry(withStallTimeout(chat, { firstEventMs: FIRST_EVENT_MS, idleMs: IDLE_MS }), {
    /** A server that has never answered is not busy: its address is wrong, or it does not run. */
    shouldRetry: (info) => info.retryable && !isMissing(info),
    onRetry: ({ attempt, delayMs, info }) =>
      notice(
        `… retry ${attempt} in ${(delayMs / 1000).toFixed(1)} s: ${info.kind.replace("_", " ")}${info.status ? ` (${info.status})` : ""}`,
      ),
  });
  return {
    model: { id, provider: "openai" },
    canSwitchModel: true,
    async *streamFn(model, context, options) {
      for await (const event of await streamFn(model, context, options)) {
        if (event.type === "done") hasAnswered = true;
        yield event;
      }
    },
    explain({ message: text, info }) {
      const message = text.trim();
      if (info?.kind === "auth") return `${server} refused the key; check OPENAI_API_KEY (${message})`;
      if (info?.kind === "network" && !hasAnswered) return `${server} gave no answer; check OPENAI_BASE_URL, and that it runs (${message})`;
      if (info?.status === 404) return `${server} does not know this model or address (${message})`;
      return message;
    },
  };
}

function isWebAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** Tells the model that the user has stopped an answer: otherwise it would answer that question together with the next. */
function withStopNote(message: AgentMessage): AgentMessage {
  if (message.role !== "assistant" || message.stopReason !== "aborted") return message;
  return { ...message, content: [...message.content, { type: "text", text: "[The user stopped this answer.]" }] };
}
