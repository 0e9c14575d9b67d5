import type { ServerResponse } from "node:http";
import { type AgentEvent, type AgentMessage, userMessage } from "turnloop";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeTool, type RunOptions, type RunRecord, run } from "../helpers.js";
import { type Adapter, adapters } from "./adapters.js";
import { type RawServer, rawServer } from "./helpers.js";
import type { Heard, Said } from "./wires/wire.js";

const image = { type: "image", data: "QUJD", mimeType: "image/png" } as const;
const url = "data:image/png;base64,QUJD";
const shot = makeTool("shot", async () => ({ content: [{ type: "text", text: "A sky." }, image], details: 0 }));
const failing = async () => {
  throw new Error("no light");
};
/** Its schema is what hosts write for a tool without parameters. */
const bad = makeTool("bad", failing, { parameters: { type: "object" } });

/** Ids as no provider takes them back, the second one being the first one once it is cut. */
const IDS = [`call|${"é".repeat(70)}`, `call|${"é".repeat(70)}2`] as const;
const ASKING: Said[] = [
  { thinking: ["H", "m."] },
  { text: ["Looking."] },
  { id: IDS[0], name: "shot", json: ['{"at":', "[1]}"] },
  { id: IDS[1], name: "bad", json: ["{}"] },
  { id: "made_up", name: "functions.shot", json: ["{}"] },
];
/** An answer that says nothing: no provider takes it back. */
const MUSING: Said[] = [{ thinking: ["Well."] }];
const CUT: Said[] = [{ text: ["Half"] }, { id: "cut", name: "shot", json: ['{"at'] }];

let server: RawServer;
beforeAll(async () => {
  server = await rawServer();
});
afterAll(() => server.close());

async function ask(adapter: Adapter, messages: AgentMessage[], words: string, options: RunOptions = {}): Promise<RunRecord> {
  const { model, options: streamOptions } = adapter;
  return run(adapter.make(server.url), {
    ...{ prompts: [userMessage(words)], messages, systemPrompt: "Be brief.", tools: [shot, bad], config: { model, streamOptions } },
    ...options,
  });
}

const whole =
  ({ wire, proof }: Adapter, blocks: Said[], how: "stop" | "calls") =>
  (res: ServerResponse): void =>
    void res.end(wire.begins() + wire.says(blocks, proof) + wire.ends(how, blocks.length));

/** A conversation with calls and images, an answer of thinking only, one that was aborted and one that failed, as it is stored. */
async function history(adapter: Adapter): Promise<AgentMessage[]> {
  const { wire, proof } = adapter;
  const controller = new AbortController();
  const onEvent = (event: AgentEvent): void => {
    const inner = event.type === "message_update" ? event.assistantMessageEvent : undefined;
    if (inner?.type === "toolcall_delta" && inner.delta === '{"at') controller.abort("enough");
  };
  server.answer(
    whole(adapter, ASKING, "calls"),
    whole(adapter, MUSING, "stop"),
    (res) => void res.write(wire.begins() + wire.says(CUT, proof, true)),
    (res) => void res.writeHead(529).end(),
  );
  const prompts = [userMessage([{ type: "text", text: "go" }, image])];
  const silent = await ask(adapter, [], "", { prompts });
  const cut = await ask(adapter, silent.messages, "well?", { signal: controller.signal, onEvent });
  const failed = await ask(adapter, [...silent.messages, ...cut.messages], "again");
  expect([silent.outcome, cut.outcome, failed.outcome]).toEqual(["completed", "aborted", "error"]);
  return JSON.parse(JSON.stringify([...silent.messages, ...cut.messages, ...failed.messages]));
}

/** What a provider hears of it; `own`: it wrote the thinking. */
function heardBy({ wire }: Adapter, own: boolean): Heard[] {
  const inside = wire.resultImages === "inside";
  return [
    { user: "go" },
    { image: url },
    ...(own ? [{ thinking: "Hm." }] : []),
    { assistant: "Looking." },
    { call: "shot", with: { at: [1] } },
    { call: "bad", with: {} },
    { call: "functions_shot", with: {} },
    { result: "A sky.", of: 0, images: inside ? [url] : [] },
    { result: "no light", of: 1, images: [] },
    { result: 'Tool "functions.shot" not found. Available tools: shot, bad.', of: 2, images: [] },
    ...(inside ? [] : [{ user: "Images in the result of shot:" }, { image: url }]),
    { user: "well?" },
    { assistant: "Half" },
    { user: "again" },
    { user: "go on" },
  ];
}

/** The client of Chat Completions in the AI SDK reads no reasoning, so that none is kept. */
const thinks = (adapter: Adapter): boolean => adapter.name !== "aiSdk(openai.chat)";

// SPEC 2.1, 2.6, 12.1, 12.2
describe.each(adapters)("a conversation begun with $name", (first) => {
  let begun: AgentMessage[];
  beforeAll(async () => {
    begun = await history(first);
  });

  it.each(adapters)("goes on with $name, and back again", async (second) => {
    const answer: Said[] = [{ thinking: ["So."] }, { text: ["A sky it is."] }];
    server.answer(whole(second, answer, "stop"), whole(first, answer, "stop"));
    const there = await ask(second, begun, "go on");
    const heard = second.wire.hears(server.requests.at(-1)?.body, second.proof);
    expect(heard).toEqual(heardBy(second, first === second && thinks(first)));
    const back = await ask(first, [...begun, ...there.messages], "and now?");
    const again = first.wire.hears(server.requests.at(-1)?.body, first.proof);
    const own = first === second && thinks(first) ? [{ thinking: "So." }] : [];
    expect(again).toEqual([...heardBy(first, thinks(first)), ...own, { assistant: "A sky it is." }, { user: "and now?" }]);
    expect([there.outcome, back.outcome]).toEqual(["completed", "completed"]);
  });
});
