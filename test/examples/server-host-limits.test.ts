import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { offlineModel } from "../../examples/offline-model.js";
import { heldModel, host, post, talk } from "./server-host-helpers.js";

describe("what a conversation holds has an end", () => {
  // SPEC 8.2 8.3
  test("its waiting messages: one too many is refused, and none of the others lost", async () => {
    const model = heldModel();
    const { base, does, watch } = await talk(await host({ streamFn: model.streamFn }, { maxWaiting: 3 }));
    const watcher = await watch();
    await does("prompt", { text: "go" });
    await does("steer", { text: "one" });
    await does("follow-up", { text: "two" });
    await does("steer", { text: "three" });
    for (const action of ["steer", "follow-up"]) {
      const refused = await post(`${base}/${action}`, { text: "four" });
      expect(refused).toMatchObject({ status: 429, body: { error: { code: "too_many_waiting", message: expect.stringContaining("3") } } });
    }
    for (let answer = 0; answer < 4; answer++) model.ends();
    await watcher.untilOutcome();
    const asked = watcher.view.messages.filter(({ role }) => role === "user").map((message) => (message as { content: string }).content);
    expect(asked.sort()).toEqual(["go", "one", "three", "two"]);
    await does("prompt", { text: "there is room again" });
  });

  test("its clients: one too many is refused, and may come when another has gone", async () => {
    const server = await host({ streamFn: offlineModel({ chunkDelayMs: 0 }) }, { maxClients: 2 });
    const { base, watch } = await talk(server);
    const [first] = [await watch(), await watch()];
    const refused = await fetch(`${base}/events`);
    expect([refused.status, await refused.json()]).toMatchObject([503, { error: { code: "too_many_clients" } }]);
    await (await talk(server)).watch();
    first.close();
    await expect.poll(async () => (await watch()).headers["status"]).toBe(200);
  });

  test("its messages: a full one can be read and not gone on with", async () => {
    const server = await host({ streamFn: offlineModel({ chunkDelayMs: 0 }) }, { transcriptBytes: 2000 });
    const { base, does, watch } = await talk(server);
    const watcher = await watch();
    await does("prompt", { text: "x".repeat(2000) });
    await watcher.untilOutcome();
    const refused = await post(`${base}/prompt`, { text: "and?" });
    expect(refused).toMatchObject({ status: 409, body: { error: { code: "conversation_full" } } });
    const late = await watch();
    await late.until(({ entries }) => entries.length === 1);
    expect(late.view.messages).toEqual(watcher.view.messages);
    await (await talk(server)).does("prompt", { text: "a new one" });
  });
});

test("whoever only asks whether the page is there is told", async () => {
  const headers = { "content-type": "text/html" };
  const { url } = await host({ streamFn: offlineModel() }, { page: new Map([["/", { headers, content: Buffer.from("<p>page</p>") }]]) });
  const [status, type, body] = await new Promise<unknown[]>((resolve, reject) => {
    const asking = request(url, { method: "HEAD" }, async (response) => {
      const chunks: Buffer[] = await response.toArray();
      resolve([response.statusCode, response.headers["content-type"], Buffer.concat(chunks).toString()]);
    });
    asking.on("error", reject).end();
  });
  expect([status, type, body]).toEqual([200, "text/html", ""]);
  expect((await fetch(`${url}/none`, { method: "HEAD" })).status).toBe(404);
});
