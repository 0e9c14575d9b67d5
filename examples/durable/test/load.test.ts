import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { textOf } from "./plans.js";
import { World } from "./world.js";

const CONVERSATIONS = 200;
const REPLY_MS = 60_000;
let world: World;
let ports: number[];

beforeAll(async () => {
  world = await World.create();
  ports = await world.startWorkers(2);
});
afterAll(() => world?.destroy());

// SPEC 16.4
describe("many conversations on two workers that are killed", () => {
  it(`come out right, all ${CONVERSATIONS} of them`, async () => {
    const { conversations } = world;
    const keys = Array.from({ length: CONVERSATIONS }, (_, n) => `load-${n}.`);
    const invocations = await Promise.all(keys.map((key) => conversations.prompt(key, `do three ${key}`)));
    const replies = Promise.all(invocations.map((invocation) => conversations.reply(invocation, REPLY_MS)));
    replies.catch(() => {}); // awaited below
    for (let kill = 1; kill <= 4; kill++) {
      await world.until(`${kill * 150} things were begun`, () => world.lines("effects").length >= kill * 150);
      const port = ports[kill % 2] as number;
      await world.kill(port);
      await world.restart(port);
    }
    const right = (await replies).filter(
      ({ outcome, messages }, n) =>
        outcome === "completed" &&
        messages.map(textOf).join("|") ===
          `do three ${keys[n]}|Two at once.|did ${keys[n]} a|did ${keys[n]} b|One more.|did ${keys[n]} c|All three are done.`,
    );
    expect(right).toHaveLength(CONVERSATIONS);
    // what was under way when a worker died has run again, and no more than that
    const begun = world.lines("effects");
    const again = begun.length - new Set(begun).size;
    expect(new Set(begun).size).toBe(CONVERSATIONS * 6);
    expect(again).toBeLessThan(CONVERSATIONS);
  });
});
