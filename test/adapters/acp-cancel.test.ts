import type * as acp from "@agentclientprotocol/sdk";
import { Agent } from "turnloop";
import { createAcpAgent } from "turnloop/acp";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { aborted, deferred, makeTool, model } from "../helpers.js";
import { type AcpClient, type ClientOptions, connect, finishClients } from "./acp-helpers.js";

finishClients();

const never = (): Promise<never> => new Promise(() => {});
const hang = makeTool("hang", () => never());
const obey = makeTool("obey", async (_id, _args, signal) => {
  await aborted(signal);
  throw signal.reason;
});
const tools = [hang, obey, makeTool("echo", () => "echoed")];
const quick = (more: object = {}): Partial<ClientOptions> => ({ agent: () => ({ tools, abortGraceMs: 1, ...more }) });
const stalls = (...content: (string | { toolCall: string; id: string })[]): ScriptedAnswer => ({
  content,
  fault: { kind: "stall", afterEvents: content.length * 2 + 1 },
});

type Stop = (client: AcpClient, sessionId: string) => void;
const moments: [string, ScriptedAnswer[], ClientOptions, (client: AcpClient) => Promise<unknown>, RegExp[]][] = [
  [
    "before the first delta",
    [{ fault: { kind: "stall" } }],
    quick(),
    (client) => new Promise((resolve) => client.agents[0]?.once("turn_start", resolve)),
    [],
  ],
  [
    "while the wait is shown",
    [{ fault: { kind: "stall" } }],
    { ...quick(), thinking: true },
    (client) => client.untilShown(/Thinking/),
    [/new \S+ in_progress "Thinking\.\.\."/, /failed "Stopped"/],
  ],
  ["in the middle of a text", [stalls("Hello")], quick(), (client) => client.untilShown(/Hello/), [/Hello/]],
  [
    "in the middle of a call's arguments",
    [stalls({ toolCall: "echo", id: "a" })],
    quick(),
    (client) => client.untilShown(/^new a/),
    [/^new a/, /^a failed Not executed/],
  ],
  [
    "while a tool runs that stops",
    [[{ toolCall: "obey", id: "a" }], "never"],
    quick(),
    (client) => client.untilShown(/^a in_progress/),
    [/^new a/, /^a in_progress/, /^a failed/],
  ],
  [
    "while tools run that do not",
    [
      [
        { toolCall: "hang", id: "a" },
        { toolCall: "hang", id: "b" },
      ],
      "never",
    ],
    quick(),
    (client) => client.untilShown(/^b in_progress/),
    [/^new a/, /^new b/, /^a in_progress/, /^b in_progress/, /^a failed .*still be running/, /^b failed .*still be running/],
  ],
  [
    "while a listener of the host's is busy",
    ["Hello"],
    {
      createAgent: () => {
        const agent = new Agent({ model, streamFn: scriptedModel(["Hello"]), abortGraceMs: 1, onListenerError: () => {} });
        agent.subscribe((event) => (event.type === "message_end" && event.message.role === "assistant" ? never() : undefined));
        return agent;
      },
    },
    (client) => client.untilShown(/Hello/),
    [/Hello/],
  ],
];

const ways: [string, Stop][] = [
  ["session/cancel", (client, id) => void client.cancel(id)],
  ["the host's own abort", (client) => client.agents[0]?.abort("enough")],
];

// SPEC 10.5
describe("a cancel", () => {
  describe.each(ways)("by %s", (_, stop) => {
    it.each(moments)("%s ends in cancelled, with every card closed", async (_moment, answers, options, moment, lines) => {
      const client = await connect(answers, options);
      const id = await client.session();
      const prompt = client.prompt(id);
      await moment(client);
      stop(client, id);
      expect(await prompt).toEqual({ stopReason: "cancelled" });
      expect(client.outline()).toEqual(lines.map((line) => expect.stringMatching(line)));
    });
  });

  it.each(moments)("of the request itself %s ends in cancelled", async (_moment, answers, options, moment, lines) => {
    const client = await connect(answers, options);
    const controller = new AbortController();
    const prompt = client.prompt(await client.session(), "go", { cancellationSignal: controller.signal });
    await moment(client);
    controller.abort();
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(client.outline()).toEqual(lines.map((line) => expect.stringMatching(line)));
  });

  it("while the user is asked ends in cancelled, whether the client answers the question or not", async () => {
    for (const permission of [
      never,
      (_: unknown, signal: AbortSignal) => aborted(signal).then(() => ({ outcome: "cancelled" as const })),
    ]) {
      const { requestPermission } = await import("turnloop/acp");
      const client = await connect([[{ toolCall: "echo", id: "a" }], "never"], {
        permission,
        agent: ({ connection, sessionId }) => ({ tools, beforeToolCall: requestPermission(connection, sessionId) }),
      });
      const id = await client.session();
      const prompt = client.prompt(id);
      await client.until(({ type }) => type === "ask");
      await client.cancel(id);
      expect(await prompt).toEqual({ stopReason: "cancelled" });
      expect(client.outline()).toEqual(['new a pending "echo"', "a in_progress", expect.stringMatching(/^a failed .*not executed/i)]);
    }
  });

  it.each<[string, ScriptedAnswer]>([
    ["an answer", "Hello"],
    ["a failing answer", { content: ["Hello"], errorMessage: "broken" }],
    ["a refusal", { content: ["Hello"], errorMessage: "no", errorInfo: { kind: "refusal", retryable: false } }],
  ])("at the very end of %s ends in cancelled", async (_, answer) => {
    const client = await connect([answer, "again"]);
    const id = await client.session();
    client.agents[0]?.subscribe((event) =>
      event.type === "agent_end" && client.outline().length === 1 ? client.cancel(id).then(pause) : undefined,
    );
    expect(await client.prompt(id)).toEqual({ stopReason: "cancelled" });
    expect(await client.prompt(id)).toEqual({ stopReason: "end_turn" });
  });

  it("of an agent that refuses to run ends in cancelled", async () => {
    const client = await connect([], {
      createAgent: () =>
        Object.assign(new Agent({ model, streamFn: scriptedModel([]) }), {
          prompt: (_: unknown, { signal }: { signal: AbortSignal }) => aborted(signal).then(() => Promise.reject(new Error("refused"))),
        }),
    });
    const id = await client.session();
    const prompt = client.prompt(id);
    await client.cancel(id);
    expect(await prompt).toEqual({ stopReason: "cancelled" });
  });

  it("does nothing to other sessions, to a session that is idle, and to the next prompt", async () => {
    const client = await connect([[{ toolCall: "obey", id: "a" }], "ok"], quick());
    const [one, two] = [await client.session(), await client.session()];
    await client.cancel(one);
    const prompts = [client.prompt(one), client.prompt(two)];
    await Promise.all([one, two].map((id) => client.until((entry) => entry.type === "update" && entry.sessionId === id)));
    await client.cancel(one);
    expect(await prompts[0]).toEqual({ stopReason: "cancelled" });
    expect(client.agents.map(({ isRunning }) => isRunning)).toEqual([false, true]);
    expect(await client.prompt(one)).toEqual({ stopReason: "end_turn" });
    await client.cancel(two);
    expect(await prompts[1]).toEqual({ stopReason: "cancelled" });
  });
});

const pause = (): Promise<void> => new Promise(setImmediate);

// SPEC 10.1, 10.5
describe("messages that come in one piece", () => {
  /** What a client reads that writes these at once, as lines of one chunk are, after making a session. */
  async function answersTo(messages: { method: string; id?: number }[]): Promise<unknown[]> {
    const answers: unknown[] = [];
    const whole = deferred();
    const say = (method: string, id: number | undefined, params: object): void =>
      input?.enqueue({ jsonrpc: "2.0", method, ...(id !== undefined && { id }), params } as acp.AnyMessage);
    const onMessage = ({ id, result }: any): void => {
      if (id === 1) say("session/new", 2, { cwd: "/", mcpServers: [] });
      if (id === 2) for (const { method, id: next, ...params } of messages) say(method, next, { sessionId: result.sessionId, ...params });
      if (id > 2 && answers.push(result.stopReason) === messages.filter((message) => message.id).length) whole.resolve();
    };
    let input: ReadableStreamDefaultController<acp.AnyMessage> | undefined;
    const readable = new ReadableStream<acp.AnyMessage>({
      start: (controller) => {
        input = controller;
      },
    });
    const served = createAcpAgent({ createAgent: () => new Agent({ model, streamFn: scriptedModel(["ok", "ok"]) }) }).connect({
      readable,
      writable: new WritableStream({ write: onMessage }),
    });
    say("initialize", 1, { protocolVersion: 1 });
    await whole.promise;
    served.close();
    await served.closed;
    return answers;
  }
  const prompt = { method: "session/prompt", id: 3, prompt: [{ type: "text", text: "go" }] };
  const cancel = { method: "session/cancel" };

  it.each([
    ["a prompt and its cancel", [prompt, cancel], ["cancelled"]],
    ["a cancel that comes too late, and the next prompt", [cancel, prompt], ["end_turn"]],
    ["a late cancel, the next prompt, and its cancel", [cancel, prompt, cancel], ["cancelled"]],
    ["a prompt and the cancellation of its request", [prompt, { method: "$/cancel_request", requestId: 3 }], ["cancelled"]],
  ])("keep their order: %s", async (_, messages, answers) => {
    expect(await answersTo(messages)).toEqual(answers);
  });
});
