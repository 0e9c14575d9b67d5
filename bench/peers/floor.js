/** The hand-written loop of bench/minimal-loop.js. */
import { minimalLoop } from "../minimal-loop.js";
import { lastText, model, streamFnOf, toolOf } from "../stream-fn.js";

export default {
  name: "floor",
  how: "`bench/minimal-loop.js`: no validation, no copies, no abort, a direct callback, `Promise.all`.",
  prepare(work) {
    const streamFn = streamFnOf(work);
    const tools = [toolOf(work)];
    const listener = ({ type, event }) => {
      if (type === "update" && event.type === "text_delta") work.seen(event.delta);
    };
    return async () => {
      const prompts = [{ role: "user", content: "go", timestamp: 1 }];
      work.ended(lastText(await minimalLoop(prompts, { messages: [], tools, model }, listener, streamFn)));
    };
  },
};
