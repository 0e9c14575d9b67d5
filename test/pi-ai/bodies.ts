/** What a server of Chat Completions says in each scenario of the conformance suite. */
import type { ServerResponse } from "node:http";
import type { StreamFnScenario } from "turnloop/testing";
import { calls, chunk, sse, stop, text } from "../adapters/helpers.js";

const sea = text("The sea ", "is wide, ", "the sea ", "is deep, ", "the sea ", "is blue.");
const usage = sse({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 4 } } });
const thoughts = (field: string) => sse(...["Let me ", "think."].map((part) => chunk({ [field]: part })));

export const bodies: Record<StreamFnScenario, (res: ServerResponse) => void> = {
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
