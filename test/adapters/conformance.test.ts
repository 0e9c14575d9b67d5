import type { ServerResponse } from "node:http";
import type { StreamFn } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { openaiChat } from "turnloop/openai";
import { type StreamFnScenario, testStreamFn } from "turnloop/testing";
import { afterAll, describe, expect, test } from "vitest";
import { adapters } from "./adapters.js";
import { fakeModel, finish, streamOf, text as textParts, type Version } from "./ai-sdk-helpers.js";
import { calls, model as chatModel, chunk, quiet, type RawServer, rawServer, sse, text } from "./helpers.js";
import type { Said, Wire } from "./wires/wire.js";

const servers: RawServer[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

/** A StreamFn whose server answers like this. */
async function speaking(make: (baseURL: string) => StreamFn, answer: (res: ServerResponse) => void): Promise<StreamFn> {
  const server = await rawServer();
  servers.push(server);
  server.answer(answer);
  return make(server.url);
}

const SEA: Said = { text: ["The sea ", "is wide, ", "the sea ", "is deep, ", "the sea ", "is blue."] };
const CALLS: Said[] = [
  { id: "c1", name: "weather", json: ['{"ci', 'ty":"Paris"}'] },
  { id: "c2", name: "weather", json: ['{"city":', '"Rome"}'] },
];

function answers({ begins, says, ends, refuses }: Wire, proof: string): Record<StreamFnScenario, (res: ServerResponse) => void> {
  const whole = (blocks: Said[], how: "stop" | "calls" | "length") => (res: ServerResponse) =>
    void res.end(begins() + says(blocks, proof) + ends(how, blocks.length));
  return {
    text: whole([SEA], "stop"),
    thinking: whole([{ thinking: ["Let me ", "think."] }, SEA], "stop"),
    calls: whole(CALLS, "calls"),
    length: whole([SEA], "length"),
    error: (res) => void res.writeHead(529, { "retry-after": "1" }).end(JSON.stringify(refuses("overloaded").body)),
    hang: (res) => void res.write(begins() + says([SEA], proof, true)),
  };
}

// SPEC 12.1, 12.2, 13.3
describe.each(adapters)("$name is a StreamFn", ({ name, wire, proof, model, make }) => {
  const bodies = answers(wire, proof);
  const unread = (scenario: StreamFnScenario) => scenario === "thinking" && name === "aiSdk(openai.chat)";
  const makeStreamFn = async (scenario: StreamFnScenario) => (unread(scenario) ? undefined : speaking(make, bodies[scenario]));
  testStreamFn(name, makeStreamFn, { test, expect, model });
});

// SPEC 12.2, 13.3
describe("openaiChat with a server of other habits is a StreamFn", () => {
  const sea = text("The sea ", "is wide.");
  const whole = { index: 0, id: "c1", function: { name: "weather", arguments: '{"city":"Paris"}' } };
  const bodies: Partial<Record<StreamFnScenario, (res: ServerResponse) => void>> = {
    thinking: (res) => res.end(sse(chunk({ reasoning: "Let me think." })) + sea + sse(chunk({}, "end_turn"), "[DONE]")),
    calls: (res) => res.end(text("I look.") + calls(whole, { ...whole, index: 1, id: "c2" }) + sse(chunk({}, "stop"), "[DONE]")),
    error: (res) => res.end(sea + sse({ error: { message: "slow down", code: 429 } })),
    hang: () => {},
  };
  const makeStreamFn = async (scenario: StreamFnScenario) => {
    const body = bodies[scenario];
    return body && speaking((baseURL) => openaiChat({ ...quiet, baseURL }), body);
  };
  testStreamFn("openaiChat", makeStreamFn, { test, expect, model: chatModel });
});

/** v3 is in the table above. */
const others: Version[] = ["v2", "v4"];
const cities = ['{"city":"Paris"}', '{"city":"Rome"}'];

function parts(version: Version, scenario: StreamFnScenario): unknown[] {
  const words = textParts("t", "The sea is ", "wide, the sea ", "is deep.");
  switch (scenario) {
    case "text":
      return [...words, finish(version)];
    case "thinking": {
      const reasoning = ["Let me ", "think."].map((delta) => ({ type: "reasoning-delta", id: "r", delta }));
      return [...reasoning, { type: "reasoning-end", id: "r" }, ...words, finish(version)];
    }
    case "calls": {
      const asked = cities.flatMap((input, index) => [
        { type: "tool-input-start", id: `c${index}`, toolName: "weather" },
        { type: "tool-input-delta", id: `c${index}`, delta: input.slice(0, 5) },
        { type: "tool-input-delta", id: `c${index}`, delta: input.slice(5) },
        { type: "tool-call", toolCallId: `c${index}`, toolName: "weather", input },
      ]);
      return [...asked, finish(version, "tool-calls")];
    }
    case "length":
      return [...words, finish(version, "length")];
    case "error":
      return [...words, { type: "error", error: new Error("fetch failed") }];
    case "hang":
      return words.slice(0, 2);
  }
}

// SPEC 12.2, 13.3
describe.each(others)("aiSdk with a %s model is a StreamFn", (version) => {
  const makeStreamFn = (scenario: StreamFnScenario): StreamFn =>
    aiSdk(fakeModel(version, () => streamOf(parts(version, scenario), scenario === "hang" ? "hang" : "close")).model);
  testStreamFn(`aiSdk with a ${version} model`, makeStreamFn, { test, expect, quietMs: 10 });
});
