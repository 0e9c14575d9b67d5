import * as acp from "@agentclientprotocol/sdk";
import { Agent, stopAfterTurns } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { deferred, makeTool, model } from "../helpers.js";
import { connect, finishClients } from "./acp-helpers.js";

finishClients();

const echo = makeTool("echo", () => "echoed");
/** What the client's SDK rejects with. */
const refused = (code: number, message: RegExp | string, data?: unknown) =>
  expect.objectContaining({ code, message: expect.stringMatching(message), ...(data !== undefined && { data }) });

// SPEC 10.1, 10.6
describe("an agent served to a client", () => {
  it("introduces itself and serves a prompt", async () => {
    const client = await connect([[{ toolCall: "echo", id: "a" }], "Done."], { agent: () => ({ tools: [echo] }) });
    expect(await client.initialize()).toEqual({
      protocolVersion: 1,
      agentCapabilities: { promptCapabilities: { image: true, embeddedContext: true } },
      agentInfo: { name: "turnloop", version: "0.1.0" },
      authMethods: [],
    });
    expect(await client.prompt(await client.session())).toEqual({ stopReason: "end_turn" });
    expect(client.outline()).toEqual(['new a pending "echo"', "a in_progress", "a completed echoed", "message-2: Done."]);
  });

  it("introduces itself as the host wants", async () => {
    const client = await connect([], { agentInfo: { name: "mine", title: "My agent", version: "2" } });
    expect((await client.initialize()).agentInfo).toEqual({ name: "mine", title: "My agent", version: "2" });
  });

  it("makes an agent of each session's own, with what the client said", async () => {
    const sessions: unknown[] = [];
    const client = await connect(["a"], {
      agent: ({ connection, ...session }) => {
        expect(typeof connection.notify).toBe("function");
        sessions.push(session);
        return {};
      },
    });
    const ids = [await client.session("/one"), await client.session("/two")];
    expect(new Set(ids).size).toBe(2);
    expect(sessions).toEqual([
      { sessionId: ids[0], cwd: "/one", mcpServers: [] },
      { sessionId: ids[1], cwd: "/two", mcpServers: [] },
    ]);
    await Promise.all(ids.map((id) => client.prompt(id)));
    expect(ids.map((id) => client.outline(id))).toEqual([["message-1: a"], ["message-1: a"]]);
    expect(client.agents.map(({ messages }) => messages.length)).toEqual([2, 2]);
  });

  it("keeps message and card ids unique over the prompts of a session", async () => {
    const call = [{ toolCall: "echo", id: "a" }];
    const client = await connect([call, "one", call, "two"], { agent: () => ({ tools: [echo] }) });
    const id = await client.session();
    await client.prompt(id);
    await client.prompt(id);
    expect(client.outline().filter((line) => !line.includes("in_progress"))).toEqual([
      'new a pending "echo"',
      "a completed echoed",
      "message-2: one",
      'new a-2 pending "echo"',
      "a-2 completed echoed",
      "message-4: two",
    ]);
  });

  it.each<[string, acp.ContentBlock[], unknown[]]>([
    ["text", [{ type: "text", text: "hi" }], [{ type: "text", text: "hi" }]],
    ["an image", [{ type: "image", data: "AA==", mimeType: "image/png" }], [{ type: "image", data: "AA==", mimeType: "image/png" }]],
    [
      "links",
      [
        { type: "resource_link", name: "a.ts", uri: "file:///a.ts" },
        { type: "resource_link", name: "b", title: "B", uri: "file:///b" },
      ],
      [
        { type: "text", text: "[a.ts](file:///a.ts)" },
        { type: "text", text: "[B](file:///b)" },
      ],
    ],
    [
      "embedded text",
      [{ type: "resource", resource: { uri: "file:///a", text: "content" } }],
      [{ type: "text", text: "Content of file:///a:\n\ncontent" }],
    ],
    [
      "an embedded image",
      [{ type: "resource", resource: { uri: "file:///a", blob: "AA==", mimeType: "image/gif" } }],
      [{ type: "image", data: "AA==", mimeType: "image/gif" }],
    ],
    [
      "an embedded file",
      [{ type: "resource", resource: { uri: "file:///a", blob: "AA==" } }],
      [{ type: "text", text: "[file:///a: binary content that cannot be read]" }],
    ],
    ...["", "data:image/png;base64,AA==", "not base64!", "AA=="].map((data, i): [string, acp.ContentBlock[], unknown[]] => [
      `an image that no model could read (${i})`,
      [{ type: "image", data, mimeType: i === 3 ? "text/html" : "image/png" }],
      [{ type: "text", text: `[${i === 3 ? "text/html" : "image/png"} content that cannot be read]` }],
    ]),
    [
      "an embedded image that no model could read",
      [{ type: "resource", resource: { uri: "file:///a", blob: "A A", mimeType: "image/gif" } }],
      [{ type: "text", text: "[file:///a: image/gif content that cannot be read]" }],
    ],
    ["sound", [{ type: "audio", data: "AA==", mimeType: "audio/wav" }], [{ type: "text", text: "[audio content that cannot be read]" }]],
    [
      "empty blocks between others",
      [
        { type: "text", text: "" },
        { type: "text", text: "hi" },
        { type: "text", text: "" },
      ],
      [{ type: "text", text: "hi" }],
    ],
  ])("takes %s", async (_, blocks, content) => {
    const client = await connect(["ok"]);
    await client.prompt(await client.session(), blocks);
    expect(client.agents[0]?.messages[0]).toMatchObject({ role: "user", content });
  });

  it("refuses what it cannot do, and goes on", async () => {
    const client = await connect(["ok", "again"]);
    const id = await client.session();
    await expect(client.prompt("nowhere")).rejects.toEqual(refused(-32002, "not found", { sessionId: "nowhere" }));
    await expect(client.prompt(id, [])).rejects.toEqual(refused(-32602, "prompt is empty"));
    await expect(client.prompt(id, "")).rejects.toEqual(refused(-32602, "prompt is empty"));
    await expect(client.connection.agent.request("session/load", { sessionId: id, cwd: "/", mcpServers: [] })).rejects.toEqual(
      refused(-32601, ""),
    );
    await client.cancel("nowhere");
    expect(await client.prompt(id)).toEqual({ stopReason: "end_turn" });
  });

  it("refuses a second prompt while the first one runs, and a prompt while the host's own runs", async () => {
    const release = deferred<string>();
    const client = await connect([[{ toolCall: "wait", id: "a" }], "one", "two"], {
      agent: () => ({ tools: [makeTool("wait", () => release.promise)] }),
    });
    const id = await client.session();
    const first = client.prompt(id);
    await client.untilShown(/^a in_progress/);
    await expect(client.prompt(id)).rejects.toEqual(refused(-32600, "busy", { sessionId: id }));
    release.resolve("done");
    expect(await first).toEqual({ stopReason: "end_turn" });
    const own = client.agents[0]?.prompt("by the host");
    await expect(client.prompt(id)).rejects.toEqual(refused(-32600, "busy"));
    expect((await own)?.outcome).toBe("completed");
    expect(client.outline().filter((line) => line.startsWith("message"))).toEqual(["message-2: one"]);
  });

  it("shows what the host steers and follows up with inside a prompt", async () => {
    const steer = makeTool("steer", () => {
      client.agents[0]?.steer("this way");
      client.agents[0]?.followUp("and then");
      return "ok";
    });
    const client = await connect([[{ toolCall: "steer", id: "a" }], "steered", "followed"], { agent: () => ({ tools: [steer] }) });
    const id = await client.session();
    expect(await client.prompt(id)).toEqual({ stopReason: "end_turn" });
    expect(client.outline().slice(-2)).toEqual(["message-2: steered", "message-3: followed"]);
    expect(client.agents[0]?.messages.filter(({ role }) => role === "user")).toHaveLength(3);
  });

  it("sends nothing of the host's own runs between prompts", async () => {
    const client = await connect(["one", [{ thinking: "hm" }, { toolCall: "echo", id: "b" }], "own", "two"], {
      thinking: true,
      agent: () => ({ tools: [echo] }),
    });
    const id = await client.session();
    await client.prompt(id);
    await client.agents[0]?.prompt("by the host");
    await client.prompt(id);
    expect(client.outline().filter((line) => !line.includes("Thinking"))).toEqual(["message-1: one", "message-2: two"]);
  });

  it("sends nothing after the answer, whatever a tool still reports", async () => {
    let report: (() => void) | undefined;
    const late = makeTool("late", (_id, _args, _signal, onUpdate) => {
      report = () => onUpdate({ content: [{ type: "text", text: "late" }] });
      return "done";
    });
    const client = await connect([[{ toolCall: "late" }], "ok"], { agent: () => ({ tools: [late] }) });
    await client.prompt(await client.session());
    const before = client.recorded.length;
    report?.();
    await new Promise(setImmediate);
    expect(client.recorded.length).toBe(before);
  });

  it("sends the newest of what a tool reports faster than the client reads", async () => {
    let gate: Promise<void> | undefined;
    const slow = deferred();
    const busy = makeTool("busy", async (_id, _args, _signal, onUpdate) => {
      await client.untilShown(/^a in_progress/);
      gate = slow.promise;
      for (let i = 1; i <= 1000; i++) onUpdate({ content: [{ type: "text", text: `${i}` }] });
      await new Promise(setImmediate);
      slow.resolve();
      await client.untilShown(/1000/);
      return "done";
    });
    const client = await connect([[{ toolCall: "busy", id: "a" }], "ok"], { agent: () => ({ tools: [busy] }), gate: () => gate });
    await client.prompt(await client.session());
    expect(client.outline()).toEqual(['new a pending "busy"', "a in_progress", "a in_progress 1000", "a completed done", "message-2: ok"]);
  });
});

// SPEC 10.2
describe("how a prompt ends", () => {
  it.each<[string, ScriptedAnswer[], object]>([
    ["end_turn", ["ok"], {}],
    ["end_turn", [[{ toolCall: "echo" }], { content: ["x"], stopReason: "weird" }], {}],
    ["end_turn", [[{ toolCall: "stop" }]], {}],
    ["max_tokens", [{ content: ["half"], stopReason: "length" }], {}],
    ["max_turn_requests", [[{ toolCall: "echo" }], "never"], { shouldStopAfterTurn: stopAfterTurns(1) }],
    ["refusal", [{ content: ["no"], errorMessage: "refused", errorInfo: { kind: "refusal", retryable: false } }], {}],
    ["cancelled", [{ stopReason: "aborted" }], {}],
  ])("%s %#", async (stopReason, answers, agent) => {
    const stop = makeTool("stop", () => ({ content: [], terminate: true }));
    const client = await connect(answers, { agent: () => ({ tools: [echo, stop], ...agent }) });
    expect(await client.prompt(await client.session())).toEqual({ stopReason });
  });

  it("is an error of the request when the model fails, with what is known of it", async () => {
    const errorInfo = { kind: "rate_limit", status: 429, retryable: true, retryAfterMs: 5 } as const;
    const client = await connect([
      { content: ["Half"], errorMessage: "slow down \ud83d", errorInfo },
      { fault: { kind: "throwSync" } },
      "ok",
    ]);
    const id = await client.session();
    await expect(client.prompt(id)).rejects.toEqual(refused(-32603, /^slow down \ufffd$/, errorInfo));
    await expect(client.prompt(id)).rejects.toEqual(refused(-32603, /^scripted throwSync$/));
    expect(await client.prompt(id)).toEqual({ stopReason: "end_turn" });
    expect(client.outline()).toEqual(["message-1: Half", "message-3: ok"]);
  });

  it("is an error of the request when the agent refuses to run", async () => {
    const client = await connect(undefined as never, { agent: () => ({ streamFn: undefined as never }) });
    await expect(client.prompt(await client.session())).rejects.toEqual(refused(-32603, "streamFn must be", { code: "no_stream_fn" }));
  });
});

// SPEC 10.5
it("closes the cards of an agent that fails in the middle of a run", async () => {
  const agent = new Agent({ model, streamFn: scriptedModel([]) });
  agent.prompt = async () => {
    agent.emit("thinking", { state: "start", cardId: "t", name: "n", title: "T", elapsedMs: 0 });
    throw new Error("no memory");
  };
  const client = await connect([], { createAgent: () => agent });
  await expect(client.prompt(await client.session())).rejects.toEqual(refused(-32603, "no memory"));
  expect(client.outline()).toEqual(['new t in_progress "T"', 't failed "Stopped"']);
});

// SPEC 10.5, 15.2
it("closes the card of a call that waits for a decision, which the host takes outside the prompt", async () => {
  const calls = ["a", "b"].map((id) => ({ toolCall: "echo", id }));
  const beforeToolCall = ({ toolCall }: { toolCall: { id: string } }) =>
    toolCall.id === "b" ? { suspend: true, reason: "ask Ann" } : undefined;
  const client = await connect([calls, "decided", "next"], { agent: () => ({ tools: [echo], beforeToolCall }) });
  const id = await client.session();
  expect(await client.prompt(id)).toEqual({ stopReason: "end_turn" });
  await client.agents[0]?.resume([{ toolCallId: "b", action: "approve" }]);
  expect(client.agents[0]?.messages.at(-1)).toMatchObject({ stopReason: "stop" });
  await client.prompt(id);
  expect(client.outline().filter((line) => !/in_progress/.test(line))).toEqual([
    'new a pending "echo"',
    'new b pending "echo"',
    "a completed echoed",
    "b failed Not executed yet: it waits for a decision.",
    "message-2: next",
  ]);
});

// SPEC 10.1
describe("a session that cannot be made", () => {
  it.each(["", "work", "./work", "~/work", "file:///work"])(
    "is an error of its request when the folder is %j, no absolute path",
    async (cwd) => {
      const client = await connect(["ok"]);
      await expect(client.session(cwd)).rejects.toEqual(refused(-32602, "cwd must be an absolute path", { cwd }));
      expect(client.agents).toEqual([]);
      expect(await client.prompt(await client.session("/project"))).toEqual({ stopReason: "end_turn" });
    },
  );

  it("is none whose folder is a path of another system", async () => {
    const client = await connect(["ok"]);
    for (const cwd of ["C:\\work", "C:/work", "\\\\server\\work"])
      expect(await client.prompt(await client.session(cwd))).toEqual({ stopReason: "end_turn" });
  });

  it.each<[string, () => never, ReturnType<typeof refused>]>([
    [
      "throws",
      () => {
        throw new Error("no key");
      },
      refused(-32603, "Internal error", { details: "no key" }),
    ],
    ["rejects", () => Promise.reject(new Error("no key")) as never, refused(-32603, "Internal error", { details: "no key" })],
    ["rejects without a reason", () => Promise.reject() as never, refused(-32603, "Internal error")],
    [
      "throws the protocol's error",
      () => {
        throw acp.RequestError.authRequired({ url: "x" });
      },
      refused(-32000, "Authentication required", { url: "x" }),
    ],
    [
      "gives nothing",
      () => undefined as never,
      refused(-32603, "", { details: expect.stringMatching(/createAgent must return an Agent; got undefined/) }),
    ],
    ["gives something else", () => ({ model }) as never, refused(-32603, "", { details: expect.stringMatching(/got \{"model"/) })],
  ])("is an error of its request when createAgent %s", async (_, createAgent, error) => {
    const client = await connect([], { thinking: true, createAgent });
    await expect(client.session()).rejects.toEqual(error);
    await expect(client.prompt("x")).rejects.toEqual(refused(-32002, ""));
  });
});
