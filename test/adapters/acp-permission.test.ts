import type { RequestPermissionRequest } from "@agentclientprotocol/sdk";
import type { AgentOptions, AgentTool } from "turnloop";
import { type AcpConnection, type AcpSessionInfo, type PermissionOptions, requestPermission } from "turnloop/acp";
import type { ScriptedAnswer } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { deferred, makeTool, resultsOf, run, textOf } from "../helpers.js";
import { problemsOfSchema } from "./acp-checks.js";
import { choose, connect, finishClients } from "./acp-helpers.js";

finishClients();

const tools: AgentTool[] = [makeTool("write", () => "written", { label: "Write" }), makeTool("read", () => "read")];
const asking =
  (options?: PermissionOptions) =>
  ({ connection, sessionId }: AcpSessionInfo): Partial<AgentOptions> => ({
    tools,
    beforeToolCall: requestPermission(connection, sessionId, options),
  });
const call = (id: string, toolCall = "write", args: unknown = { path: "a", line: 2 }): ScriptedAnswer => [{ toolCall, id, args }];

// SPEC 10.4
describe("asking the user of a client", () => {
  it("is about the card that is shown, with the choices", async () => {
    const permission = vi.fn((_: RequestPermissionRequest) => choose("allow_once"));
    const client = await connect([call("a"), "ok"], { agent: asking(), permission });
    const sessionId = await client.session("/project");
    await client.prompt(sessionId);
    expect(permission.mock.calls.map(([request]) => request)).toEqual([
      {
        sessionId,
        toolCall: {
          toolCallId: "a",
          title: "Write",
          kind: "edit",
          status: "pending",
          rawInput: { path: "a", line: 2 },
          locations: [{ path: "/project/a", line: 2 }],
        },
        options: [
          { optionId: "allow_once", name: "Allow", kind: "allow_once" },
          { optionId: "allow_always", name: "Always allow", kind: "allow_always" },
          { optionId: "reject_once", name: "Reject", kind: "reject_once" },
          { optionId: "reject_always", name: "Always reject", kind: "reject_always" },
        ],
      },
    ]);
    expect(client.recorded.map(({ type }) => type)).toEqual(["prompt", "update", "update", "ask", "update", "update", "update", "answer"]);
    expect(client.outline()).toEqual(['new a pending "Write"', "a in_progress", "a in_progress", "a completed written", "message-2: ok"]);
  });

  it.each<[string, string[], number]>([
    ["allow_once", ["a completed written", "a-2 completed written", "r completed read", "a-3 completed written"], 4],
    ["allow_always", ["a completed written", "a-2 completed written", "r completed read", "a-3 completed written"], 2],
    ["reject_once", ["a failed no", "a-2 failed no", "r failed no", "a-3 failed no"], 4],
    ["reject_always", ["a failed no", "a-2 failed no", "r failed no", "a-3 failed no"], 2],
  ])("%s counts for the tool, in all prompts of the session", async (optionId, ends, questions) => {
    const permission = vi.fn(() => choose(optionId));
    const client = await connect(
      [
        call("a"),
        [
          { toolCall: "write", id: "a" },
          { toolCall: "read", id: "r" },
        ],
        "ok",
        call("a"),
        "ok",
      ],
      {
        agent: asking(),
        permission,
      },
    );
    const id = await client.session();
    await client.prompt(id);
    await client.prompt(id);
    const ended = client.outline().filter((line) => /completed|failed/.test(line));
    expect(ended.map((line) => line.replace("The user did not allow this call.", "no")).sort()).toEqual([...ends].sort());
    expect(permission).toHaveBeenCalledTimes(questions);
    const other = await client.session();
    await client.prompt(other);
    expect(permission.mock.calls.length).toBeGreaterThan(questions);
  });

  it("is about the card with its own id when the model uses one again, twice or not at all", async () => {
    const asked: string[] = [];
    const permission = ({ toolCall }: RequestPermissionRequest) => {
      asked.push(toolCall.toolCallId);
      return choose("allow_once");
    };
    const twice: ScriptedAnswer = [
      { toolCall: "read", id: "a" },
      { toolCall: "read", id: "a" },
      { toolCall: "read", id: "" },
    ];
    const client = await connect([call("a"), twice, "ok"], { agent: asking(), permission });
    await client.prompt(await client.session());
    expect(asked).toEqual(["a", "a-2", "a-3", "call"]);
    expect(
      client
        .outline()
        .filter((line) => line.startsWith("new"))
        .map((line) => line.split(" ")[1]),
    ).toEqual(asked);
  });

  it("shows the arguments as the tool will get them", async () => {
    const got: unknown[] = [];
    const parameters = { type: "object", properties: { path: { type: "string" }, n: { type: "number", default: 3 } } };
    const tool = makeTool("write", (_id, args) => `call ${got.push(args)}`, { parameters });
    const asked: unknown[] = [];
    const client = await connect([call("a", "write", { path: "../secret" }), "ok"], {
      permission: ({ toolCall }) => {
        asked.push(toolCall.rawInput, toolCall.locations);
        return choose("allow_once");
      },
      agent: ({ connection, sessionId }) => {
        const ask = requestPermission(connection, sessionId);
        return {
          tools: [tool],
          beforeToolCall: (question, signal) => {
            question.args.path = "inside";
            return ask(question, signal);
          },
        };
      },
    });
    await client.prompt(await client.session("/project"));
    expect(asked).toEqual([{ path: "inside", n: 3 }, [{ path: "/project/inside" }]]);
    expect(got).toEqual([{ path: "inside", n: 3 }]);
  });

  it.each<[string, PermissionOptions, number, RegExp]>([
    ["is left out when ask says false", { ask: ({ toolCall }) => toolCall.name !== "write" }, 0, /a completed written/],
    ["is left out when ask says false later", { ask: () => Promise.resolve(false) }, 0, /a completed written/],
    ["is done when ask says true", { ask: () => true }, 1, /a completed written/],
    ["is done when ask says nothing", { ask: () => undefined as never }, 1, /a completed written/],
    ["denies the call when ask throws", { ask: () => expect.fail("no idea") }, 0, /a failed .*no idea/],
    ["denies the call when ask rejects", { ask: () => Promise.reject(new Error("no idea")) }, 0, /a failed .*no idea/],
  ])("%s", async (_, options, questions, line) => {
    const permission = vi.fn(() => choose("allow_once"));
    const client = await connect([call("a"), "ok"], { agent: asking(options), permission });
    await client.prompt(await client.session());
    expect(permission).toHaveBeenCalledTimes(questions);
    expect(client.outline()).toEqual(expect.arrayContaining([expect.stringMatching(line)]));
  });

  it.each<[string, () => any, RegExp]>([
    ["gives an option nobody offered", () => choose("allow"), /unknown answer/],
    ["names an option by its text", () => choose("Allow"), /unknown answer/],
    ["cancels the question", () => ({ outcome: "cancelled" }), /was cancelled/],
    ["answers something else", () => ({ outcome: "allowed" }), /was cancelled|unknown answer/],
    ["fails", () => Promise.reject(new Error("no window")), /asking for permission failed/],
  ])("denies the call, and the run goes on, when the client %s", async (_, permission, reason) => {
    const client = await connect([call("a"), "ok"], { agent: asking(), permission });
    expect(await client.prompt(await client.session())).toEqual({ stopReason: "end_turn" });
    expect(client.outline()).toEqual(['new a pending "Write"', "a in_progress", expect.stringMatching(reason), "message-2: ok"]);
    expect(client.outline()[2]).toMatch(/^a failed/);
  });

  it("says nothing about the cards of a prompt when a run of the host's own uses an id again", async () => {
    const asked: unknown[] = [];
    const permission = ({ toolCall }: RequestPermissionRequest) => {
      asked.push(toolCall.status);
      return choose("allow_once");
    };
    const client = await connect([call("a"), "one", call("a"), "own", "two"], { agent: asking(), permission });
    const id = await client.session();
    await client.prompt(id);
    expect((await client.agents[0]?.prompt("by the host"))?.outcome).toBe("completed");
    client.recorded.pop(); // to ask is the host's own doing
    await client.prompt(id);
    expect(asked).toEqual(["pending", undefined]);
    expect(client.outline().slice(3)).toEqual(["a completed written", "message-2: one", "message-3: two"]);
  });

  it.each([...Array(12).keys()])("says that a call runs only while it is shown: a stop %d steps after the answer", async (steps) => {
    const client = await connect([call("a"), "never"], {
      agent: ({ connection, sessionId }) => {
        const request = async () => {
          void (async () => {
            for (let step = 0; step < steps; step++) await undefined;
            client.agents[0]?.abort();
          })();
          return { outcome: choose("allow_once") };
        };
        Object.assign(connection, { request });
        return { tools, beforeToolCall: requestPermission(connection, sessionId), abortGraceMs: 1 };
      },
    });
    expect(await client.prompt(await client.session())).toEqual({ stopReason: "cancelled" });
    const shown = client.outline();
    expect(shown.at(-1)).toMatch(/^a (failed|completed)/); // and nothing after it, as is checked for all clients
  });

  it("ends with the connection", async () => {
    const asked = deferred<AbortSignal>();
    const client = await connect([call("a"), "never"], {
      agent: asking(),
      permission: (_, signal) => {
        asked.resolve(signal);
        return new Promise(() => {});
      },
    });
    const prompt = client.prompt(await client.session());
    prompt.catch(() => {});
    await asked.promise;
    client.leave();
    await client.served.closed;
    expect(client.agents[0]?.isRunning).toBe(false);
    expect(client.agents[0]?.messages.at(-1)).toMatchObject({ role: "toolResult", isError: true });
    await expect(prompt).rejects.toThrow();
  });
});

// SPEC 10.4
describe("requestPermission over any connection", () => {
  const ask = async (request: AcpConnection["request"], signal?: AbortSignal, args: unknown = {}) => {
    const connection = { notify: () => Promise.resolve(), request };
    const beforeToolCall = requestPermission(connection, "s");
    const config = { beforeToolCall, abortGraceMs: 1 };
    const record = await run([call("a", "write", args), "ok"], { tools: [makeTool("write", () => "written")], config, signal });
    return textOf(resultsOf(record)[0]);
  };
  const throwing = {
    get outcome() {
      throw new Error("unreadable");
    },
  };

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a text", "allow_once"],
    ["a number", 5],
    ["no outcome", {}],
    ["an outcome that is null", { outcome: null }],
    ["an outcome that is the word", { outcome: "selected", optionId: "allow_once" }],
    ["a choice without option", { outcome: { outcome: "selected" } }],
    ["an option that is no text", { outcome: { outcome: "selected", optionId: ["allow_once"] } }],
    ["an outcome that cannot be read", throwing],
  ])("denies the call when the answer is %s", async (_, answer) => {
    expect(await ask(() => Promise.resolve(answer))).toMatch(/not allowed/);
    expect(await ask(() => answer as Promise<never>)).toMatch(/not allowed/);
  });

  it.each<[string, AcpConnection["request"]]>([
    ["throws", () => expect.fail("closed")],
    ["rejects", () => Promise.reject(new Error("closed"))],
  ])("denies the call when the request %s", async (_, request) => {
    expect(await ask(request)).toMatch(/asking for permission failed \(closed\)/);
  });

  it("does not wait for an answer once the run is aborted", async () => {
    const controller = new AbortController();
    const never = (): Promise<never> => {
      controller.abort();
      return new Promise(() => {});
    };
    expect(await ask(never, controller.signal)).toMatch(/not executed/i);
  });

  it("takes its listener off the run's signal, and asks nothing after the abort", async () => {
    const controller = new AbortController();
    const remove = vi.spyOn(controller.signal, "removeEventListener");
    const request = vi.fn(() => Promise.resolve({ outcome: choose("allow_once") }));
    const hook = requestPermission({ notify: () => Promise.resolve(), request }, "s");
    const question = { toolCall: { type: "toolCall", id: "a", name: "write", arguments: {} }, args: {}, context: {} } as never;
    expect(await hook(question, controller.signal)).toBeUndefined();
    expect(remove).toHaveBeenCalledOnce();
    controller.abort();
    expect(await hook(question, controller.signal)).toMatchObject({ block: true, reason: expect.stringMatching(/stopped/) });
    expect(request).toHaveBeenCalledOnce();
  });

  it("sends what the protocol can hold, whatever the arguments are", async () => {
    const hook = (args: unknown) => {
      const request = vi.fn((_method: string, params: unknown) => {
        expect(problemsOfSchema("RequestPermissionRequest", params)).toEqual([]);
        return Promise.resolve({ outcome: choose("allow_once") });
      });
      const ask = requestPermission({ notify: () => Promise.resolve(), request }, "s");
      const question = { toolCall: { type: "toolCall", id: "a\ud83d", name: "w\ud83d", arguments: {} }, args, context: {} };
      return ask(question as never, new AbortController().signal);
    };
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    for (const args of [cycle, { path: 1n }, { path: "/\ud83d" }, throwing, null, undefined]) expect(await hook(args)).toBeUndefined();
  });
});
