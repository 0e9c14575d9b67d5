/** pi-agent-core's Agent. */
import { Agent } from "@mariozechner/pi-agent-core";
import { lastText, toolOf } from "../stream-fn.js";
import { parametersOf, piModel, piStreamFn } from "./pi.js";

export default {
  name: "pi Agent",
  how: "An `Agent` for each conversation, one subscriber; otherwise as pi-agent-core.",
  module: "@mariozechner/pi-agent-core",
  uses: ["Agent"],
  prepare(work) {
    const streamFn = piStreamFn(work);
    const tools = [{ ...toolOf(work), label: "Add", parameters: parametersOf(work) }];
    return async () => {
      const agent = new Agent({ initialState: { model: piModel, tools }, streamFn });
      agent.subscribe(({ type, assistantMessageEvent: event }) => {
        if (type === "message_update" && event.type === "text_delta") work.seen(event.delta);
      });
      await agent.prompt("go");
      work.ended(lastText(agent.state.messages));
    };
  },
};
