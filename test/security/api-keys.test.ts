/** What an error must never repeat: the credential it was about (SPEC 12.1, 16.2). */
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { StreamFn, StreamOptions } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { anthropicMessages } from "turnloop/anthropic";
import { openaiChat, openaiResponses } from "turnloop/openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ask, type RawServer, rawServer, sse } from "../adapters/helpers.js";

const KEY = 'hunter2/with spaces+and"quotes"';
const HIDDEN = "[the API key]";

let server: RawServer;
beforeEach(async () => {
  server = await rawServer();
});
afterEach(() => server.close());

type Fetch = typeof globalThis.fetch;
interface Given {
  apiKey: string;
  baseURL?: string;
  fetch?: Fetch;
}

const off = { logLevel: "off" as const, maxRetries: 0 };
/** The key is the client's own, that of the adapter's options, or that of one call; the AI SDK's is always in its model. */
const holders: [string, (given: Given) => StreamFn, (given: Given) => StreamOptions][] = [
  ["openaiChat, the adapter's key", (given) => openaiChat({ ...off, ...given }), () => ({})],
  ["openaiChat, the client's key", (given) => openaiChat({ client: new OpenAI({ ...off, ...given }) }), () => ({})],
  ["openaiChat, the call's key", (given) => openaiChat({ ...off, ...given, apiKey: "another-key" }), ({ apiKey }) => ({ apiKey })],
  ["openaiResponses, the adapter's key", (given) => openaiResponses({ ...off, ...given }), () => ({})],
  ["anthropicMessages, the adapter's key", (given) => anthropicMessages({ ...off, ...given }), () => ({})],
  ["anthropicMessages, the client's key", (given) => anthropicMessages({ client: new Anthropic({ ...off, ...given }) }), () => ({})],
  [
    "anthropicMessages, the client's token",
    ({ apiKey, ...given }) => anthropicMessages({ client: new Anthropic({ ...off, ...given, apiKey: null, authToken: apiKey }) }),
    () => ({}),
  ],
  [
    "anthropicMessages, the call's key",
    (given) => anthropicMessages({ ...off, ...given, apiKey: "another-key" }),
    ({ apiKey }) => ({ apiKey }),
  ],
  ["aiSdk, chat", (given) => aiSdk(createOpenAI(given as object).chat("m")), () => ({})],
  ["aiSdk, responses", (given) => aiSdk(createOpenAI(given as object).responses("m")), () => ({})],
  [
    "aiSdk, a header of the call",
    (given) => aiSdk(createOpenAI({ ...(given as object), apiKey: "another-key" }).chat("m")),
    ({ apiKey }) => ({ headers: { "x-api-key": apiKey } }),
  ],
];

/** The errorMessage of one call that fails. */
async function failure([, make, options]: (typeof holders)[number], given: Given): Promise<string> {
  const { message } = await ask(make(given), options(given));
  expect([message.stopReason, message.content]).toEqual(["error", []]);
  return message.errorMessage as string;
}

function expectHidden(text: string, ...keys: string[]): void {
  for (const key of keys)
    for (const form of [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)]) expect(text).not.toContain(form);
  expect(text).toContain(HIDDEN);
}

// SPEC 12.1
describe.each(holders)("a key is kept out of the transcript: %s", (...holder) => {
  it("when the server repeats it, plain, in JSON and in an address", async () => {
    const message = `No such key: ${KEY} or ${encodeURIComponent(KEY)}`;
    server.answer((res) => void res.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } })));
    expectHidden(await failure(holder, { apiKey: KEY, baseURL: server.url }), KEY);
  });

  it("when a body that is no JSON repeats it", async () => {
    server.answer((res) => void res.writeHead(400, { "content-type": "text/plain" }).end(`bad request: authorization: Bearer ${KEY}`));
    const text = await failure(holder, { apiKey: KEY, baseURL: server.url });
    expect(text).not.toContain(KEY);
  });

  it("when the client throws it, also as the cause", async () => {
    const fetch: Fetch = async () => {
      throw Object.assign(new TypeError(`fetch failed for ${KEY}`), { cause: new Error(`bad header ${JSON.stringify({ key: KEY })}`) });
    };
    const text = await failure(holder, { apiKey: KEY, baseURL: server.url, fetch });
    expectHidden(text, KEY);
  });

  it("when the server's address holds one", async () => {
    const fetch: Fetch = async (url) => {
      throw new TypeError(`Failed to parse URL from ${url instanceof Request ? url.url : String(url)}`);
    };
    const baseURL = "http://someone:pass-in-url@127.0.0.1:9/v1?api_key=key-in-query";
    expectHidden(await failure(holder, { apiKey: KEY, baseURL, fetch }), "pass-in-url", "key-in-query");
  });
});

describe("a key that only shows by its shape", () => {
  // SPEC 12.1: a key no adapter was told of, for example a proxy's own
  it.each([
    ["Incorrect API key provided: sk-proj-abcdefghijklmnop1234.", `Incorrect API key provided: ${HIDDEN}.`],
    ["got Authorization: Bearer abcdefgh.ijkl, refused", `got Authorization: Bearer ${HIDDEN} refused`.replace("] ", "], ")],
    ["GET https://x.test/v1?a=1&key=abc123&b=2 failed", `GET https://x.test/v1?a=1&key=${HIDDEN}&b=2 failed`],
    ["the key of a door, token of love, 12 tokens, bearer of news", "the key of a door, token of love, 12 tokens, bearer of news"],
  ])("%s", async (message, shown) => {
    server.answer((res) => void res.end(sse({ error: { message } })));
    const { errorMessage } = (await ask(openaiChat({ ...off, apiKey: "key-0", baseURL: server.url }))).message;
    expect(errorMessage).toContain(shown);
  });
});

// SPEC 12.1
describe("a key in an answer that failed half-way is kept out", () => {
  const error = { code: "server_error", message: `upstream refused ${KEY}` };
  it.each<[string, string, (given: Given) => StreamFn]>([
    ["openaiChat", sse({ error }), (given) => openaiChat({ ...off, ...given })],
    ["openaiResponses", sse({ type: "error", ...error }), (given) => openaiResponses({ ...off, ...given })],
    [
      "openaiResponses, a failed response",
      sse({ type: "response.failed", response: { status: "failed", error } }),
      (given) => openaiResponses({ ...off, ...given }),
    ],
    ["anthropicMessages", `event: error\n${sse({ type: "error", error })}`, (given) => anthropicMessages({ ...off, ...given })],
    ["aiSdk, chat", sse({ error }), (given) => aiSdk(createOpenAI(given as object).chat("m"))],
    [
      "aiSdk, responses",
      sse({ type: "error", sequence_number: 0, error: { type: "x", param: null, ...error } }),
      (given) => aiSdk(createOpenAI(given as object).responses("m")),
    ],
  ])("%s", async (_name, body, make) => {
    server.answer((res) => void res.end(body));
    const { message } = await ask(make({ apiKey: KEY, baseURL: server.url }));
    expect([message.stopReason, message.errorMessage]).toEqual(["error", expect.stringContaining(`upstream refused ${HIDDEN}`)]);
  });
});
