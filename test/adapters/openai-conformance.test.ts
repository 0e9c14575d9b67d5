import { openaiChat } from "turnloop/openai";
import { type StreamFnScenario, testStreamFn } from "turnloop/testing";
import { afterAll, describe, expect, test } from "vitest";
import { calls, chunk, model, quiet, type RawServer, rawServer, sse, text } from "./helpers.js";
import { bodies, sea, thoughts } from "./openai-bodies.js";

// SPEC 12.1, 12.2, 13.3
describe("openaiChat", () => {
  const servers: RawServer[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.close())));

  const speaking =
    (own: Partial<typeof bodies> = {}) =>
    async (scenario: StreamFnScenario) => {
      const server = await rawServer();
      servers.push(server);
      server.answer({ ...bodies, ...own }[scenario]);
      return openaiChat({ ...quiet, baseURL: server.url });
    };

  testStreamFn("openaiChat", speaking(), { test, expect, model });
  testStreamFn(
    "openaiChat with a server of other habits",
    speaking({
      thinking: (res) => res.end(thoughts("reasoning") + sea + sse(chunk({}, "end_turn"), "[DONE]")),
      calls: (res) => {
        const whole = { index: 0, id: "c1", function: { name: "weather", arguments: '{"city":"Paris"}' } };
        res.end(text("I look.") + calls(whole, { ...whole, index: 1, id: "c2" }) + sse(chunk({}, "stop"), "[DONE]"));
      },
      error: (res) => res.end(sea + sse({ error: { message: "slow down", code: 429 } })),
      hang: () => {},
    }),
    { test, expect, model },
  );
});
