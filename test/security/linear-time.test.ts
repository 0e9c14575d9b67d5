/** Texts of strangers that a pattern could choke on: the work grows with the text, not with its square (SPEC 5.7, 12.1, 12.3). */
import { createUpdateState, toSessionUpdates } from "turnloop/acp";
import { aiSdk } from "turnloop/ai-sdk";
import { mcpTools } from "turnloop/mcp";
import { openaiChat } from "turnloop/openai";
import { describe, expect, it } from "vitest";
import { fakeModel, streamOf } from "../adapters/ai-sdk-helpers.js";
import { ask, quiet } from "../adapters/helpers.js";
import { callOnce, connect, listed, RawMcpServer } from "../adapters/mcp-helpers.js";
import { answer, finalMessages } from "../field-reports/conditions.js";
import { makeTool, resultsOf, run } from "../helpers.js";

const SIZE = 100_000;

/** Processor time in ms: what else the machine does is not in it. */
async function cost(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Half the text costs about half: a quadratic pattern takes seconds for these, and four times as long for twice the text. */
async function expectLinear(attack: (size: number) => unknown): Promise<void> {
  const half = await cost(() => attack(SIZE / 2));
  const whole = await cost(() => attack(SIZE));
  expect(whole).toBeLessThan(3 * half + 500);
}

/** Texts of this length: a beginning, one thing over and over, an end that fits nothing. */
function attacks(size: number, heads: string[], repeated: string[], tails: string[]): string[] {
  return heads.flatMap((head) =>
    repeated.flatMap((part) => tails.map((tail) => head + part.repeat(Math.floor(size / part.length)) + tail)),
  );
}

/** One call with these arguments, whole at once. */
async function callWith(items: object, v: string[]): Promise<void> {
  const parameters = { type: "object", properties: { v: { type: "array", items } } };
  const content = [{ type: "toolCall", id: "a", name: "t", arguments: { v } }];
  const answers = [answer({ content, stopReason: "toolUse" }), answer({ content: [{ type: "text", text: "done" }] })];
  const record = await run((...request) => finalMessages(answers.shift())(...request), {
    tools: [makeTool("t", () => "ok", { parameters })],
  });
  expect(resultsOf(record)).toHaveLength(1);
}

// SPEC 5.7: checked by patterns of the bundled checker
describe("a format is checked in linear time", () => {
  const repeated = ["a", "0", "/", ":", "a.", "a-", "%aa", "//", "'", '"', "{a,", "0:", "~0", "[", "(", "1Y"];
  const formats: Record<string, string[]> = {
    date: [""],
    time: ["", "00:00:00."],
    "date-time": ["", "2020-01-01T00:00:00."],
    duration: ["", "P", "PT"],
    uri: ["", "http://", "http://[", "urn:"],
    "uri-reference": ["", "//", "//["],
    "uri-template": ["", "{", "http://{"],
    url: ["", "http://", "ftp://a"],
    email: ["", '"', "a@"],
    hostname: [""],
    ipv4: ["", "1.1.1."],
    ipv6: ["", "1:1:"],
    regex: ["", "[a"],
    uuid: [""],
    "json-pointer": ["", "/"],
    "json-pointer-uri-fragment": ["", "#/"],
    "relative-json-pointer": ["", "0/"],
  };
  it.each(Object.entries(formats))("%s", async (format, heads) => {
    await expectLinear((size) => callWith({ type: "string", format }, attacks(size, heads, repeated, ["", "!"])));
  });
});

describe("what comes from outside is read in linear time", () => {
  // SPEC 5.7: digits are compared to see whether a number came through whole
  it("a text that may be a number", async () => {
    await expectLinear((size) =>
      callWith({ type: ["number", "object"] }, attacks(size, ["1.", "-0.", "1e", "{", ""], ["0", "1", "{", '"'], ["1", "x", "e1"])),
    );
  });

  // SPEC 12.2
  it("a provider's error", async () => {
    const repeated = [
      "invalid_",
      "try again in 1",
      "exceeds the ",
      "context ",
      "content ",
      "sk-",
      "bearer ",
      "a://",
      "?key=",
      "1.",
      "http://a:",
    ];
    await expectLinear(async (size) => {
      for (const text of attacks(size, ["", "try again in "], repeated, ["", "!"])) {
        const error = { message: text, code: text, type: text, responseBody: text, name: text, data: { error: { message: text } } };
        const { message } = await ask(aiSdk(fakeModel("v3", () => streamOf([{ type: "error", error }])).model));
        expect(message.stopReason).toBe("error");
        const headers = new Headers({ "retry-after": text.slice(0, size / 2) });
        const fetch = async () => new Response(JSON.stringify({ error }), { status: 429, headers });
        expect((await ask(openaiChat({ ...quiet, fetch }))).message.stopReason).toBe("error");
      }
    });
  });

  // SPEC 12.3
  it("what an MCP server lists and answers", async () => {
    await expectLinear(async (size) => {
      const data = `${"=".repeat(size)}x`;
      const content = [
        { type: "audio", data, mimeType: `audio/${"a".repeat(size)}` },
        { type: "resource", resource: { uri: "a:".repeat(size / 2), mimeType: "image/".repeat(size / 6), blob: data } },
        { type: "text", text: data },
      ];
      const names = attacks(size, [""], ["a", "/", "a_", " "], ["", "!"]).map((name, i) => `${i}${name}`);
      const server = new RawMcpServer({ list: () => ({ tools: names.map((name) => listed(name)) }), call: () => ({ content }) });
      const { client } = await connect(server);
      const tools = await mcpTools(client);
      expect((await callOnce(tools.slice(0, 1))).content).toHaveLength(3);
      await client.close();
    });
  });

  // SPEC 10.2
  it("names and paths for the cards of an editor", async () => {
    await expectLinear((size) => {
      for (const text of attacks(size, ["", "a://", "C:"], ["aA", "_", "/", "../", "\ud83d", " "], ["", "!"])) {
        const state = createUpdateState({ cwd: "/project" });
        const args = { path: text, uri: text, command: text };
        toSessionUpdates({ type: "tool_execution_start", toolCallId: text, toolName: text, args }, state);
        const result = { content: [{ type: "text" as const, text }] };
        toSessionUpdates({ type: "tool_execution_end", toolCallId: text, toolName: text, result, isError: true }, state);
      }
    });
  });
});
