import { once } from "node:events";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { stop, text } from "../adapters/helpers.js";
import { bundleDemo, demo, hasTerminals, inTerminal } from "./demo.js";
import { workspaceOf } from "./helpers.js";

bundleDemo({ withClient: true });

const mock = new LLMock({ port: 0, auth: { apiKeys: ["right"] } });
const known = { model: /^(?:first|second)$/ };
beforeAll(() => mock.start());
beforeEach(() => {
  mock.clearRequests();
  mock.clearFixtures();
});
afterAll(() => mock.stop());

const env = (changes: Record<string, string> = {}): Record<string, string> => ({
  OPENAI_BASE_URL: `${mock.url}/v1`,
  OPENAI_API_KEY: "right",
  ...changes,
});
const lastTexts = (): unknown[] =>
  mock.getRequests().map(({ body }) => (body as { messages: { content: unknown }[] }).messages.at(-1)?.content);
const models = (): unknown[] => mock.getRequests().map(({ body }) => (body as { model: string }).model);

/** A port where nobody listens. */
async function closedPort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  return port;
}

/** Answers everything with a web page. */
async function pageServer(status: number): Promise<string> {
  const listener = createHttpServer((_request, response) => {
    response.writeHead(status, { "content-type": "text/html" }).end("<html>\n<body>\nNot here\n</body>\n</html>\n");
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  onTestFinished(() => void listener.close());
  return `http://127.0.0.1:${(listener.address() as AddressInfo).port}/app`;
}

describe("a server", () => {
  test("answers with the help of the tools", async () => {
    mock.on({ ...known, hasToolResult: false }, { toolCalls: [{ name: "count_lines", arguments: '{"path":"a.txt"}' }] });
    mock.on({ ...known, toolResultContains: "2 lines" }, { content: "It has two lines." });
    const { code, stdout, stderr } = await demo(workspaceOf({ "a.txt": "one\ntwo\n" }), ["--model", "first", "how long is a.txt?"], {
      env: env(),
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "It has two lines.\n" });
    expect(stderr).toMatch(/→ count_lines path: "a.txt"\n✓ count_lines: a\.txt: 2 lines, 8 bytes \(.*\)\n.* 2 turns, 1 tool call\n$/);
  });

  test("/model takes another of its models from the next turn on, the conversation stays", async () => {
    mock.on(known, { content: "Hello." });
    const { code, stdout } = await demo(workspaceOf({}), ["--model", "first"], { env: env(), input: "one\n/model second\ntwo\n" });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "Hello.\n\n\nHello.\n" });
    expect([models(), lastTexts()]).toEqual([
      ["first", "second"],
      ["one", "two"],
    ]);
    expect(mock.getLastRequest()?.body).toMatchObject({ messages: Array.from({ length: 4 }, () => ({})) });
  });

  test("without --model nobody is asked", async () => {
    const { code, stdout } = await demo(workspaceOf({}), ["what is 1+1?"], { env: env() });
    expect({ code, stdout, asked: mock.getRequests() }).toEqual({ code: 0, stdout: "1+1 = 2\n", asked: [] });
  });

  test("that is busy is asked again, in one line", async () => {
    mock.on(known, { content: "Here I am." });
    mock.nextRequestError(429, { message: "slow down" });
    const { code, stdout, stderr } = await demo(workspaceOf({}), ["--model", "first", "hi"], { env: env() });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "Here I am.\n" });
    // a machine that is slow to begin is shown as a wait
    const lines = stderr.split("\n").filter((line) => line !== "Thinking...");
    expect(lines).toEqual([
      expect.stringMatching(/^… retry 1 in \d\.\d s: rate limit \(429\)$/),
      expect.stringMatching(/ 1 turn, 0 tool calls$/),
      "",
    ]);
  });
});

/** A server whose answers wait for a word from the test. */
async function patientServer() {
  const asked: ServerResponse[] = [];
  const answers: string[] = [];
  const serve = (): void => {
    while (asked.length > 0 && answers.length > 0) asked.shift()?.end(answers.shift());
  };
  const listener = createHttpServer((request, response) => {
    request.resume();
    asked.push(response.writeHead(200, { "content-type": "text/event-stream" }));
    response.flushHeaders();
    serve();
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  onTestFinished(() => {
    listener.closeAllConnections();
    listener.close();
  });
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/v1`,
    answer(...parts: string[]): void {
      answers.push(text(...parts) + stop);
      serve();
    },
  };
}

describe("what goes wrong is one line on the standard error and exit code 1", () => {
  test.each<[string, string[], () => Promise<Record<string, string>>, RegExp]>([
    [
      "an unreachable server",
      ["--model", "first"],
      async () => env({ OPENAI_BASE_URL: `http://127.0.0.1:${await closedPort()}/v1` }),
      /^error: http:\/\/127\.0\.0\.1:\d+\/v1 gave no answer; check OPENAI_BASE_URL, and that it runs \(.*ECONNREFUSED.*\)\n$/,
    ],
    [
      "a wrong key",
      ["--model", "first"],
      async () => env({ OPENAI_API_KEY: "wrong" }),
      /^error: http:.*\/v1 refused the key; check OPENAI_API_KEY \(401 .*\)\n$/,
    ],
    [
      "no key where one is wanted",
      ["--model", "first"],
      async () => env({ OPENAI_API_KEY: "" }),
      /^error: http:.*\/v1 refused the key; check OPENAI_API_KEY \(401 .*\)\n$/,
    ],
    [
      "an unknown model",
      ["--model", "nope"],
      async () => env(),
      /^error: http:.*\/v1 does not know this model or address \(404 The model `nope` does not exist\)\n$/,
    ],
    [
      "a server that is something else",
      ["--model", "first"],
      async () => env({ OPENAI_BASE_URL: await pageServer(404) }),
      /^error: http:.*\/app does not know this model or address \(404 .*\)\n$/,
    ],
    [
      "a page where an answer is due",
      ["--model", "first"],
      async () => env({ OPENAI_BASE_URL: await pageServer(200) }),
      /^error: .*\/app gave no answer; .*\n$/,
    ],
  ])("%s", async (_name, args, environment, line) => {
    mock.on(known, { content: "Hello." });
    mock.on({ model: "nope" }, { status: 404, error: { message: "The model `nope` does not exist", code: "model_not_found" } });
    const { code, stdout, stderr } = await demo(workspaceOf({}), [...args, "hi"], { env: await environment() });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(line);
  });
});

describe.skipIf(!hasTerminals)("a server, in a terminal", () => {
  test("/retry answers again after a failure, also with another model", async () => {
    mock.on(known, { content: "Hello." });
    mock.on({ model: "nope" }, { status: 404, error: { message: "no such model" } });
    const chat = inTerminal(workspaceOf({}), ["--model", "nope"], { env: env() });
    await chat.shows("The model is nope;");
    await chat.shows("> ");
    chat.type("hi\r");
    await chat.shows("does not know this model or address (404 no such model)\r\n");
    await chat.shows("> ");
    chat.type("/model second\r/retry\r");
    await chat.shows("Hello.\r\n");
    await chat.shows("1 turn, 0 tool calls\r\n");
    await chat.shows("> ");
    chat.type("exit\r");
    expect((await chat.finished).code).toBe(0);
    expect([models(), lastTexts()]).toEqual([
      ["nope", "second"],
      ["hi", "hi"],
    ]);
  });

  test("a word in between reaches the model with its next turn", async () => {
    mock.on({ ...known, userMessage: "go" }, { toolCalls: [{ name: "list_files", arguments: "{}" }] }, { latency: 50 });
    mock.on({ ...known, userMessage: "briefly" }, { content: "Briefly: nothing." });
    const chat = inTerminal(workspaceOf({}), ["--model", "first"], { env: env() });
    await chat.shows("> ");
    chat.type("go\rbriefly\r");
    await chat.shows("» queued for the next turn: briefly\r\n");
    await chat.shows("✓ list_files");
    await chat.shows("» delivered: briefly\r\n");
    await chat.shows("Briefly: nothing.");
    await chat.shows("2 turns, 1 tool call\r\n");
    chat.type("/quit\r");
    expect((await chat.finished).code).toBe(0);
    expect(lastTexts()).toEqual(["go", "briefly"]);
  });

  test("that is silent for long: the seconds count on a line that is gone with the first word; typing takes its place", async () => {
    const server = await patientServer();
    const chat = inTerminal(workspaceOf({}), ["--model", "slow"], { env: env({ OPENAI_BASE_URL: server.url, NO_COLOR: "" }) });
    await chat.shows("> ");
    chat.type("hi\r");
    await chat.shows("\x1b[2mThinking...\x1b[0m");
    await chat.shows("\r\x1b[K\x1b[2mThinking... (1s)\x1b[0m");
    chat.type("br");
    await chat.shows("\r\x1b[K");
    await chat.shows("> \x1b[3Gbr");
    chat.type("iefly\r");
    await chat.shows("» queued for the next turn: briefly");
    await chat.shows("\r\x1b[K\x1b[2mThinking... (");
    server.answer("Hello", " there.");
    await chat.shows("\x1b[0m\r\x1b[K\r\nHello there.\r\n");
    await chat.shows("» delivered: briefly");
    server.answer("Briefly: hi.");
    await chat.shows("Briefly: hi.\r\n");
    await chat.shows("2 turns, 0 tool calls");
    chat.type("/quit\r");
    const { code, stdout } = await chat.finished;
    expect(code).toBe(0);
    // nothing of a wait stays on the screen: each line of it is written over
    expect(stdout).not.toMatch(/Thinking\.\.\.[^\r\n]*\r\n/);
  }, 20_000);
});
