import { it } from "vitest";
import { callWith } from "./hand-written.js";
it("p", async () => {
  const parameters = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  console.log((await callWith(parameters, {}, { prepareArguments: () => '{"n": "7"}' })).text);
  console.log((await callWith({ type: "object", properties: { o: parameters } }, { o: '{"n": "7"}' })).text);
  console.log((await callWith({ type: "object", properties: { o: { type: "array", items: { type: "number" } } } }, { o: '["7"]' })).text);
});
