import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { calls, chunk, sse, stop, text } from "../adapters/helpers.js";
import { deferred } from "../helpers.js";
import { agentAndServer, allow, answerIn, connected, promptFrame, startAgent } from "./acp.js";
import { cardsOf } from "./acp-cards.js";
import { workspaceOf } from "./helpers.js";

const server = agentAndServer();
const { env, hold } = server;

const hello = text("Hello") + stop;
const ending = (reason: string): string => text("Hel") + sse(chunk({}, reason), "[DONE]");

// SPEC 10.1, 10.2, 10.3, 10.5, 10.6
describe("the SDK's client over stdio", () => {
  test("sees thinking, calls and the answer of two prompts, each card ended before the answer to its prompt", async () => {
    const { initialized, session, prompt, wire, leave } = await connected();
    expect(initialized).toMatchObject({ protocolVersion: 1, agentInfo: { name: "turnloop-example" }, authMethods: [] });
    const cwd = workspaceOf({ "a.txt": "one\ntwo\n", "b.txt": "three\n" });
    const id = await session(cwd);
    expect(await prompt(id, "how many lines have a.txt and b.txt?")).toEqual({ stopReason: "end_turn" });
    expect(await prompt(id, "what is 1+1?")).toEqual({ stopReason: "end_turn" });
    const think = { kind: "think", titles: ["Thinking...", "Thinking..."], statuses: ["in_progress", "completed"], text: "" };
    const statuses = ["pending", "in_progress", "pending", "in_progress", "completed"]; // asked for in the middle
    const count = { kind: "read", titles: ["Count lines", "Count lines"], statuses };
    const cards = cardsOf(wire);
    expect(cards.map(({ id: _id, ...card }) => card)).toEqual([
      think,
      { ...count, text: "a.txt: 2 lines, 8 bytes" },
      { ...count, text: "b.txt: 1 line, 6 bytes" },
      think,
      think,
      { kind: "think", titles: ["Calculate"], statuses: ["pending", "in_progress", "completed"], text: "1+1 = 2" },
      think,
    ]);
    expect(answerIn(wire)).toContain("a.txt has 2 lines (8 bytes).");
    expect(wire.filter(({ method }) => method === "session/request_permission")).toHaveLength(2); // arithmetic is free
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
  });

  test("gets frames on the standard output and nothing else, with beats and a package that logs", async () => {
    const { session, prompt, frame, leave, wire } = await connected({ env: env({ HEARTBEAT_MS: "15", OPENAI_LOG: "debug" }) });
    const held = hold(hello);
    const prompted = prompt(await session(), "hi");
    await frame(({ params }) => /\(\d+s\)$/.test(params?.update?.title));
    await held.release();
    expect(await prompted).toEqual({ stopReason: "end_turn" });
    expect(cardsOf(wire)).toEqual([expect.objectContaining({ kind: "think", statuses: expect.arrayContaining(["completed"]) })]);
    const { code, frames, stderr } = await leave();
    expect({ code, answer: answerIn(frames) }).toEqual({ code: 0, answer: "Hello" });
    expect(stderr).toContain("chat/completions");
  });

  test("cancels one session before its first delta, the other one is answered", async () => {
    const { session, prompt, agent, leave, wire } = await connected({ env: env() });
    const [one, other] = [await session(), await session()];
    const stopped = hold(hello);
    const first = prompt(one, "hi");
    await stopped.asked;
    const held = hold(hello);
    const second = prompt(other, "hi");
    await held.asked;
    await agent.notify("session/cancel", { sessionId: one });
    expect(await first).toEqual({ stopReason: "cancelled" });
    await stopped.closed;
    await held.release();
    expect(await second).toEqual({ stopReason: "end_turn" });
    expect(cardsOf(wire).map(({ titles, statuses }) => [titles.at(-1), statuses.at(-1)])).toEqual([
      ["Stopped", "failed"],
      ["Thinking...", "completed"],
    ]);
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
  });

  test("reads each fault of the model as the error of its prompt, or the reason it stopped; the session goes on", async () => {
    const { session, prompt, leave, wire } = await connected({ env: env() });
    const id = await session();
    void server.answer(
      (response) => response.writeHead(401).end('{"error":{"message":"no such key"}}'),
      (response) => response.writeHead(404).end('{"error":{"message":"no such model"}}'),
      (response) => response.end(text("Hel")),
      (response) => response.end(ending("content_filter")),
      (response) => response.end(ending("length")),
      (response) => response.end(hello),
    );
    await expect(prompt(id, "hi")).rejects.toMatchObject({ code: -32603, message: "401 no such key", data: { kind: "auth", status: 401 } });
    await expect(prompt(id, "hi")).rejects.toMatchObject({ code: -32603, message: "404 no such model" });
    await expect(prompt(id, "hi")).rejects.toMatchObject({ code: -32603, data: { kind: "network" } });
    expect(await prompt(id, "hi")).toEqual({ stopReason: "refusal" });
    expect(await prompt(id, "hi")).toEqual({ stopReason: "max_tokens" });
    expect(await prompt(id, "hi")).toEqual({ stopReason: "end_turn" });
    expect(cardsOf(wire).map(({ statuses }) => statuses.at(-1))).toEqual(["failed", "failed", ...Array(4).fill("completed")]);
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
  });
});

// SPEC 10.4
test("a permission is asked for once when the client says always, and the model reads a refusal", async () => {
  const asked: unknown[] = [];
  const options = ["allow_always", "reject_once"];
  const { session, prompt, wire } = await connected({
    env: env(),
    decide: ({ toolCall, options: offered }) => {
      asked.push({ title: toolCall.title, kind: toolCall.kind, locations: toolCall.locations, offered: offered.map(({ kind }) => kind) });
      return { outcome: { outcome: "selected", optionId: options.shift() as string } };
    },
  });
  const cwd = workspaceOf({ "a.txt": "one\n" });
  const call = (id: string, name: string) => calls({ index: 0, id, function: { name, arguments: '{"path":"a.txt"}' } });
  const ended = sse(chunk({}, "tool_calls"), "[DONE]");
  void server.answer(
    (response) => response.end(call("c1", "count_lines") + ended),
    (response) => response.end(call("c2", "count_lines") + ended),
    (response) => response.end(call("c3", "read_file") + ended),
    (response) => response.end(hello),
  );
  expect(await prompt(await session(cwd), "look")).toEqual({ stopReason: "end_turn" });
  const offered = ["allow_once", "allow_always", "reject_once", "reject_always"];
  expect(asked).toEqual(
    ["Count lines", "Read file"].map((title) => ({ title, kind: "read", locations: [{ path: `${cwd}/a.txt` }], offered })),
  );
  expect(cardsOf(wire).filter(({ kind }) => kind === "read")).toMatchObject([
    { id: "c1", statuses: ["pending", "in_progress", "pending", "in_progress", "completed"] },
    { id: "c2", statuses: ["pending", "in_progress", "completed"] },
    { id: "c3", statuses: ["pending", "in_progress", "pending", "failed"], text: "The user did not allow this call." },
  ]);
  expect(server.requests().at(-1)?.body.messages.at(-1)).toMatchObject({ role: "tool", content: "The user did not allow this call." });
});

// SPEC 10.1, 10.5
describe("the process ends with code 0", () => {
  test("when its input closes before anything was said", async () => {
    expect(await startAgent().leave()).toEqual({ code: 0, frames: [], stderr: "" });
  });

  test("when its input closes while the model is silent: the request is given up", async () => {
    const { session, prompt, leave } = await connected({ env: env() });
    const held = hold(hello);
    prompt(await session(), "hi").catch(() => {});
    await held.asked;
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
    await held.closed;
  });

  test("when its input closes while the user is asked", async () => {
    const asked = deferred();
    const { session, prompt, leave } = await connected({
      decide: async (question) => {
        asked.resolve();
        await new Promise(() => {});
        return allow(question);
      },
    });
    prompt(await session(workspaceOf({ "a.txt": "one\n" })), "how many lines has a.txt?").catch(() => {});
    await asked.promise;
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
  });

  test("when its input closes, also if nobody reads its standard error", async () => {
    const { session, prompt, child, leave } = await connected({ env: env({ OPENAI_LOG: "debug" }) });
    child.stderr.destroy();
    void server.answer((response) => response.end(hello));
    expect(await prompt(await session(), "hi")).toEqual({ stopReason: "end_turn" });
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
  });

  test("when nobody reads its output any more", async () => {
    const { send, open, child, finished } = startAgent(env({ HEARTBEAT_MS: "15" }));
    const held = hold(hello);
    send(promptFrame("prompt", await open(), "hi"));
    await held.asked;
    child.stdout.destroy();
    expect(await finished).toMatchObject({ code: 0, stderr: "" });
  });
});

// SPEC 10.1, 10.5, 10.6
describe("a client by hand", () => {
  test("hears what was wrong, while a session goes on", async () => {
    const { send, frame, open, leave } = startAgent(env());
    const held = hold(hello);
    const sessionId = await open();
    send(promptFrame("prompt", sessionId, "hi"));
    await held.asked;
    send(
      '{"jsonrpc":"2.0","id":1,',
      "what?",
      "",
      "[]",
      { id: "method", method: "session/dance", params: {} },
      { method: "session/dance", params: {} },
      { id: "params", method: "session/prompt", params: { sessionId } },
      { id: "cwd", method: "session/new", params: { mcpServers: [] } },
      promptFrame("session", "nobody", "hi"),
      promptFrame("busy", sessionId, "hi"),
    );
    await frame(({ id }) => id === "busy");
    await held.release();
    expect((await frame(({ id }) => id === "prompt")).result).toEqual({ stopReason: "end_turn" });
    send(promptFrame("empty", sessionId, ""));
    await frame(({ id }) => id === "empty");
    const { code, frames } = await leave();
    expect({ code, answer: answerIn(frames) }).toEqual({ code: 0, answer: "Hello" });
    const errors = frames.flatMap(({ id, error }) => (error ? [[id, error.code]] : []));
    expect(errors.flatMap(([id, fault]) => (id === null ? [fault] : []))).toEqual([-32700, -32700, -32600]);
    expect(Object.fromEntries(errors.filter(([id]) => id !== null))).toEqual({
      method: -32601,
      params: -32602,
      cwd: -32602,
      session: -32002,
      busy: -32600,
      empty: -32602,
    });
  });

  test("may cancel at any time: a cancel stops the prompts before it and none behind it", async () => {
    const { send, frame, open, leave } = startAgent();
    const sessionId = await open();
    const cancel = { method: "session/cancel", params: { sessionId } };
    const nobody = { method: "session/cancel", params: { sessionId: "nobody" } };
    const reasons: unknown[] = [];
    for (const [prompt, ...lines] of [
      ["idle", cancel, nobody, promptFrame("idle", sessionId, "what is 1+1?")],
      ["before", promptFrame("before", sessionId, "what is 1+1?"), cancel],
      ["after", promptFrame("after", sessionId, "what is 1+1?")],
    ] as const) {
      send(...lines);
      const { result } = await frame(({ id }) => id === prompt);
      reasons.push([prompt, result.stopReason]);
    }
    expect(reasons).toEqual([
      ["idle", "end_turn"],
      ["before", "cancelled"],
      ["after", "end_turn"],
    ]);
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
  });
});

describe("usage", () => {
  test("the README's settings for editors start it", async () => {
    const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
    const settings = JSON.parse(/^```json\n(\{\n {2}"agent_servers".*?)```/ms.exec(readme)?.[1] ?? "null");
    const { command, args, env: environment } = settings.agent_servers.turnloop;
    expect([command, ...args]).toEqual(["node", expect.stringMatching(/\/dist-examples\/acp-agent\.js$/)]);
    const { session, prompt, leave } = await connected({ env: { ...environment, OPENAI_BASE_URL: env()["OPENAI_BASE_URL"] as string } });
    void server.answer((response) => response.end(hello));
    expect(await prompt(await session(), "hi")).toEqual({ stopReason: "end_turn" });
    expect([Object.keys(environment), server.requests()[0]?.body.model]).toEqual([["OPENAI_BASE_URL", "OPENAI_MODEL"], "qwen3"]);
    expect(await leave()).toMatchObject({ code: 0, stderr: "" });
  });

  test("--help", async () => {
    const { code, stdout, stderr } = await startAgent({}, ["--help"]).finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: npm run acp --silent\n/);
  });

  test("what cannot work is refused in one line on the standard error", async () => {
    const faults: [string, Record<string, string>, string[]?][] = [
      ['The model "x" needs a server; set OPENAI_BASE_URL, OPENAI_API_KEY or both', { OPENAI_MODEL: "x" }],
      ["The model's name is empty", { OPENAI_MODEL: " ", OPENAI_API_KEY: "k" }],
      [
        'OPENAI_BASE_URL must be a web address such as http://localhost:11434/v1; got "localhost:1"',
        { OPENAI_MODEL: "x", OPENAI_BASE_URL: "localhost:1" },
      ],
      ['HEARTBEAT_MS must be a number of milliseconds such as 30000; got "30s"', { HEARTBEAT_MS: "30s" }],
      ["Unknown option '--hepl'", {}, ["--hepl"]],
      ["Unexpected argument 'serve'", {}, ["serve"]],
    ];
    expect(await Promise.all(faults.map(([, environment, args]) => startAgent(environment, args).finished))).toEqual(
      faults.map(([fault]) => ({ code: 2, stdout: "", stderr: `${fault}. --help shows the usage.\n` })),
    );
  });
});
