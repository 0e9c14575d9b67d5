import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate as nextTick } from "node:timers/promises";
import { reduceEvents, type ViewState, type WireEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { offlineModel } from "../../examples/offline-model.js";
import { workspaceTools } from "../../examples/workspace-tools.js";
import { makeTool } from "../helpers.js";
import { workspaceOf } from "./helpers.js";
import { expectSameViews, ForeignEventSource, heldModel, host, post, talk, type Watcher } from "./server-host-helpers.js";

const QUESTION = { text: "which file in src is the largest, and how does it begin?" };

function assistant() {
  const root = workspaceOf({ "src/a.txt": "one\n", "src/b.txt": "one\ntwo\n" });
  return { streamFn: offlineModel({ chunkDelayMs: 0 }), tools: workspaceTools(root), thinking: true };
}

describe("the stream", () => {
  // SPEC 15.1
  test("begins with a snapshot, goes on with numbered wire events, and ends where the agent is", async () => {
    const server = await host(assistant());
    const { does, watch } = await talk(server);
    const watcher = await watch();
    await does("prompt", QUESTION);
    await watcher.untilOutcome();
    expect(watcher.headers).toMatchObject({
      status: 200,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    expect(watcher.headers).not.toHaveProperty("access-control-allow-origin");
    expect(watcher.entries.map(({ id }) => id)).toEqual(watcher.entries.map((_entry, index) => index));
    expect(new Set(watcher.entries.map(({ type }) => type))).toEqual(
      new Set([
        ...["snapshot", "agent_start", "turn_start", "message_start", "message_update", "message_end", "thinking"],
        ...["tool_execution_start", "tool_execution_end", "turn_end", "agent_end"],
      ]),
    );
    expect(JSON.stringify(watcher.entries.map(({ data }) => data))).not.toContain('"partial"');
    expect(watcher.view.messages).toEqual(server.agents[0]?.messages);
  });

  test("says that it is alive", async () => {
    const { watch } = await talk(await host(assistant(), { heartbeatMs: 1 }));
    const watcher = await watch();
    await watcher.until(({ comments }) => comments.length >= 2);
    expect(watcher.comments[0]).toBe("still here");
  });

  // SPEC 15.1: not quadratic
  test("grows with the answer, and not with its square", async () => {
    const bytes = async (pieces: number): Promise<number> => {
      const { does, watch } = await talk(await host({ streamFn: scriptedModel(["1234567890".repeat(pieces)], { chunkSize: 10 }) }));
      const watcher = await watch({ after: 0 });
      await does("prompt", { text: "go" });
      await watcher.untilOutcome();
      return watcher.bytes;
    };
    const [none, small, large] = [await bytes(1), await bytes(201), await bytes(1601)];
    expect((large - none) / (small - none)).toBeGreaterThan(7.9);
    expect((large - none) / (small - none)).toBeLessThan(8.2);
  });
});

describe("a client that comes back", () => {
  // SPEC 15.1
  test("in the middle of an answer gets exactly what it has missed", async () => {
    const model = heldModel();
    const server = await host({ streamFn: model.streamFn, tools: [makeTool("look", () => "seen")] });
    const { does, watch } = await talk(server);
    const [undisturbed, first] = [await watch(), await watch()];
    await does("prompt", { text: "go" });
    model.thinks("I should look. ");
    model.says("Let me ");
    await first.until(({ view }) => JSON.stringify(view).includes("Let me "));
    first.close();
    await first.until(({ hasEnded }) => hasEnded);
    model.says("look.");
    model.calls("look", { at: "it" });
    model.ends();
    await undisturbed.until(({ view }) => view.messages.length === 3);
    model.says("It is ");
    await undisturbed.until(({ view }) => JSON.stringify(view.streamingMessage ?? "").includes("It is "));
    const second = await watch({ lastEventId: first.last, after: 0 });
    await second.until(({ last }) => last === undisturbed.last);
    expect(second.entries.map(({ id }) => id)).toEqual(undisturbed.entries.map(({ id }) => id).filter((id) => id > first.last));
    model.says("there.");
    model.ends();
    await Promise.all([undisturbed.untilOutcome(), second.untilOutcome()]);
    expect(goOn(first, second)).toEqual(undisturbed.entries.map(({ view }) => view));
    expect(undisturbed.view.messages).toEqual(server.agents[0]?.messages);
  });

  test("after any event goes on from there", async () => {
    const { does, watch } = await talk(await host(assistant()));
    const undisturbed = await watch({ after: 0 });
    await does("prompt", QUESTION);
    await undisturbed.untilOutcome();
    expect(undisturbed.entries[0]?.id).toBe(1);
    for (const { id, view } of undisturbed.entries) {
      const back = await watch(id % 2 ? { lastEventId: id } : { after: id });
      await back.until(({ last }) => last === undisturbed.last || id === undisturbed.last);
      expect(back.entries.map((entry) => entry.id)).toEqual(undisturbed.entries.map((entry) => entry.id).slice(id));
      const end = back.entries.reduce<ViewState>((state, { data }) => reduceEvents(state, data as WireEvent), view);
      expect(end).toEqual(undisturbed.view);
      back.close();
    }
  });

  test("by itself, as a browser's EventSource does, sees the same", async () => {
    const model = heldModel();
    const { base, does, watch } = await talk(await host({ streamFn: model.streamFn }, { reconnectMs: 1 }));
    const undisturbed = await watch();
    const connections: { lastEventId: string | null; cut: AbortController }[] = [];
    const source = new ForeignEventSource(`${base}/events`, {
      fetch: (url, init) => {
        const cut = new AbortController();
        connections.push({ lastEventId: new Headers(init?.headers).get("last-event-id"), cut });
        return fetch(url, { ...init, signal: AbortSignal.any([cut.signal, ...(init?.signal ? [init.signal] : [])]) });
      },
    });
    onTestFinished(() => source.close());
    const ids: number[] = [];
    let view: ViewState | undefined;
    const ended = new Promise<void>((resolve) => {
      source.addEventListener("snapshot", ({ data }) => {
        view = JSON.parse(data);
      });
      source.addEventListener("message", ({ data, lastEventId }) => {
        ids.push(Number(lastEventId));
        view = reduceEvents(view as ViewState, JSON.parse(data));
        const { type, assistantMessageEvent } = JSON.parse(data);
        if (assistantMessageEvent?.delta) {
          connections.at(-1)?.cut.abort(new TypeError("the connection is lost"));
          if (connections.length === 1) model.says("two ");
          else model.ends();
        }
        if (type === "agent_end") resolve();
      });
    });
    await once(source as unknown as NodeJS.EventEmitter & EventSource, "open");
    await does("prompt", { text: "go" });
    model.says("one ");
    await ended;
    await undisturbed.untilOutcome();
    expect(ids).toEqual(ids.map((_id, index) => index + 1));
    expect(connections.map(({ lastEventId }) => lastEventId !== null)).toEqual([false, true, true]);
    expect(view).toEqual(undisturbed.view);
  });

  const unknown: [string, string | number][] = [
    ["is gone from the log", 1],
    ["is yet to come", 1_000_000],
    ["is no number", "abc"],
    ["is too large to be one", "9".repeat(400)],
    ["is empty", ""],
  ];
  test.each(unknown)("with an event id that %s gets a snapshot, and what comes after it", async (_name, lastEventId) => {
    const model = heldModel();
    const { does, watch } = await talk(await host({ streamFn: model.streamFn }, { logBytes: 1000 }));
    const undisturbed = await watch();
    await does("prompt", { text: "go" });
    model.says("one ".repeat(20));
    model.says("two ".repeat(20));
    await undisturbed.until(({ view }) => JSON.stringify(view).includes("two two"));
    const back = await watch({ lastEventId });
    await back.until(({ entries }) => entries.length > 0);
    expect(back.entries).toMatchObject([{ id: undisturbed.last, type: "snapshot", data: undisturbed.view }]);
    model.says("three");
    model.ends();
    await Promise.all([undisturbed.untilOutcome(), back.untilOutcome()]);
    expectSameViews(undisturbed, back);
    expect(back.entries.slice(1).map(({ type }) => type)).not.toContain("snapshot");
  });
});

describe("a client that never reads", () => {
  const UPDATES = 1500;
  const PIECE = "x".repeat(16_000);
  const LOG_BYTES = 200_000;

  test("holds nobody up, costs no more than its share of memory, and is let go", async () => {
    const seen = { buffered: 0, log: 0, clients: 0 };
    const pour = makeTool("pour", async (_id, _args, _signal, onUpdate) => {
      for (let i = 0; i < UPDATES; i++) {
        onUpdate({ content: [{ type: "text", text: PIECE }] });
        const { bufferedBytes, logBytes, clients } = conversation.load;
        seen.buffered = Math.max(seen.buffered, bufferedBytes);
        seen.log = Math.max(seen.log, logBytes);
        seen.clients = Math.max(seen.clients, clients);
        if (i % 10 === 0) await nextTick();
      }
      return "poured";
    });
    const server = await host({ streamFn: scriptedModel([[{ toolCall: "pour" }], "done"]), tools: [pour] }, { logBytes: LOG_BYTES });
    const { base, does, watch, conversation } = await talk(server);
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1").pause();
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    socket.write(`GET ${new URL(base).pathname}/events HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    while (conversation.load.clients === 0) await nextTick();
    await does("prompt", { text: "go" });
    await server.agents[0]?.waitForIdle();
    expect(seen.clients).toBe(1);
    expect(seen.buffered).toBeLessThan(2 * PIECE.length + 20_000);
    expect(seen.log).toBeLessThan(LOG_BYTES + PIECE.length);
    while (conversation.load.clients > 0) await nextTick();
    const back = await watch({ lastEventId: 1 });
    await back.untilOutcome();
    expect(back.entries[0]?.type).toBe("snapshot");
    expect(back.view.messages).toEqual(server.agents[0]?.messages);
  });

  test("and hears nothing new is let go by the heartbeat", async () => {
    const { base, conversation } = await talk(
      await host({ streamFn: scriptedModel(["x".repeat(12_000_000)], { chunkSize: 12_000_000 }) }, { heartbeatMs: 20 }),
    );
    const socket = connect(Number(new URL(base).port), "127.0.0.1").pause();
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    await post(`${base}/prompt`, { text: "go" });
    socket.write(`GET ${new URL(base).pathname}/events HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    while (conversation.load.clients === 0) await nextTick();
    while (conversation.load.clients > 0) await nextTick();
  });
});

/** The views of a client that was away, one after the other. */
function goOn(before: Watcher, after: Watcher): ViewState[] {
  const views = before.entries.map(({ view }) => view);
  for (const { data } of after.entries) views.push(reduceEvents(views.at(-1) as ViewState, data as WireEvent));
  return views;
}
