/** turnloop's bare loop, as built. */
import { runAgentLoop, userMessage } from "../../dist/index.js";
import { Type } from "../../dist/schema.js";
import { lastText, model, streamFnOf, toolOf } from "../stream-fn.js";

export const parametersOf = ({ name }) =>
  Type.Object(name === "bigArguments" ? { x: Type.Number(), lines: Type.Array(Type.String()) } : { x: Type.Number() });

export default {
  name: "turnloop",
  how: "`runAgentLoop` of `dist`, TypeBox parameters, one synchronous listener; the same StreamFn as the floor.",
  module: "turnloop",
  uses: ["runAgentLoop"],
  prepare(work) {
    const streamFn = streamFnOf(work);
    const tools = [{ ...toolOf(work), parameters: parametersOf(work) }];
    const listener = ({ type, assistantMessageEvent: event }) => {
      if (type === "message_update" && event.type === "text_delta") work.seen(event.delta);
    };
    return async () => {
      const context = { systemPrompt: "", messages: [], tools };
      work.ended(lastText(await runAgentLoop([userMessage("go")], context, { model }, listener, undefined, streamFn)));
    };
  },
};
