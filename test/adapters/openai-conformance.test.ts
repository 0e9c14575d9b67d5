import type { ServerResponse } from "node:http";
import { openaiChat } from "turnloop/openai";
import { type StreamFnScenario, testStreamFn } from "turnloop/testing";
import { afterAll, describe, expect, test } from "vitest";
import { calls, chunk, model, quiet, type RawServer, rawServer, sse, stop, text } from "./helpers.js";

const sea = text("The sea ", "is wide, ", "the sea ", "is deep, ", "the sea ", "is blue.");
const usage = sse({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } } });
const thoughts = (field: string) => sse(...["Let me ", "think."].map((part) => chunk({ [field]: part })));

const bodies: Record<StreamFnScenario, (res: ServerResponse) => void> = {
  text: (res) => res.end(sea + sse(chunk({}, "stop")) + usage + sse("[DONE]")),
  thinking: (res) => res.end(thoughts("reasoning_content") + text("Ten ", "of them.") + stop),
  calls: (res) =>
    res.end(
      [
        calls(
          { index: 0, id: "c1", function: { name: "weather", arguments: '{"ci' } },
          { index: 1, id: "c2", function: { name: "weather" } },
        ),
        calls({ index: 1, function: { arguments: '{"city":' } }, { index: 0, function: { arguments: 'ty":"Paris"}' } }),
        calls({ index: 1, function: { arguments: '"Rome"}' } }),
        sse(chunk({}, "tool_calls"), "[DONE]"),
      ].join(""),
    ),
  length: (res) => res.end(sea + sse(chunk({}, "length"), "[DONE]")),
  error: (res) => res.writeHead(529, { "retry-after": "1" }).end('{"error":{"message":"Overloaded"}}'),
  hang: (res) => void res.write(sea),
};

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
