import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { routeProgress, ThinkingCard, type ThinkingEvent } from "turnloop";
import {
  type AcpConnection,
  createProgressCallback,
  thinkingComplete,
  thinkingProgress,
  thinkingStart,
  toolCardChannel,
} from "turnloop/acp";
import { describe, expect, it } from "vitest";
import { makeTool } from "../helpers.js";
import { checkUpdates, connect, finishClients, outlineOf } from "./acp-helpers.js";

finishClients();

const synthetic = { _meta: { synthetic: true } };

/** A connection that keeps what is sent over it. */
function recorder(answer: () => unknown = () => Promise.resolve()): AcpConnection & { updates: SessionUpdate[]; sent: unknown[] } {
  const updates: SessionUpdate[] = [];
  const sent: unknown[] = [];
  return {
    updates,
    sent,
    notify: (method, params) => {
      sent.push([method, params.sessionId]);
      updates.push(params.update);
      return answer() as Promise<void>;
    },
    request: () => expect.fail("nothing is to be requested"),
  };
}

// SPEC 10.3
describe("the payloads of a thinking card", () => {
  it("are those of a tool card of kind think, marked as none", () => {
    expect(thinkingStart("t")).toEqual({
      sessionUpdate: "tool_call",
      toolCallId: "t",
      title: "Thinking...",
      kind: "think",
      status: "in_progress",
      content: [],
      ...synthetic,
    });
    expect(thinkingProgress("t", 30_400)).toEqual({
      sessionUpdate: "tool_call_update",
      toolCallId: "t",
      title: "Thinking... (30s)",
      kind: "think",
      status: "in_progress",
      ...synthetic,
    });
    expect(thinkingComplete("t")).toEqual({
      sessionUpdate: "tool_call_update",
      toolCallId: "t",
      title: "Thinking...",
      kind: "think",
      status: "completed",
      content: [],
      ...synthetic,
    });
    checkUpdates([thinkingStart("t"), thinkingProgress("t", 1), thinkingComplete("t")]);
  });

  it.each([
    ["delta", "completed", "Thinking..."],
    ["done", "completed", "Thinking..."],
    ["error", "failed", "Thinking..."],
    ["aborted", "failed", "Stopped"],
  ] as const)("say at the end by %s: %s, %s", (outcome, status, title) => {
    expect(thinkingComplete("t", outcome)).toMatchObject({ status, title, content: [] });
  });

  it.each([
    [0, "0s"],
    [-5, "0s"],
    [Number.NaN, "0s"],
    [Number.POSITIVE_INFINITY, "0s"],
    [499, "0s"],
    [500, "1s"],
    [3_600_000, "3600s"],
  ])("tell %d ms as %s", (elapsedMs, time) => {
    expect(thinkingProgress("t", elapsedMs).title).toBe(`Thinking... (${time})`);
  });
});

// SPEC 10.3, 2.7
it("a card has whole characters only, whoever sends it", async () => {
  const half = "t\ud83d";
  checkUpdates([thinkingStart(half, half), thinkingProgress(half, 1, half), thinkingComplete(half, "done", half)]);
  const connection = recorder();
  const progress = createProgressCallback(connection, "s");
  for (const state of ["start", "heartbeat", "complete"]) progress(state, half);
  const card = new ThinkingCard({ onProgress: routeProgress([toolCardChannel(connection, "s")]), title: half, createId: () => half });
  card.start();
  card.heartbeat();
  card.complete();
  await card.flush();
  checkUpdates(connection.updates);
  expect(connection.updates).toHaveLength(6);
});

// SPEC 10.3, 9.7
describe("toolCardChannel", () => {
  it("shows the events of a card under its own id and title", async () => {
    const connection = recorder();
    const card = new ThinkingCard({
      onProgress: routeProgress([toolCardChannel(connection, "s")]),
      title: "Waiting",
      createId: () => "w",
      heartbeatMs: 0,
      now: (() => {
        let ms = 0;
        return () => (ms += 2000);
      })(),
    });
    card.start();
    card.heartbeat();
    card.complete("aborted");
    await card.flush();
    checkUpdates(connection.updates);
    expect(outlineOf(connection.updates)).toEqual(['new w in_progress "Waiting"', 'w in_progress "Waiting (4s)"', 'w failed "Stopped"']);
    expect(connection.sent).toEqual(Array(3).fill(["session/update", "s"]));
  });

  it("is available while the connection is open", () => {
    const controller = new AbortController();
    const channel = toolCardChannel({ ...recorder(), signal: controller.signal }, "s");
    expect([channel.available(), toolCardChannel(recorder(), "s").available()]).toEqual([true, true]);
    controller.abort();
    expect(channel.available()).toBe(false);
  });

  it("rejects, for onError to hear, when sending fails in any way", async () => {
    const event: ThinkingEvent = { state: "start", cardId: "t", name: "n", title: "T", elapsedMs: 0 };
    for (const fail of [() => Promise.reject(new Error("closed")), () => expect.fail("closed")])
      await expect(toolCardChannel(recorder(fail), "s").send(event)).rejects.toThrow("closed");
  });
});

// SPEC 10.3
describe("createProgressCallback", () => {
  it("keeps one open card for each name", () => {
    const connection = recorder();
    const progress = createProgressCallback(connection, "s");
    progress("start", "a");
    progress("start", "b");
    progress("start", "a");
    progress("heartbeat", "a", { elapsed: 30 });
    progress("complete", "a");
    progress("complete", "b", { outcome: "aborted" });
    progress("start", "a");
    progress("complete", "a", { outcome: "error" });
    checkUpdates(connection.updates);
    const ids = new Map<string, string>();
    const lines = outlineOf(connection.updates).map((line) =>
      line.replace(/[ab]_\S+/, (id) => ids.get(id) ?? (ids.set(id, `${id[0]}${ids.size}`).get(id) as string)),
    );
    expect(lines).toEqual([
      'new a0 in_progress "Thinking..."',
      'new b1 in_progress "Thinking..."',
      'a0 in_progress "Thinking... (30s)"',
      'a0 completed "Thinking..."',
      'b1 failed "Stopped"',
      'new a2 in_progress "Thinking..."',
      'a2 failed "Thinking..."',
    ]);
  });

  it("never shares an id with another callback of the session", () => {
    const connection = recorder();
    for (let i = 0; i < 50; i++) {
      const progress = createProgressCallback(connection, "s");
      progress("start", "llm");
      progress("complete", "llm");
    }
    checkUpdates(connection.updates);
  });

  it("sends nothing without a start, after the end, and for states it does not know", () => {
    const connection = recorder();
    const progress = createProgressCallback(connection, "s");
    progress("heartbeat", "a", { elapsed: 1 });
    progress("complete", "a");
    progress("begin", "a");
    progress("start", "a");
    progress("complete", "a");
    progress("heartbeat", "a");
    progress("complete", "a");
    progress("resume", "a");
    expect(connection.updates).toHaveLength(2);
  });

  it("never throws, whatever the connection and the arguments do", async () => {
    const unreadable = new Proxy({}, { get: () => expect.fail("unreadable") });
    const odd: any[] = [undefined, null, {}, { elapsed: "x" }, { elapsed: 5n }, { elapsed: null, outcome: "nonsense" }, unreadable];
    for (const answer of [() => Promise.reject(new Error("closed")), () => expect.fail("closed"), () => undefined]) {
      const connection = recorder(answer);
      const progress = createProgressCallback(connection, "s");
      for (const args of odd) for (const state of ["start", "heartbeat", "complete"]) progress(state, "a", args);
      expect(connection.updates).toHaveLength(odd.length * 3);
      checkUpdates(connection.updates);
      const [symbol, nameless] = [Symbol("name"), Object.create(null)] as never[];
      for (const name of [symbol, nameless]) for (const state of ["start", "heartbeat", "complete"]) progress(state, name as never);
      progress("start", "b");
      progress("heartbeat", "b", { elapsed: symbol });
      progress("complete", "b");
      await new Promise(setImmediate); // an unhandled rejection would fail the test
    }
  });
});

// SPEC 10.1, 10.3, 10.5
describe("the thinking option of an ACP agent", () => {
  const echo = makeTool("echo", () => "echoed");
  const lines = async (thinking: any, own?: any): Promise<string[]> => {
    const client = await connect([[{ toolCall: "echo", id: "a" }], "ok", { errorMessage: "broken" }], {
      ...(thinking !== undefined && { thinking }),
      agent: () => ({ tools: [echo], thinking: own }),
    });
    const id = await client.session();
    await client.prompt(id);
    await expect(client.prompt(id)).rejects.toThrow("broken");
    return client.outline().map((line) => line.replace(/thinking_\S+/, "T"));
  };
  const run = ["a in_progress", "a completed echoed"];
  const start = (title: string): string => `new T in_progress "${title}"`;
  const end = (title: string, status = "completed"): string => `T ${status} "${title}"`;
  const waits = (title: string): string[] => [
    start(title),
    'new a pending "echo"', // a name is no delta yet (SPEC 9.2)
    end(title),
    ...run,
    start(title),
    end(title),
    "message-2: ok",
    start(title),
    end(title, "failed"),
  ];
  const none = ['new a pending "echo"', ...run, "message-2: ok"];

  it.each<[string, unknown, unknown, string[]]>([
    ["true", true, undefined, waits("Thinking...")],
    ["options", { title: "Hmm" }, true, waits("Hmm")],
    ["nothing, the agent's own then", undefined, { title: "Own" }, waits("Own")],
    ["nothing at all", undefined, undefined, none],
    ["false", false, true, none],
  ])("is %s", async (_, thinking, own, expected) => {
    expect(await lines(thinking, own)).toEqual(expected);
  });

  it("shows heartbeats while the model is silent, and the host hears them too", async () => {
    const heard: string[] = [];
    const client = await connect([{ content: ["ok"], fault: { kind: "stall" } }], {
      thinking: { heartbeatMs: 1, maxHeartbeats: 2, onProgress: ({ state }) => void heard.push(state) },
      agent: () => ({ abortGraceMs: 1 }),
    });
    const id = await client.session();
    const prompt = client.prompt(id);
    let beats = 0;
    await client.until((entry) => entry.type === "update" && /\(0s\)/.test(outlineOf([entry.update])[0] as string) && ++beats === 2);
    await client.cancel(id);
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(heard).toEqual(["start", "heartbeat", "heartbeat", "complete"]);
    expect(client.outline().map((line) => line.replace(/thinking_\S+/, "T"))).toEqual([
      'new T in_progress "Thinking..."',
      'T in_progress "Thinking... (0s)"',
      'T in_progress "Thinking... (0s)"',
      'T failed "Stopped"',
    ]);
  });
});
