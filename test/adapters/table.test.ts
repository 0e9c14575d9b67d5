import { getEventListeners } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AssistantMessage, AssistantMessageEvent } from "turnloop";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deferred, run } from "../helpers.js";
import { type Adapter, adapters } from "./adapters.js";
import { hi, type RawServer, rawServer } from "./helpers.js";
import { type Scenario, scenarios, usageOf } from "./scenarios.js";

/** What ran: for each scenario its cell for each adapter. */
const cells = new Map(scenarios.map(({ name }) => [name, new Map<string, string>()]));
let server: RawServer;
beforeAll(async () => {
  server = await rawServer();
});
afterAll(() => server.close());

interface Outcome {
  message: AssistantMessage<string>;
  events: AssistantMessageEvent<string>[];
}

/** Asks once, aborts when the scenario says so, and waits until the server has seen the connection close. */
async function ask(adapter: Adapter, scenario: Scenario): Promise<Outcome> {
  const { wire, proof, model, options } = adapter;
  const { promise: asked, resolve } = deferred();
  const controller = new AbortController();
  const closed = server.answer((res) => {
    scenario.serve(wire, proof, res);
    resolve();
  });
  if (scenario.abort === "request") asked.then(() => controller.abort("enough"));
  const events: AssistantMessageEvent<string>[] = [];
  const context = scenario.asks?.context ?? hi;
  for await (const event of await adapter.make(server.url)(model, context, { ...options, signal: controller.signal })) {
    events.push(event);
    if (event.type === scenario.abort) controller.abort("enough");
  }
  await closed;
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  const last = events[events.length - 1];
  if (last?.type !== "done" && last?.type !== "error") throw new Error("no terminal event");
  return { events, message: last.type === "done" ? last.message : last.error };
}

/** A block without what only its own adapter can read. */
function bare(block: AssistantMessage["content"][number]): object {
  const { thinkingSignature, textSignature, thoughtSignature, ...rest } = block as Record<string, any>;
  return rest;
}

// SPEC 12.1, 12.2, 14.3
describe.each(adapters)("$name", (adapter) => {
  it.each(scenarios)("$name", async (scenario) => {
    const exception = scenario.exceptions?.find(({ adapters: names }) => names.includes(adapter.name));
    const { content, stopReason, tokens, errorInfo, errorMessage } = { ...scenario, ...exception };
    const { message, events } = await ask(adapter, scenario);
    const { api, provider, id: model } = adapter.model;
    const failed = errorInfo ? { errorInfo, errorMessage: expect.stringMatching(errorMessage ?? /./) } : {};
    const { cost, ...usage } = usageOf(tokens);
    expect({ ...message, content: message.content.map(bare) }).toEqual({
      ...{ role: "assistant", api, provider, model, timestamp: expect.any(Number), content, stopReason, ...failed },
      usage: { ...usage, cost: expect.objectContaining({ ...cost, total: expect.closeTo(cost.total, 12) }) },
    });
    if (scenario.deltas !== undefined) {
      const first = content.findIndex(({ type }) => type === "toolCall");
      const deltas = events.flatMap((event) => (event.type === "toolcall_delta" && event.contentIndex === first ? [event.delta] : []));
      expect([deltas.length, JSON.parse(deltas.join(""))]).toEqual([scenario.deltas, (content[first] as any).arguments]);
    }
    const heard = adapter.wire.hears(server.requests.at(-1)?.body, adapter.proof);
    expect(heard).toEqual(scenario.asks?.heard(adapter.wire) ?? [{ user: "hi" }]);
    cells.get(scenario.name)?.set(adapter.name, exception ? noteOf(exception.why) : "✓");
  });

  // SPEC 4.4, 4.5
  it.each(scenarios.filter(({ errorMessage }) => errorMessage))("ends a run cleanly: $name", async (scenario) => {
    const seen = server.requests.length;
    const closed = server.answer((res) => scenario.serve(adapter.wire, adapter.proof, res));
    const record = await run(adapter.make(server.url), { config: { model: adapter.model, streamOptions: adapter.options } });
    await closed;
    const { errorInfo, errorMessage } = record.messages[1] as AssistantMessage;
    expect(record.end).toMatchObject({ outcome: "error", error: { message: errorMessage, info: errorInfo } });
    expect([record.messages.length, server.requests.length - seen]).toEqual([2, 1]);
  });
});

const notes = [...new Set(scenarios.flatMap(({ exceptions = [] }) => exceptions.map(({ why }) => why)))];

function noteOf(why: string): string {
  return `(${notes.indexOf(why) + 1})`;
}

function outcomeOf({ stopReason, errorInfo }: Scenario): string {
  if (!errorInfo || stopReason === "aborted") return stopReason;
  const { kind, status, retryable, retryAfterMs } = errorInfo;
  const words = [kind, status, retryable ? "retryable" : undefined, retryAfterMs === undefined ? undefined : `after ${retryAfterMs} ms`];
  return `error: ${words.filter((word) => word !== undefined).join(", ")}`;
}

/** The table as the README shows it. */
function table(): string {
  const names = adapters.map(({ name }) => name);
  const rows = scenarios.map((scenario) => [
    scenario.name,
    outcomeOf(scenario),
    ...names.map((name) => cells.get(scenario.name)?.get(name) ?? "failed"),
  ]);
  const head = ["what the server does", "what comes of it", ...names.map((name) => `\`${name}\``)];
  const lines = [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`);
  return [...lines, "", ...notes.map((why) => `${noteOf(why)} ${why}.`)].join("\n");
}

it("makes the table that the README shows", () => {
  console.log(`\n${table()}\n`);
  const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
  const [, shown] = /<!-- the shared table -->\n(.*?)\n<!-- end -->/s.exec(readme) ?? [];
  expect(shown).toBe(table());
});
