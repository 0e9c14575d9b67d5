/** The work both loops do: the same streams, tools and listeners. */
const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const shell = (content, stopReason) => ({
  role: "assistant",
  content,
  api: "bench",
  provider: "bench",
  model: "bench",
  usage,
  stopReason,
  timestamp: 1,
});
const empty = shell([], "stop");
const textAnswer = shell([{ type: "text", text: "done" }], "stop");

export const model = { id: "bench", provider: "bench" };

export const tool = {
  name: "add",
  description: "Adds one",
  execute: async (_id, args) => ({ content: [{ type: "text", text: String(args.x + 1) }] }),
};

/** One call a turn, `n` turns, then a text. */
export function turns(n) {
  let turn = 0;
  return async function* streamFn() {
    if (turn++ === n) {
      yield { type: "start", partial: empty };
      yield { type: "done", reason: "stop", message: textAnswer };
      return;
    }
    const message = shell([{ type: "toolCall", id: `call_${turn}`, name: "add", arguments: { x: turn } }], "toolUse");
    yield { type: "start", partial: empty };
    yield { type: "done", reason: "toolUse", message };
  };
}

/** One answer of `n` deltas of 20 characters, after `finished` finished blocks. */
export function deltas(n, length = 20) {
  const delta = "x".repeat(length);
  return async function* streamFn() {
    let text = "";
    yield { type: "start", partial: shell([], "stop") };
    yield { type: "text_start", contentIndex: 0, partial: shell([{ type: "text", text }], "stop") };
    for (let i = 0; i < n; i++) {
      text += delta;
      yield { type: "text_delta", contentIndex: 0, delta, partial: shell([{ type: "text", text }], "stop") };
    }
    yield { type: "done", reason: "stop", message: shell([{ type: "text", text }], "stop") };
  };
}

/** One batch of `n` parallel calls, then a text. */
export function fanOut(n) {
  let turn = 0;
  return async function* streamFn() {
    if (turn++ > 0) {
      yield { type: "done", reason: "stop", message: textAnswer };
      return;
    }
    const calls = Array.from({ length: n }, (_, x) => ({ type: "toolCall", id: `call_${x}`, name: "add", arguments: { x } }));
    const message = shell(calls, "toolUse");
    yield { type: "start", partial: empty };
    yield { type: "done", reason: "toolUse", message };
  };
}
