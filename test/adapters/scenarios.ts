/** What a server may answer, and what comes of it: the same for every adapter, written once (SPEC 12.2). */
import type { ServerResponse } from "node:http";
import type { AssistantMessage, LlmContext, ModelErrorInfo, StopReason } from "turnloop";
import { expect } from "vitest";
import { type Heard, REASONS, type Refusal, type Said, type Tokens, type Wire } from "./wires/wire.js";

export interface Scenario {
  name: string;
  /** How the server answers. `Half`: the connection stays open. */
  serve(wire: Wire, proof: string, res: ServerResponse): void;
  /** When the signal fires: as soon as the server was asked, or at the first event of this type. */
  abort?: "request" | "text_delta" | "toolcall_delta";
  /** What is asked, and what the server has to hear; "hi" otherwise. */
  asks?: { context: LlmContext; heard(wire: Wire): Heard[] };
  /** The final message, without what opaque signatures say. */
  content: AssistantMessage["content"];
  stopReason: StopReason;
  /** Default: none. */
  tokens?: Tokens;
  errorInfo?: ModelErrorInfo;
  errorMessage?: RegExp;
  /** Each delta of the first call reached the host on its own. */
  deltas?: number;
  /** Where a client gives less than the server said: the adapter's name, why, and what comes of it instead. */
  exceptions?: { adapters: string[]; why: string; content: AssistantMessage["content"]; errorMessage?: RegExp }[];
}

const said = (text: string) => ({ type: "text", text }) as const;
const call = (id: string, name: string, args: object) => ({ type: "toolCall", id, name, arguments: args }) as const;

const HELLO: Said = { text: ["Hel", "lo ", "there!"] };
const HALF: Said = { text: ["Half"] };
const BEGUN: Said = { id: "call_a", name: "weather", json: ['{"city":"Pa'] };
const tokens: Tokens = { input: 40, cacheRead: 60, output: 7 };
const image = { type: "image", data: "QUJD", mimeType: "image/png" } as const;
const url = "data:image/png;base64,QUJD";
const retryable: ModelErrorInfo = { kind: "network", retryable: true };
const aborted: ModelErrorInfo = { kind: "aborted", retryable: false };

/** One value of a million characters, in pieces as small as providers send them. */
const million = JSON.stringify({ path: "a.txt", text: '0123456789\n€é"'.repeat(75_000).slice(0, 1_000_000) });
const PIECE = 256;
const pieces = Array.from({ length: Math.ceil(million.length / PIECE) }, (_, n) => million.slice(n * PIECE, (n + 1) * PIECE));

function whole(blocks: Said[], how: Parameters<Wire["ends"]>[0], counted?: Tokens): Scenario["serve"] {
  return (wire, proof, res) => {
    res.end(wire.begins(counted) + wire.says(blocks, proof) + wire.ends(how, blocks.length, counted));
  };
}

/** An answer that is not over, and what becomes of its connection. */
function half(blocks: Said[], then: (wire: Wire, res: ServerResponse) => void = () => {}): Scenario["serve"] {
  return (wire, proof, res) => {
    res.write(wire.begins() + wire.says(blocks, proof, true), () => then(wire, res));
  };
}

function refused(why: Refusal, headers: Record<string, string> = {}): Scenario["serve"] {
  return (wire, _, res) => {
    const { status, body } = wire.refuses(why);
    res.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  };
}

const failure = (name: string, why: Refusal, errorInfo: ModelErrorInfo, headers?: Record<string, string>): Scenario => ({
  ...{ name, serve: refused(why, headers), content: [], stopReason: "error", errorInfo },
  errorMessage: new RegExp(REASONS[why].replace(/\W/g, ".")),
});

/** The piece of the call's arguments can be read, but not as JSON. */
const cutCall = {
  ...call("call_a", "weather", {}),
  argumentsError: expect.stringContaining("must be a JSON object"),
} as unknown as AssistantMessage["content"][number];

const NO_REASONING = "the client of Chat Completions reads no reasoning";
const REFUSAL_AS_TEXT = "the client gives the words of a refusal as text";

export const scenarios: Scenario[] = [
  { name: "text", serve: whole([HELLO], "stop"), content: [said("Hello there!")], stopReason: "stop" },
  {
    name: "thinking",
    serve: whole([{ thinking: ["Let me ", "see."] }, HELLO], "stop"),
    content: [{ type: "thinking", thinking: "Let me see." }, said("Hello there!")],
    stopReason: "stop",
    exceptions: [{ adapters: ["aiSdk(openai.chat)"], why: NO_REASONING, content: [said("Hello there!")] }],
  },
  {
    name: "two parallel calls, arguments split in mid-JSON",
    serve: whole(
      [
        { text: ["Looking."] },
        { id: "call_a", name: "weather", json: ['{"ci', 'ty":"Par', "is \\", 'u20ac","days":[1', ",2]}"] },
        { id: "call_b", name: "clock", json: ['{"zone":"UTC', '"}'] },
      ],
      "calls",
    ),
    content: [said("Looking."), call("call_a", "weather", { city: "Paris €", days: [1, 2] }), call("call_b", "clock", { zone: "UTC" })],
    stopReason: "toolUse",
    deltas: 5,
  },
  {
    name: "a call with 1 MB of arguments in small deltas",
    serve: whole([{ id: "call_a", name: "write", json: pieces }], "calls"),
    content: [call("call_a", "write", JSON.parse(million))],
    stopReason: "toolUse",
    deltas: pieces.length,
  },
  {
    name: "images in a prompt and in a tool's result",
    serve: whole([HELLO], "stop"),
    asks: {
      context: {
        messages: [
          { role: "user", content: [said("look"), image], timestamp: 1 },
          {
            ...{
              role: "assistant",
              content: [call("call_1", "shot", { n: 1 })],
              api: "x",
              provider: "x",
              model: "x",
              stopReason: "toolUse",
            },
            ...{ usage: usageOf(), timestamp: 1 },
          },
          {
            ...{
              role: "toolResult",
              toolCallId: "call_1",
              toolName: "shot",
              content: [said("A sky."), image],
              isError: false,
              timestamp: 1,
            },
          },
        ],
      },
      heard: ({ resultImages }) => {
        const inside = resultImages === "inside";
        const heard: Heard[] = [{ user: "look" }, { image: url }, { call: "shot", with: { n: 1 } }];
        heard.push({ result: "A sky.", of: 0, images: inside ? [url] : [] });
        return inside ? heard : [...heard, { user: "Images in the result of shot:" }, { image: url }];
      },
    },
    content: [said("Hello there!")],
    stopReason: "stop",
  },
  { name: "usage with cache", serve: whole([HELLO], "stop", tokens), content: [said("Hello there!")], stopReason: "stop", tokens },
  { name: "cut by max_tokens", serve: whole([HALF], "length", tokens), content: [said("Half")], stopReason: "length", tokens },
  {
    name: "refusal in words",
    serve: whole([HALF], { refusal: "I will not." }, tokens),
    ...{
      content: [said("Half")],
      stopReason: "error",
      tokens,
      errorInfo: { kind: "refusal", retryable: false },
      errorMessage: /^I will not\.$/,
    },
    exceptions: [
      {
        adapters: ["aiSdk(openai.chat)"],
        why: REFUSAL_AS_TEXT,
        content: [said("HalfI will not.")],
        errorMessage: /content filter/,
      },
      {
        adapters: ["aiSdk(openai.responses)"],
        why: REFUSAL_AS_TEXT,
        content: [said("Half"), said("I will not.")],
        errorMessage: /content filter/,
      },
    ],
  },
  {
    name: "stopped by a filter",
    serve: whole([HALF], "filtered", tokens),
    ...{ content: [said("Half")], stopReason: "error", tokens, errorInfo: { kind: "refusal", retryable: false } },
  },
  failure("401", "no key", { kind: "auth", status: 401, retryable: false }),
  failure(
    "429 with retry-after",
    "too many requests",
    { kind: "rate_limit", status: 429, retryable: true, retryAfterMs: 7000 },
    { "retry-after": "7" },
  ),
  failure("529", "overloaded", { kind: "overloaded", status: 529, retryable: true }),
  failure("context overflow", "too long", { kind: "context_overflow", status: 400, retryable: false }),
  failure("a model the server does not know", "unknown model", { kind: "invalid_request", status: 404, retryable: false }),
  failure("a schema the provider refuses", "bad schema", { kind: "invalid_request", status: 400, retryable: false }),
  {
    name: "connection cut before the headers",
    serve: (_, __, res) => void res.destroy(),
    ...{ content: [], stopReason: "error", errorInfo: retryable, errorMessage: /closed|ECONNRESET|hang up|terminated/i },
  },
  {
    name: "connection cut in the body",
    // a moment later, so that what was written is read first
    serve: half([HALF], (_, res) => void setTimeout(() => res.destroy(), 20)),
    ...{ content: [said("Half")], stopReason: "error", errorInfo: retryable, errorMessage: /closed|ECONNRESET|hang up|terminated/i },
  },
  {
    name: "a body that ends too soon",
    serve: half([HALF], (_, res) => void res.end()),
    ...{ content: [said("Half")], stopReason: "error", errorInfo: retryable, errorMessage: /ended early/ },
  },
  {
    name: "a line that is not JSON",
    serve: half([HALF], (wire, res) => void res.end(wire.broken + wire.ends("stop", 1))),
    ...{ content: [said("Half")], stopReason: "error", errorInfo: retryable, errorMessage: /JSON/ },
  },
  { name: "abort before the headers", serve: () => {}, abort: "request", content: [], stopReason: "aborted", errorInfo: aborted },
  { name: "abort in a text", serve: half([HALF]), abort: "text_delta", content: [said("Half")], stopReason: "aborted", errorInfo: aborted },
  {
    name: "abort in a call's arguments",
    serve: half([HALF, BEGUN]),
    abort: "toolcall_delta",
    ...{ content: [said("Half"), cutCall], stopReason: "aborted", errorInfo: aborted },
  },
];

/** These tokens, counted and priced as the adapters' model says. */
export function usageOf({ input, cacheRead, output }: Tokens = { input: 0, cacheRead: 0, output: 0 }): AssistantMessage["usage"] {
  const cost = { input: input / 1e6, output: (output * 10) / 1e6, cacheRead: (cacheRead * 0.5) / 1e6, cacheWrite: 0 };
  const total = cost.input + cost.output + cost.cacheRead;
  return { input, output, cacheRead, cacheWrite: 0, totalTokens: input + output + cacheRead, cost: { ...cost, total } };
}
