import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTick } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { offlineModel } from "../../examples/offline-model.js";
import { workspaceTools } from "../../examples/workspace-tools.js";
import { makeTool, textOf } from "../helpers.js";
import { workspaceOf } from "./helpers.js";
import { expectSameViews, heldModel, host, post, talk, type Watcher } from "./server-host-helpers.js";

const offline = () => ({ streamFn: offlineModel({ chunkDelayMs: 0 }), tools: workspaceTools(workspaceOf({})) });
const texts = ({ view }: Watcher): string[] => view.messages.map(textOf);
const streaming = (watcher: Watcher): string => textOf(watcher.view.streamingMessage);

describe("conversations", () => {
  // SPEC 15.1
  test("several users talk at once, each about their own", async () => {
    const server = await host(offline());
    const users = await Promise.all([1, 2, 3, 4, 5].map(async (number) => ({ number, ...(await talk(server)) })));
    expect(new Set(users.map(({ base }) => base)).size).toBe(5);
    await Promise.all(
      users.map(async ({ number, does, watch }) => {
        const watcher = await watch();
        await does("prompt", { text: `what is ${number} * 100?` });
        await watcher.untilOutcome();
        expect(watcher.view.messages.filter(({ role }) => role === "user")).toHaveLength(1);
        expect(texts(watcher).at(-1)).toBe(`${number} * 100 = ${number}00`);
      }),
    );
  });

  test("two clients of one conversation see the same, also the one that comes in the middle", async () => {
    const model = heldModel();
    const { does, watch } = await talk(await host({ streamFn: model.streamFn, thinking: true }));
    const one = await watch();
    await does("prompt", { text: "go" });
    await one.until(({ view }) => view.thinking !== undefined);
    const early = await watch();
    model.says("half of ");
    await one.until((watcher) => streaming(watcher) === "half of ");
    await does("steer", { text: "and more" });
    await one.until(({ view }) => view.queues.steering.length === 1);
    const late = await watch();
    await late.until(({ entries }) => entries.length === 1);
    expect(late.view).toEqual(one.view);
    model.says("it");
    model.ends();
    model.says("more");
    model.ends();
    await Promise.all([one, early, late].map((watcher) => watcher.untilOutcome()));
    expect(texts(one)).toEqual(["go", "half of it", "and more", "more"]);
    for (const other of [early, late]) expectSameViews(one, other);
  });

  test("that nobody uses go after a while; a client or a run keeps them", async () => {
    let now = 0;
    const model = heldModel();
    const server = await host({ streamFn: model.streamFn }, { idleMs: 1000, now: () => now, maxConversations: 3 });
    const [unused, watched, running] = [await talk(server), await talk(server), await talk(server)];
    expect(await post(`${server.url}/conversations`)).toMatchObject({ status: 503, body: { error: { code: "full" } } });
    await watched.watch();
    await running.does("prompt", { text: "go" });
    const statuses = (): Promise<number[]> =>
      Promise.all([unused, watched, running].map(async ({ base }) => (await post(`${base}/abort`, "[]")).status));
    now = 999;
    server.conversations.sweep();
    now = 1000;
    server.conversations.sweep();
    expect(await statuses()).toEqual([404, 400, 400]);
    expect((await post(`${server.url}/conversations`)).status).toBe(201);
  });
});

describe("what a user does while it runs", () => {
  // SPEC 8.3
  test("steering goes into the next turn, a follow-up behind the end", async () => {
    const model = heldModel();
    const server = await host({ streamFn: model.streamFn, tools: [makeTool("look", () => "seen")] });
    const { base, does, watch } = await talk(server);
    const watcher = await watch();
    await does("prompt", { text: "go" });
    await does("follow-up", { text: "later" });
    await does("steer", { text: "now" });
    await watcher.until(({ view }) => view.queues.followUp.length + view.queues.steering.length === 2);
    expect(await post(`${base}/prompt`, { text: "again" })).toMatchObject({ status: 409, body: { error: { code: "busy" } } });
    model.calls("look");
    for (const text of ["", "first", "second"]) {
      model.says(text);
      model.ends();
    }
    await watcher.untilOutcome();
    expect(texts(watcher)).toEqual(["go", "", "seen", "now", "first", "later", "second"]);
    expect(watcher.view.queues).toEqual({ steering: [], followUp: [] });
    expect(watcher.view.messages).toEqual(server.agents[0]?.messages);
  });

  test("what comes too late for the run gets one of its own", async () => {
    const model = heldModel();
    const server = await host({ streamFn: model.streamFn });
    const { does, watch, conversation } = await talk(server);
    const watcher = await watch();
    server.agents[0]?.once("agent_end", () => conversation.add("steer", "wait"));
    await does("prompt", { text: "go" });
    for (const text of ["first", "second"]) {
      model.says(text);
      model.ends();
    }
    await watcher.until(({ view }) => view.messages.length === 4 && view.outcome === "completed");
    expect(texts(watcher)).toEqual(["go", "first", "wait", "second"]);
  });

  // SPEC 7.3, 8.1, 15.1
  test("an abort ends the answer, a retry begins it anew, and everyone sees the stopped one go", async () => {
    const model = heldModel();
    const server = await host({ streamFn: model.streamFn });
    const { base, does, watch } = await talk(server);
    const one = await watch();
    await does("abort");
    await does("prompt", { text: "go" });
    model.says("half");
    await one.until((watcher) => streaming(watcher) === "half");
    const knownBefore = one.last;
    await does("abort");
    await one.untilOutcome("aborted");
    expect(one.view).toMatchObject({ error: { message: "Aborted: stopped by the user" }, messages: [{}, { stopReason: "aborted" }] });
    await does("retry");
    model.says("whole");
    model.ends();
    await one.untilOutcome();
    expect(texts(one)).toEqual(["go", "whole"]);
    expect(one.view.messages).toEqual(server.agents[0]?.messages);
    const back = await watch({ lastEventId: knownBefore });
    await back.untilOutcome();
    expect(back.entries.map(({ id }) => id)).toEqual(one.entries.map(({ id }) => id).filter((id) => id > knownBefore));
    expect(back.view).toEqual(one.view);
    expect(await post(`${base}/retry`)).toMatchObject({ status: 409, body: { error: { code: "cannot_continue_from_assistant" } } });
  });

  test("a failed answer can be tried again", async () => {
    const model = heldModel();
    const { does, watch } = await talk(await host({ streamFn: model.streamFn }));
    const watcher = await watch();
    await does("prompt", { text: "go" });
    model.fails(new Error("no luck"));
    await watcher.untilOutcome("error");
    expect(watcher.view.error?.message).toBe("no luck");
    await does("retry");
    model.says("luck");
    model.ends();
    await watcher.untilOutcome();
    expect(texts(watcher)).toEqual(["go", "luck"]);
  });
});

describe("approvals", () => {
  // SPEC 15.2, 15.3, 15.4
  test.each([
    ["approve", {}, "wrote a", false],
    ["approve", { args: { path: "b" } }, "wrote b", false],
    ["deny", { reason: "not there" }, "not there", true],
    ["result", { result: "done by hand" }, "done by hand", false],
  ])("are answered by a client that came back: %s %o", async (action, more, text, isError) => {
    const model = heldModel();
    const write = makeTool("write", (_id, { path }) => `wrote ${path}`, {
      parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    });
    const server = await host({ streamFn: model.streamFn, tools: [write], beforeToolCall: () => ({ suspend: true, reason: "it writes" }) });
    const { base, does, watch } = await talk(server);
    const [undisturbed, before] = [await watch(), await watch()];
    await does("prompt", { text: "go" });
    await before.until(({ view }) => view.messages.length === 1);
    before.close();
    model.calls("write", { path: "a" });
    model.ends();
    await undisturbed.untilOutcome("suspended");
    const [back, fresh] = [await watch({ lastEventId: before.last }), await watch()];
    await Promise.all([back.untilOutcome("suspended"), fresh.untilOutcome("suspended")]);
    expect(fresh.view).toEqual(undisturbed.view);
    expect(fresh.view.pending).toMatchObject([{ toolCall: { id: "write-1" }, args: { path: "a" }, reason: "it writes" }]);
    expect(await post(`${base}/retry`)).toMatchObject({ status: 409, body: { error: { code: "calls_pending" } } });
    await does("decisions", { decisions: [{ toolCallId: "write-1", action, ...more }] });
    model.says("over");
    model.ends();
    await Promise.all([undisturbed, fresh].map((watcher) => watcher.untilOutcome()));
    expect(fresh.view.messages[2]).toMatchObject({ role: "toolResult", isError });
    expect(texts(fresh)[2]).toContain(text);
    expect(fresh.view).not.toHaveProperty("pending");
    expectSameViews(undisturbed, fresh);
    expect(await post(`${base}/decisions`, { decisions: [] })).toMatchObject({ status: 409, body: { error: { code: "nothing_pending" } } });
  });
});

describe("requests that cannot be taken", () => {
  const JSON_ONLY = { "content-type": "text/plain" };
  const NOWHERE = "/conversations/11111111-1111-4111-8111-111111111111";
  const waits = [{ toolCallId: "look-1", action: "approve" }];
  const cases: [string, { path: string; body?: unknown; headers?: Record<string, string> }, number, string][] = [
    ["an unknown conversation", { path: `${NOWHERE}/prompt`, body: { text: "go" } }, 404, "unknown_conversation"],
    ["an unknown action", { path: "ID/dance" }, 404, "not_found"],
    ["no action", { path: "ID" }, 404, "not_found"],
    ["one too many", { path: "ID/prompt/more" }, 404, "not_found"],
    ["another path", { path: "/favicon.ico" }, 404, "not_found"],
    ["a POST for events", { path: "ID/events" }, 405, "method_not_allowed"],
    ["what is not JSON", { path: "ID/prompt", body: "{text" }, 400, "invalid_json"],
    ["nothing", { path: "ID/prompt", body: "" }, 400, "invalid_json"],
    ["an array", { path: "ID/prompt", body: [] }, 400, "invalid_body"],
    ["null", { path: "ID/abort", body: "null" }, 400, "invalid_body"],
    ["no text", { path: "ID/prompt", body: {} }, 400, "invalid_body"],
    ["an empty text", { path: "ID/steer", body: { text: " \n" } }, 400, "invalid_body"],
    ["a text that is none", { path: "ID/follow-up", body: { text: 5 } }, 400, "invalid_body"],
    ["steering for no run", { path: "ID/steer", body: { text: "go" } }, 409, "not_running"],
    ["a retry of nothing", { path: "ID/retry" }, 409, "calls_pending"],
    ["no decisions", { path: "ID/decisions", body: {} }, 400, "invalid_body"],
    ["decisions that are none", { path: "ID/decisions", body: { decisions: [null] } }, 400, "invalid_body"],
    ["too few decisions", { path: "ID/decisions", body: { decisions: [] } }, 400, "missing_decision"],
    ["one decision twice", { path: "ID/decisions", body: { decisions: [...waits, ...waits] } }, 400, "duplicate_decision"],
    ["a decision on another call", { path: "ID/decisions", body: { decisions: [{ toolCallId: "x" }] } }, 400, "unknown_decision"],
    ["no decision", { path: "ID/decisions", body: { decisions: [{ ...waits[0], action: "x" }] } }, 400, "invalid_decision"],
    ["another type", { path: "ID/prompt", body: { text: "go" }, headers: JSON_ONLY }, 415, "unsupported_media_type"],
    ["too much", { path: "ID/prompt", body: { text: "x".repeat(1000) } }, 413, "too_large"],
  ];

  test("each is told why, and nothing comes of it", async () => {
    const model = heldModel();
    const server = await host(
      { streamFn: model.streamFn, tools: [makeTool("look", () => "seen")], beforeToolCall: () => ({ suspend: true }) },
      { bodyBytes: 1000 },
    );
    const { base, does, watch } = await talk(server);
    const watcher = await watch();
    await does("prompt", { text: "go" });
    model.calls("look");
    model.ends();
    await watcher.untilOutcome("suspended");
    const { last, view } = watcher;
    for (const [name, { path, body, headers }, status, code] of cases) {
      const url = path.startsWith("ID") ? path.replace("ID", base) : server.url + path;
      const answer = await post(url, body, headers);
      expect(answer, name).toMatchObject({ status, body: { error: { code, message: expect.stringMatching(/^[A-Z"].+\.?$/) } } });
      expect(Object.keys(answer.body), name).toEqual(["error"]);
    }
    expect(watcher).toMatchObject({ last, view });
  });

  test("by the wrong method, under another name, or without end", async () => {
    const errors = vi.spyOn(console, "error");
    onTestFinished(() => errors.mockRestore());
    const server = await host(offline());
    const { base } = await talk(server);
    const wrong = await fetch(`${base}/prompt`);
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
    const asked = await fetch(`${base}/prompt`, { method: "OPTIONS", headers: { origin: "http://else.where" } });
    expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([405, null]);
    expect((await fetch(`${server.url}/conversations/x/events`)).status).toBe(404);
    const statusOf = (options: object): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const sent = request(server.url, options, (response) => resolve(response.resume().statusCode)).on("error", reject);
        sent.end();
      });
    expect(await statusOf({ headers: { host: "else.where" } })).toBe(403);
    expect(await statusOf({ headers: { host: "localhost:1" }, path: "*", method: "OPTIONS" })).toBe(404);
    // a client that goes away in the middle of its body
    const head = `POST ${new URL(base).pathname}/prompt HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    const socket = await half(server.url, `${head}content-length: 9\r\n\r\n{`);
    socket.destroy();
    expect((await post(`${server.url}/conversations`)).status).toBe(201);
    await server.close();
    for (let tick = 0; tick < 20; tick++) await nextTick();
    expect(errors).not.toHaveBeenCalled();
  });
});

describe("a shutdown", () => {
  // SPEC 7.2
  test("aborts the runs, shows their ends, ends the streams and takes nothing more", async () => {
    const model = heldModel();
    const server = await host({ streamFn: model.streamFn });
    const [running, idle] = [await talk(server), await talk(server)];
    const watchers = [await running.watch(), await idle.watch()] as const;
    await running.does("prompt", { text: "go" });
    await running.does("follow-up", { text: "later" });
    model.says("half");
    await watchers[0].until((watcher) => streaming(watcher) === "half");
    await server.close();
    await Promise.all(watchers.map((watcher) => watcher.until(({ hasEnded }) => hasEnded)));
    expect(watchers[0].view).toMatchObject({ outcome: "aborted", error: { message: "Aborted: the server is shutting down" } });
    expect(watchers[0].view.messages).toEqual(server.agents[0]?.messages);
    await expect(fetch(server.url)).rejects.toThrow();
  });

  test("tells who is still asking that it is too late, and does not wait for them", async () => {
    const server = await host(offline(), { closeGraceMs: 60_000 });
    const socket = await half(server.url, "POST /conversations HTTP/1.1\r\nhost: lo");
    await talk(server);
    const closed = server.close();
    let answer = "";
    socket.setEncoding("utf8").on("data", (text) => {
      answer += text;
    });
    socket.resume().write("calhost\r\n\r\n");
    await Promise.all([closed, once(socket, "close")]);
    expect(answer).toMatch(/^HTTP\/1\.1 503 .*"code":"closing"/s);
  });

  test("gives up those who do not read and those who never finish asking", async () => {
    const server = await host(offline(), { closeGraceMs: 1 });
    const { base, conversation } = await talk(server);
    await half(server.url, `GET ${new URL(base).pathname}/events HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    await half(server.url, "POST /conversations HTTP/1.1\r\nhost: lo");
    await talk(server);
    expect(conversation.load.clients).toBe(1);
    await server.close();
  });
});

/** A connection on which this has been said, and nothing is read. */
async function half(url: string, said: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").pause();
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve) => socket.write(said, () => resolve()));
  return socket;
}
