import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { AgentTool, AgentToolResult } from "turnloop";
import { createUpdateState, toSessionUpdates } from "turnloop/acp";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { makeTool } from "../helpers.js";
import { checkUpdates, updatesOf } from "./acp-helpers.js";

type Card = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

/** The three updates of one call: announced, started, ended. */
async function cardOf(tool: AgentTool, args: unknown = {}, cwd?: string): Promise<[Card, Card, Card]> {
  const model = scriptedModel([[{ toolCall: tool.name, id: "a", args }], ""], { chunkSize: 1e7 });
  const updates = await updatesOf(model, { tools: [tool], cwd });
  return updates as [Card, Card, Card];
}

const returning = (result: Partial<AgentToolResult> | string, name = "tool"): AgentTool => makeTool(name, () => result as AgentToolResult);
const diff = (path: string, oldText: string | null, newText: string) => ({ type: "diff", path, oldText, newText });
const text = (value: string) => ({ type: "content", content: { type: "text", text: value } });

// SPEC 10.2
describe("how a call looks", () => {
  it.each<[string, string, string]>([
    ["delete", "delete_file", "remove rm removeItem unlink-all"],
    ["move", "moveFile", "rename_symbol mv move"],
    ["edit", "edit_file", "write_file writeFile apply_edit str_replace insert create_directory append_text update_item patch"],
    ["search", "search", "web_search grep findFiles glob lookup_customer query_db research"],
    ["fetch", "fetch", "web_fetch http_get getURL web download_file browse browser_open"],
    ["execute", "execute", "run_tests bash shell exec terminal eval calculate command"],
    ["think", "think", "plan reason_about"],
    ["read", "read_file", "read view_image open_file list_directory show cat get_weather count_lines ls"],
    ["other", "echo", "credit dispatch_x truncate explain_it planet 日本 weather global_x spread hourly_forecast _ 7"],
  ])("%s is the kind of a tool named %s, %s", async (kind, first, more) => {
    for (const name of [first, ...more.split(" ")]) {
      const [card] = await cardOf(makeTool(name, () => "ok"));
      expect([name, card.kind]).toEqual([name, kind]);
    }
  });

  it("is what the tool says of itself", async () => {
    const [card] = await cardOf(makeTool("delete_x", () => "ok", { label: "Look at x", kind: "read" }));
    expect(card).toMatchObject({ title: "Look at x", kind: "read", status: "pending" });
    for (const label of ["", 5, {}] as never[]) {
      const [odd] = await cardOf(makeTool("delete_x", () => "ok", { label, kind: "destroy" as never }));
      expect(odd).toMatchObject({ title: "delete_x", kind: "delete" });
    }
  });

  it("knows tools that can be listed only once", async () => {
    const tools = [makeTool("a", () => "ok", { label: "A" }), makeTool("b", () => "ok", { label: "B" })];
    const state = createUpdateState({ tools: tools.values() });
    const updates = await updatesOf([[{ toolCall: "a" }, { toolCall: "b" }], ""], { tools, state });
    expect(updates.flatMap((update) => ("title" in update ? [update.title] : []))).toEqual(["A", "B"]);
  });

  it.each<[unknown, string | undefined, object[] | undefined]>([
    [{ path: "src/a.ts" }, "/project", [{ path: "/project/src/a.ts" }]],
    [{ path: "src/a.ts" }, undefined, undefined],
    [{ path: "/etc//x/../hosts/" }, undefined, [{ path: "/etc/hosts" }]],
    [{ path: "/etc/hosts" }, "/project", [{ path: "/etc/hosts" }]],
    [{ path: "../up" }, "/project/a", [{ path: "/project/up" }]],
    [{ path: "." }, "/project", [{ path: "/project" }]],
    [{ file_path: "a", line: 3 }, "/project", [{ path: "/project/a", line: 3 }]],
    [{ filePath: "a", line: 0 }, "/project", [{ path: "/project/a", line: 0 }]],
    [{ folder: "a", line: -1 }, "/project", [{ path: "/project/a" }]],
    [{ file: "a", line: 1.5 }, "/project", [{ path: "/project/a" }]],
    [{ dir: "a", line: 2 ** 32 }, "/project", [{ path: "/project/a" }]],
    [{ filename: "a", line: "7" }, "/project", [{ path: "/project/a" }]],
    [{ path: "", directory: "b" }, "/project", [{ path: "/project/b" }]],
    [{ path: 5 }, "/project", undefined],
    [{ path: "https://example.org/a" }, "/project", undefined],
    [{ query: "a" }, "/project", undefined],
    [{ path: "src/a.ts" }, "work", undefined],
    [{ path: "src/a.ts" }, "", undefined],
    [{ path: "/etc/hosts" }, "work", [{ path: "/etc/hosts" }]],
  ])("has the locations of %j in %s", async (args, cwd, locations) => {
    const [, started] = await cardOf(returning("ok"), args, cwd);
    expect(started.locations).toEqual(locations);
    expect(started.rawInput).toEqual(args);
  });
});

// SPEC 10.2
describe("the changes of a call", () => {
  it.each<[string, object, object[]]>([
    ["old and new text", { path: "a", oldText: "x", newText: "y" }, [diff("/project/a", "x", "y")]],
    ["the words of other tools", { file_path: "/b", old_string: "x", new_string: "" }, [diff("/b", "x", "")]],
    ["no old text", { path: "a", new_text: "y" }, [diff("/project/a", null, "y")]],
    ["a whole file", { path: "a", content: "y" }, [diff("/project/a", null, "y")]],
    [
      "several edits of one file",
      {
        path: "a",
        edits: [
          { oldText: "x", newText: "y" },
          { oldText: "p", newText: "q" },
        ],
      },
      [diff("/project/a", "x", "y"), diff("/project/a", "p", "q")],
    ],
    ["no path", { newText: "y" }, []],
    ["no new text", { path: "a", oldText: "x" }, []],
    ["texts that are none", { path: "a", oldText: 1, newText: 2 }, []],
    ["edits that are none", { path: "a", edits: [null, 5, "x"] }, []],
  ])("come from the arguments of an edit: %s", async (_, args, diffs) => {
    const [, started, ended] = await cardOf(returning("ok", "edit"), args, "/project");
    expect(started.content ?? []).toEqual(diffs);
    expect(ended).toMatchObject({ status: "completed", content: [...diffs, text("ok")] });
  });

  it("are left out of the arguments of what is no edit, and of an edit that failed", async () => {
    const args = { path: "/a", oldText: "x", newText: "y" };
    const [, started, ended] = await cardOf(returning("ok", "compare"), args);
    expect([started.content, ended.content]).toEqual([undefined, [text("ok")]]);
    const [, , failed] = await cardOf(returning({ content: [{ type: "text", text: "no" }], isError: true }, "edit"), args);
    expect(failed).toMatchObject({ status: "failed", content: [text("no")] });
  });

  it.each<[string, unknown, object[]]>([
    ["themselves", { path: "/a", oldText: "x", newText: "y" }, [diff("/a", "x", "y")]],
    ["their diff", { diff: { path: "/a", newText: "y" } }, [diff("/a", null, "y")]],
    [
      "their diffs",
      {
        diffs: [
          { path: "/a", newText: "y" },
          { path: "/b", newText: "z" },
        ],
      },
      [diff("/a", null, "y"), diff("/b", null, "z")],
    ],
    ["a diff in words of their own", { diff: "--- a", path: "/a" }, []],
    ["what they read", { path: "/a", content: "y" }, []],
    ["nothing", undefined, []],
    ["a text", "text", []],
  ])("come from the details: %s", async (_, details, diffs) => {
    const [, , ended] = await cardOf(returning({ content: [{ type: "text", text: "ok" }], details }));
    expect(ended.content).toEqual([...diffs, text("ok")]);
  });
});

// SPEC 10.2
describe("the content of a call", () => {
  const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const;

  it("has texts as texts and images as images", async () => {
    const content = [{ type: "text", text: "look" }, image, { type: "text", text: "" }] as const;
    const [, , ended] = await cardOf(returning({ content: [...content] }));
    expect(ended.content).toEqual([text("look"), { type: "content", content: image }]);
  });

  it("shows progress, whatever a tool gives as such", async () => {
    const given: unknown[] = [
      { content: [{ type: "text", text: "1" }, image] },
      { content: "2" },
      "3",
      4,
      null,
      { content: 5 },
      { content: [6, null, {}] },
    ];
    const tool = makeTool("tool", (_id, _args, _signal, onUpdate) => {
      for (const partial of given) onUpdate(partial as AgentToolResult);
      return "done";
    });
    const updates = (await updatesOf([[{ toolCall: "tool", id: "a" }], ""], { tools: [tool] })) as Card[];
    expect(updates.slice(2).map(({ status, content }) => [status, content])).toEqual([
      ["in_progress", [text("1"), { type: "content", content: image }]],
      ["in_progress", [text("2")]],
      ["in_progress", [text("3")]],
      ["completed", [text("done")]],
    ]);
  });

  it("is cut when it is huge, never inside a character", async () => {
    const small = "A".repeat(1_000_001);
    const huge = `${"x".repeat(99_998)}😀${"y".repeat(50)}`;
    const content = [
      ...["a", huge, "later", "later still"].map((value) => ({ type: "text" as const, text: value })),
      { ...image, data: small },
      { ...image, data: "A".repeat(9_000_000) },
    ];
    const [, , ended] = await cardOf(returning({ content }));
    expect(ended.content).toEqual([
      text("a"),
      text(`${"x".repeat(99_998)}\n[52 more characters are not shown]`),
      text("[5 more characters are not shown]"),
      text("[11 more characters are not shown]"),
      { type: "content", content: { ...image, data: small } },
      text("[an image is too large to be shown]"),
    ]);
    const [, , exact] = await cardOf(returning("x".repeat(100_000)));
    expect(exact.content).toEqual([text("x".repeat(100_000))]);
  });

  it("is nothing once the call has ended", () => {
    const state = createUpdateState();
    const call = { toolCallId: "a", toolName: "tool", args: {} };
    const result: AgentToolResult = { content: [{ type: "text", text: "late" }] };
    toSessionUpdates({ type: "tool_execution_start", ...call }, state);
    toSessionUpdates({ type: "tool_execution_end", ...call, result, isError: false }, state);
    expect(toSessionUpdates({ type: "tool_execution_update", ...call, partialResult: result }, state)).toEqual([]);
    expect(toSessionUpdates({ type: "tool_execution_end", ...call, result, isError: false }, state)).toEqual([]);
    expect(toSessionUpdates({ type: "agent_end", messages: [], outcome: "completed" }, state)).toEqual([]);
  });

  it("leaves arguments and changes out that are huge", async () => {
    const [, started, ended] = await cardOf(returning("ok", "write"), { path: "/a", content: "x".repeat(1_000_001) });
    expect(started).toEqual({ sessionUpdate: "tool_call_update", toolCallId: "a", status: "in_progress", locations: [{ path: "/a" }] });
    expect(ended.content).toEqual([text("ok")]);
  });

  it("has whole characters only", async () => {
    const details = { path: "/\ud83d", newText: "\ude00" };
    const [, started, ended] = await cardOf(returning({ content: [{ type: "text", text: "\ud83d" }], details }), { "k\ud83d": "\ud83d" });
    expect(started.rawInput).toEqual({ "k\ufffd": "\ufffd" });
    expect(ended.content).toEqual([diff("/\ufffd", null, "\ufffd"), text("\ufffd")]);
  });
});

// SPEC 10.2, 2.1
describe("values that cannot be read or sent", () => {
  const cycle: Record<string, unknown> = { path: "/a" };
  cycle["self"] = cycle;
  const getter = (key: string): object => Object.defineProperty({}, key, { enumerable: true, get: () => expect.fail("read") });
  const throwing = (key: string): object =>
    Object.defineProperty({}, key, {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const odd: [string, unknown][] = [
    ["a BigInt", { path: 1n, big: 1n }],
    ["a cycle", cycle],
    ["a throwing getter of a path", throwing("path")],
    ["a throwing getter of changes", throwing("diffs")],
    ["a throwing toJSON", { toJSON: () => expect.fail("no") }],
    ["a list with a throwing getter", { edits: Object.defineProperty([1], 0, { get: () => expect.fail("no") }) }],
    ["a revoked proxy", revoked.proxy],
    ["a symbol", Symbol("s")],
    ["a function", () => {}],
    ["null", null],
  ];

  it.each(odd)("as details do not cost the call its end: %s", async (_, details) => {
    const [, , ended] = await cardOf(returning({ content: [{ type: "text", text: "ok" }], details }, "edit"));
    expect(ended).toMatchObject({ status: "completed", content: [text("ok")] });
  });

  it.each(odd)("as arguments, progress or content do not cost the call its end: %s", (_, value) => {
    const state = createUpdateState();
    const call = { toolCallId: "a", toolName: "edit", args: value };
    const updates = [
      ...toSessionUpdates({ type: "tool_execution_start", ...call }, state),
      ...toSessionUpdates({ type: "tool_execution_update", ...call, partialResult: value }, state),
      ...toSessionUpdates({ type: "tool_execution_end", ...call, result: value as AgentToolResult, isError: false }, state),
    ];
    checkUpdates(updates);
    expect(updates.map((update) => (update as Card).status)).toEqual(["pending", "in_progress", "completed"]);
  });

  it("are not read more than they need be", async () => {
    const [, , ended] = await cardOf(returning({ content: [{ type: "text", text: "ok" }], details: getter("secret") }));
    expect(ended.content).toEqual([text("ok")]);
  });
});
