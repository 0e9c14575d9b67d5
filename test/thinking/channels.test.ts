/** Where the events go. */
import { type ProgressChannel, rawTextChannel, routeProgress, ThinkingCard, thoughtTextChannel, withThinkingCard } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { run } from "../helpers.js";
import { advance, event, wait, watchTimers } from "./helpers.js";

watchTimers();

/** Channels that can be switched off and on, and what each was sent. */
function channels(...names: string[]) {
  const log: string[] = [];
  const off = new Set<string>();
  const made = names.map(
    (name): ProgressChannel => ({
      available: () => !off.has(name),
      send: ({ state, cardId }) => void log.push(`${name}: ${cardId} ${state}`),
    }),
  );
  return { log, off, made };
}

const cardOn = (made: ProgressChannel[], id: string): ThinkingCard =>
  new ThinkingCard({ onProgress: routeProgress(made), createId: () => id });

describe("routeProgress", () => {
  it("sends a card to the first channel available when it starts", () => {
    // SPEC 9.7
    const { log, off, made } = channels("a", "b", "c");
    const card = cardOn(made, "1");
    for (const missing of [[], ["a"], ["a", "b"]]) {
      for (const name of missing) off.add(name);
      card.start();
      card.heartbeat();
      card.complete();
    }
    expect(log).toEqual(["a", "b", "c"].flatMap((name) => ["start", "heartbeat", "complete"].map((state) => `${name}: 1 ${state}`)));
  });

  it("stays with it until complete, whatever becomes available or goes away", () => {
    // SPEC 9.7
    const { log, off, made } = channels("a", "b");
    off.add("a");
    const card = cardOn(made, "1");
    card.start();
    off.delete("a");
    card.heartbeat();
    off.add("b");
    card.complete();
    card.start();
    card.complete();
    expect(log).toEqual(["b: 1 start", "b: 1 heartbeat", "b: 1 complete", "a: 1 start", "a: 1 complete"]);
  });

  it("keeps interleaved cards apart", () => {
    // SPEC 9.7
    const { log, off, made } = channels("a", "b");
    const onProgress = routeProgress(made);
    const [one, two] = ["1", "2"].map((id) => new ThinkingCard({ onProgress, createId: () => id })) as [ThinkingCard, ThinkingCard];
    one.start();
    off.add("a");
    two.start();
    one.heartbeat();
    two.heartbeat();
    one.complete();
    two.complete();
    expect(log).toEqual(["a: 1 start", "b: 2 start", "a: 1 heartbeat", "b: 2 heartbeat", "a: 1 complete", "b: 2 complete"]);
  });

  it.each<[string, () => unknown]>([
    ["throws", () => expect.fail("no connection")],
    ["says false", () => false],
    ["says something else", () => "yes"],
    ["gives a promise", () => Promise.resolve(true)],
  ])("passes over a channel whose available() %s", (_name, available) => {
    // SPEC 9.7
    const { log, made } = channels("b");
    const card = cardOn([{ available: available as () => boolean, send: () => expect.fail("not available") }, ...made], "1");
    card.start();
    card.complete();
    expect(log).toEqual(["b: 1 start", "b: 1 complete"]);
  });

  it("shows nothing of a card that finds none, also when one comes later", () => {
    // SPEC 9.7
    const { log, off, made } = channels("a");
    off.add("a");
    const errors: unknown[] = [];
    const card = new ThinkingCard({ onProgress: routeProgress(made), onError: (error) => void errors.push(error) });
    card.start();
    off.clear();
    expect(card.heartbeat()).toBe(true);
    card.complete();
    const none = new ThinkingCard({ onProgress: routeProgress([]), onError: (error) => void errors.push(error) });
    none.start();
    none.complete();
    expect([log, errors]).toEqual([[], []]);
  });

  it("sends a complete that failed once more over the same channel", async () => {
    // SPEC 9.7, 9.5
    const { log, off, made } = channels("b");
    let sends = 0;
    const flaky: ProgressChannel = {
      available: () => !off.has("a"),
      send: async ({ state }) => {
        log.push(`a: ${state}`);
        if (state === "complete" && ++sends === 1) throw new Error("closed");
      },
    };
    const card = cardOn([flaky, ...made], "1");
    card.start();
    off.add("a");
    card.complete();
    card.start();
    card.complete();
    await card.flush();
    expect(log.slice(0, 2)).toEqual(["a: start", "a: complete"]);
    expect(log.slice(2).sort()).toEqual(["a: complete", "b: 1 complete", "b: 1 start"]);
  });

  it("is an onProgress: failures of a channel are those of the sink", async () => {
    // SPEC 9.7, 9.5
    const errors: string[] = [];
    const onProgress = routeProgress([{ available: () => true, send: () => Promise.reject(new Error("closed")) }]);
    const streamFn = withThinkingCard(scriptedModel(["Hi"]), { onProgress, onError: (_error, { state }) => void errors.push(state) });
    expect((await run(streamFn)).outcome).toBe("completed");
    await advance(0);
    expect(errors).toEqual(["start", "complete", "complete"]);
  });
});

describe("thoughtTextChannel", () => {
  it("tells the start and its beats as text, and nothing of the end", async () => {
    // SPEC 9.7
    const texts: string[] = [];
    const channel = thoughtTextChannel((text) => void texts.push(text));
    expect(channel.available()).toBe(true);
    for (const each of wait) await channel.send(each);
    expect(texts).toEqual(["Thinking...", "Thinking... (30s)", "Thinking... (60s)"]);
  });

  it("passes on what send gives and throws", async () => {
    // SPEC 9.7
    await expect(thoughtTextChannel(() => Promise.reject(new Error("closed"))).send(event("start"))).rejects.toThrow("closed");
    expect(() => thoughtTextChannel(() => expect.fail("closed")).send(event("start"))).toThrow("closed");
  });
});

describe("rawTextChannel", () => {
  const text = "Thinking...\nThinking... (30s)\nThinking... (60s)\n";

  it("writes lines to a function or to what has a write", async () => {
    // SPEC 9.7
    let written = "";
    const write = (piece: string): void => {
      written += piece;
    };
    for (const target of [write, async (piece: string) => write(piece), { write }]) {
      written = "";
      const channel = rawTextChannel(target, { stdioRpc: true });
      expect(channel.available()).toBe(true);
      for (const each of wait) await channel.send(each);
      expect(written).toBe(text);
    }
  });

  it("hands on a failure to write", async () => {
    // SPEC 9.7, 9.5
    await expect(rawTextChannel(() => expect.fail("closed")).send(event("start"))).rejects.toThrow("closed");
    await expect(rawTextChannel(() => Promise.reject(new Error("closed"))).send(event("start"))).rejects.toThrow("closed");
  });

  it.each<[string, unknown]>([
    ["there is no process", undefined],
    ["process has no stderr", {}],
  ])("where %s it is not available, unless it is given what to write to", async (_name, host) => {
    // SPEC 9.7, 14.1
    vi.stubGlobal("process", host);
    const written: string[] = [];
    const given = rawTextChannel((piece) => written.push(piece), { stdioRpc: true });
    const available = [rawTextChannel().available(), rawTextChannel(undefined, { stdioRpc: true }).available(), given.available()];
    await rawTextChannel().send(event("start"));
    await given.send(event("start"));
    vi.unstubAllGlobals();
    expect([available, written]).toEqual([[false, false, true], ["Thinking...\n"]]);
  });
});
