/** turnloop's Agent, as built. */
import { Agent } from "../../dist/index.js";
import { lastText, model, streamFnOf, toolOf } from "../stream-fn.js";
import { parametersOf } from "./turnloop.js";

export default {
  name: "turnloop Agent",
  how: "An `Agent` for each conversation, one subscriber; otherwise as turnloop.",
  module: "turnloop",
  uses: ["Agent"],
  prepare(work) {
    const streamFn = streamFnOf(work);
    const tools = [{ ...toolOf(work), parameters: parametersOf(work) }];
    return async () => {
      const agent = new Agent({ model, streamFn, tools });
      agent.subscribe(({ type, assistantMessageEvent: event }) => {
        if (type === "message_update" && event.type === "text_delta") work.seen(event.delta);
      });
      await agent.prompt("go");
      work.ended(lastText(agent.messages));
    };
  },
};
