import type { AgentMessage } from "turnloop";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Reply } from "../conversation.js";
import { textOf } from "./plans.js";
import { World } from "./world.js";

const REPLY_MS = 30_000;
let world: World;
let port: number;

beforeAll(async () => {
  world = await World.create();
  [port = 0] = await world.startWorkers(1);
});
afterAll(() => world?.destroy());

async function crash(): Promise<void> {
  await world.kill(port);
  await world.restart(port);
}

/** A transcript without what differs from conversation to conversation: its name and its times. */
function comparable(messages: AgentMessage[], conversation: string): unknown {
  const text = JSON.stringify(messages, (key, value) => (key === "timestamp" ? 0 : value));
  return JSON.parse(text.replaceAll(conversation, "<key>"));
}

async function answered(invocation: string): Promise<Reply> {
  return world.conversations.reply(invocation, REPLY_MS);
}

// SPEC 16.1 to 16.4
describe("a conversation on Restate", () => {
  it("survives two crashes with the transcript of an undisturbed run, and runs nothing again that was recorded", async () => {
    const { conversations } = world;
    const calm = await answered(await conversations.prompt("calm", "do six calm"));
    world.hold("rough c");
    world.hold("rough model 3");
    const invocation = await conversations.prompt("rough", "do six rough");
    const ended = (): string[] => world.lines("events rough").filter((line) => line.startsWith("end"));
    await world.until("a, b and d are recorded, c is not", () => ended().length >= 3 && world.effects("rough")["c"] === 1);
    await crash();
    await world.until("c runs again", () => world.effects("rough")["c"] === 2);
    world.release("rough c");
    await world.until("the third answer has begun", () => world.lines("events rough").includes("delta Then"));
    await crash();
    await world.until("the third answer begins again", () => world.effects("rough")["model 3"] === 2);
    world.release("rough model 3");
    const rough = await answered(invocation);

    expect(rough.outcome).toBe("completed");
    expect(comparable(rough.messages, "rough")).toEqual(comparable(calm.messages, "calm"));
    expect(rough.messages).toHaveLength(11);
    expect(await conversations.messages("rough")).toEqual(rough.messages);
    const once = { "model 1": 1, a: 1, "model 2": 1, b: 1, c: 1, d: 1, "model 3": 1, e: 1, f: 1, "model 4": 1 };
    expect(world.effects("calm")).toEqual(once);
    expect(world.effects("rough")).toEqual({ ...once, c: 2, "model 3": 2 });
    const keys = world.lines("keys").filter((line) => line.startsWith("rough c "));
    expect(keys).toEqual(["rough c run1/tool:2:1:work", "rough c run1/tool:2:1:work"]);
    const times = rough.messages.map(({ timestamp }) => timestamp);
    expect(times).toEqual([...times].sort((one, other) => one - other));
  });

  it("is cancelled in the middle of a tool, also after a crash, and can be prompted again", async () => {
    const { conversations } = world;
    world.hold("stopped b");
    const invocation = await conversations.prompt("stopped", "do three stopped");
    await world.until("a is recorded, b is not", () => world.lines("events stopped").includes("end call-a"));
    await crash();
    await world.until("b runs again", () => world.effects("stopped")["b"] === 2);
    await conversations.cancel(invocation);
    const { outcome, messages } = await answered(invocation);
    expect(outcome).toBe("aborted");
    expect(messages.slice(2).map((message) => [textOf(message), (message as { isError?: boolean }).isError])).toEqual([
      ["did stopped a", false],
      [expect.stringMatching(/^Tool "work" was aborted \(cancelled\) and may have partly run: cancelled/), true],
    ]);
    world.release("stopped b");
    const again = await answered(await conversations.prompt("stopped", "do one stopped"));
    expect(again.outcome).toBe("completed");
    expect((await conversations.messages("stopped")).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
      "user",
      "assistant",
      "toolResult",
      "assistant",
    ]);
  });

  it("gets steering that was sent while no worker was up, once", async () => {
    const { conversations } = world;
    world.hold("steered a");
    const invocation = await conversations.prompt("steered", "do one steered");
    await world.until("a runs", () => world.effects("steered")["a"] === 1);
    await world.kill(port);
    const { delivered } = await conversations.steer("steered", "and be quick");
    await world.restart(port);
    await delivered;
    world.hold("steered model 2");
    world.release("steered a");
    await world.until("it goes on", () => world.effects("steered")["model 2"] === 1);
    await crash();
    world.release("steered model 2");
    const { messages } = await answered(invocation);
    expect(messages.map(textOf)).toEqual(["do one steered", "Just one.", "did steered a", "and be quick", "It is done."]);
    const next = await answered(await conversations.prompt("steered", "do one steered"));
    expect(next.messages.map(textOf)).not.toContain("and be quick");
  });

  it.each([
    ["approved", { action: "approve" }, "did asked-approved deploy", 1],
    ["denied", { action: "deny", reason: "Not today." }, "Not today.", undefined],
  ] as const)("waits for an approval, which comes after a restart: %s", async (name, decision, text, runs) => {
    const { conversations } = world;
    const key = `asked-${name}`;
    const invocation = await conversations.prompt(key, `do deploy ${key}`);
    await world.until("it waits", async () => (await conversations.pending(key)).length === 1);
    await world.kill(port);
    const restarted = world.restart(port);
    await restarted;
    const [pending] = await conversations.pending(key);
    expect(pending).toMatchObject({ toolCall: { name: "deploy" }, args: { name: `${key} deploy` }, reason: "production" });
    await conversations.decide(pending?.approval as string, decision);
    const { outcome, messages } = await answered(invocation);
    expect(outcome).toBe("completed");
    expect(messages.map(textOf)).toEqual([`do deploy ${key}`, "May I?", `did ${key} a`, text, "That was it."]);
    expect(world.effects(key)).toEqual({ "model 1": 1, a: 1, "model 2": 1, ...(runs && { deploy: runs }) });
    expect(await conversations.pending(key)).toEqual([]);
  });

  it("fails in plain words when a hook awaits what the journal does not know", async () => {
    world.hold("wrong b");
    const invocation = await world.conversations.prompt("wrong", "do wrong wrong");
    await world.until("the hook is done", () => world.lines("events wrong").includes("end call-mistake"));
    world.release("wrong b");
    await expect(answered(invocation)).rejects.toThrow("run1/tool:1:2:work was started while the handler waits for others");
    expect(world.effects("wrong")).toEqual({ "model 1": 1, mistake: 1, b: 1 });
  });

  it("is cancelled while it waits for an approval", async () => {
    const { conversations } = world;
    const invocation = await conversations.prompt("unasked", "do deploy unasked");
    await world.until("it waits", async () => (await conversations.pending("unasked")).length === 1);
    await conversations.cancel(invocation);
    const { outcome, messages } = await answered(invocation);
    expect([outcome, textOf(messages.at(-1))]).toEqual(["aborted", "Not executed: cancelled."]);
    expect(await conversations.pending("unasked")).toEqual([]);
  });
});
