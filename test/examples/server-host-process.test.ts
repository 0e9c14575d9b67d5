import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, type Options } from "tsup";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import serverConfig from "../../tsup.server.config.js";
import { textOf } from "../helpers.js";
import { workspaceOf } from "./helpers.js";
import { post, Watcher } from "./server-host-helpers.js";

/** Where nothing of this package can be found: what is built here has to do. */
const folder = mkdtempSync(join(tmpdir(), "turnloop-server-"));

beforeAll(async () => {
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  await build({ ...(serverConfig as Options), outDir: folder, clean: false, config: false, silent: true });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function start(env: Record<string, string>, args: string[] = [], cwd = folder) {
  const child = spawn(process.execPath, [join(folder, "main.js"), ...args], { cwd, env: { PATH: process.env.PATH, ...env } });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output = { text: "" };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      output.text += chunk;
    });
  }
  const finished = once(child, "close").then(([code]) => ({ code: code as number | null, text: output.text }));
  return { child, finished };
}

// SPEC 15.2, 15.3
test("one command serves a page and its conversations, asks before a file is read, and ends on SIGTERM", async () => {
  const { child, finished } = start({ PORT: "0" }, [], workspaceOf({ "a.txt": "one\ntwo\n" }));
  const [greeting] = (await once(child.stdout, "data")) as [string];
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(greeting)?.[0] as string;
  const page = await fetch(url);
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'");
  const [, source] = /<script type="module" src="([^"]+)">/.exec(await page.text()) as unknown as [string, string];
  const script = await fetch(url + source);
  expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  const code = await script.text();
  expect(code).toContain("EventSource");
  expect(code).not.toMatch(/^import |\brequire\(/m);
  expect(code.length).toBeLessThan(20_000);
  expect((await fetch(`${url}/main.js`)).status).toBe(404);

  const { body } = await post(`${url}/conversations`);
  const watcher = await Watcher.on(`${url}/conversations/${body.id}`);
  await post(`${url}/conversations/${body.id}/prompt`, { text: "how does a.txt begin?" });
  await watcher.untilOutcome("suspended");
  expect(watcher.view.pending).toMatchObject([{ toolCall: { name: "read_file" }, args: { path: "a.txt" } }]);
  const decisions = watcher.view.pending?.map(({ toolCall }) => ({ toolCallId: toolCall.id, action: "approve" }));
  await post(`${url}/conversations/${body.id}/decisions`, { decisions });
  await watcher.untilOutcome();
  expect(textOf(watcher.view.messages.at(-1))).toContain("two");
  await post(`${url}/conversations/${body.id}/prompt`, { text: "help" });
  await watcher.until(({ view }) => view.streamingMessage !== undefined);
  child.kill("SIGTERM");
  expect(await finished).toMatchObject({ code: 0, text: greeting });
  await watcher.until(({ hasEnded }) => hasEnded);
  expect(watcher.view.outcome).toBe("aborted");
});

test.each([
  [{ PORT: "x" }, ["PORT must be a number up to 65535", '"x"']],
  [{ PORT: "70000" }, ["PORT must be a number up to 65535"]],
  [{ PORT: "0", OPENAI_MODEL: "m" }, ["OPENAI_BASE_URL"]],
])("says what is wrong with %o", async (env, parts) => {
  const { code, text } = await start(env).finished;
  expect(code).toBe(1);
  for (const part of parts) expect(text).toContain(part);
  expect(text.trim().split("\n")).toHaveLength(1);
});

test("--help says how it is used", async () => {
  expect(await start({}, ["--help"]).finished).toMatchObject({ code: 0, text: expect.stringMatching(/^Usage: npm run server/) });
});

test("a port that is taken is named, and Ctrl+C ends it while clients watch", async () => {
  const { child, finished } = start({ PORT: "0" });
  const [greeting] = (await once(child.stdout, "data")) as [string];
  const { origin, port } = new URL(/http:\S+/.exec(greeting)?.[0] as string);
  expect(await start({ PORT: port }).finished).toEqual({ code: 1, text: `Port ${port} is taken; PORT=0 takes one that is free.\n` });
  const { body } = await post(`${origin}/conversations`);
  const watchers = [await Watcher.on(`${origin}/conversations/${body.id}`), await Watcher.on(`${origin}/conversations/${body.id}`)];
  child.kill("SIGINT");
  expect(await finished).toMatchObject({ code: 0 });
  await Promise.all(watchers.map((watcher) => watcher.until(({ hasEnded }) => hasEnded)));
});
