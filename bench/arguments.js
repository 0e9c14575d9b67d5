/**
 * Large tool arguments in small deltas through the adapters, against receiving and parsing them once with the vendor's client:
 * both get the same bytes from a fetch of ours. Counts this process's CPU time, which a busy machine does not change.
 */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { anthropicMessages } from "../dist/anthropic.js";
import { openaiChat } from "../dist/openai.js";

const DELTA = 32;
const SIZES = [64_000, 250_000, 1_000_000];
const ROUNDS = 9;

const event = (data, name) => `${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(data)}\n\n`;
const chunk = (delta, finish_reason = null) =>
  event({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
const named = (data) => event(data, data.type);
const chatCall = (call) => chunk({ tool_calls: [{ index: 0, ...call }] });

/** The bodies of both APIs with these arguments. */
const bodies = {
  chat: (pieces) => [
    chatCall({ id: "a", type: "function", function: { name: "write", arguments: "" } }),
    ...pieces.map((piece) => chatCall({ function: { arguments: piece } })),
    chunk({}, "tool_calls"),
    "data: [DONE]\n\n",
  ],
  anthropic: (pieces) => [
    named({
      type: "message_start",
      message: { id: "m", type: "message", role: "assistant", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
    }),
    named({ type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "a", name: "write", input: {} } }),
    ...pieces.map((piece) => named({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: piece } })),
    named({ type: "content_block_stop", index: 0 }),
    named({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 2 } }),
    named({ type: "message_stop" }),
  ],
};

/** A fetch that answers with these bytes, in pieces as a socket gives them. */
function answering(body) {
  const bytes = new TextEncoder().encode(body.join(""));
  return async () => {
    let at = 0;
    const pull = (controller) => {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, at + 16_384));
      at += 16_384;
    };
    return new Response(new ReadableStream({ pull }), { headers: { "content-type": "text/event-stream" } });
  };
}

const messages = [{ role: "user", content: "hi", timestamp: 1 }];

/** The arguments as an adapter gives them. */
async function adapter(streamFn) {
  let last;
  for await (const event of streamFn({ id: "m", provider: "p" }, { messages })) last = event;
  return last.message.content[0].arguments;
}

/** The arguments as one gets them from the client: all pieces, parsed once. */
async function client(stream, pieceOf) {
  let json = "";
  for await (const event of await stream) json += pieceOf(event) ?? "";
  return JSON.parse(json);
}

const options = { apiKey: "k", maxRetries: 0 };
const pairs = {
  openaiChat: {
    body: bodies.chat,
    client: (fetch) =>
      client(
        new OpenAI({ ...options, fetch }).chat.completions.create({ model: "m", messages, stream: true }),
        ({ choices: [choice] }) => choice?.delta.tool_calls?.[0]?.function.arguments,
      ),
    adapter: (fetch) => adapter(openaiChat({ ...options, fetch })),
  },
  anthropicMessages: {
    body: bodies.anthropic,
    client: (fetch) =>
      client(
        new Anthropic({ ...options, fetch }).messages.create({ model: "m", max_tokens: 9, messages, stream: true }),
        ({ delta }) => delta?.partial_json,
      ),
    adapter: (fetch) => adapter(anthropicMessages({ ...options, fetch })),
  },
};

/** Milliseconds of CPU time. */
async function cpu(run, fetch, length) {
  globalThis.gc?.();
  const before = process.cpuUsage();
  const { text } = await run(fetch);
  const { user, system } = process.cpuUsage(before);
  if (text.length !== length) throw new Error("the arguments did not arrive");
  return (user + system) / 1000;
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

export async function compareArguments() {
  const rows = [];
  for (const [name, pair] of Object.entries(pairs)) {
    const medians = [];
    for (const size of SIZES) {
      const json = JSON.stringify({ path: "a.txt", text: 'one line of "text"\n'.repeat(size).slice(0, size) });
      const pieces = Array.from({ length: Math.ceil(json.length / DELTA) }, (_, n) => json.slice(n * DELTA, (n + 1) * DELTA));
      const fetch = answering(pair.body(pieces));
      const times = { client: [], adapter: [] };
      for (let round = -3; round < ROUNDS; round++) {
        const both = [await cpu(pair.client, fetch, size), await cpu(pair.adapter, fetch, size)];
        if (round < 0) continue;
        times.client.push(both[0]);
        times.adapter.push(both[1]);
      }
      medians.push(median(times.adapter));
      rows.push({
        scenario: `${name}, ${size / 1000} kB`,
        "client ms": median(times.client).toFixed(0),
        "turnloop ms": median(times.adapter).toFixed(0),
        ratio: median(times.adapter.map((value, i) => value / times.client[i])).toFixed(2),
      });
    }
    const exponent = Math.log(medians[medians.length - 1] / medians[0]) / Math.log(SIZES[SIZES.length - 1] / SIZES[0]);
    rows[rows.length - 1].growth = exponent.toFixed(2);
  }
  console.table(rows);
}
