import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { text } from "../adapters/helpers.js";
import { deferred } from "../helpers.js";
import { callsOf, endpoint, stopWith } from "./endpoint.js";
import { useChat } from "./page.js";

const chat = useChat();
const TURNS = 60;

// SPEC 4.8 15.1
test("what came before costs nothing: only the growing text changes, and what is there stays the same node", async () => {
  const { page, say, message, conversation, useServer, settled, screenshot, shown, hidden, poll } = chat();
  const server = await endpoint();
  await useServer(server.url);
  const calls = Array.from({ length: TURNS - 1 }, (_, turn) =>
    callsOf(["calculate", { expression: `${turn} + 1` }], ["count_lines", { path: "README.md" }]),
  );
  const [writes, ends] = [deferred(), deferred()];
  server.answer(
    ...calls.map((call) => (res: ServerResponse) => void res.end(call + stopWith(100, 10))),
    (res) => void res.end(text("Done.") + stopWith(100, 1)),
    async (res) => {
      res.write(text("One word"));
      await writes.promise;
      for (let word = 0; word < 50; word++) {
        await new Promise((next) => res.write(text(` and ${word}`), next));
      }
      await ends.promise;
      res.end(stopWith(100, 100));
    },
  );
  await say("count");
  await shown(conversation.getByText("Done."));
  await settled();
  await poll(() => page.getByRole("row").count()).toBe(TURNS + 2);
  await page.evaluate(() => {
    for (const node of document.querySelectorAll("#messages *")) (node as any).before = true;
  });
  const tools = page.getByRole("group", { name: /^Tool: / });
  expect(await tools.count()).toBe(2 * (TURNS - 1));
  await say("and on");
  await shown(conversation.getByText("One word"));
  await page.evaluate(() => {
    (window as any).changes = [];
    new MutationObserver((records) => {
      for (const { type, target } of records) (window as any).changes.push(`${type} ${target.parentElement?.className}`);
    }).observe(document.getElementById("messages") as HTMLElement, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    });
  });
  writes.resolve();
  await shown(conversation.getByText("and 49"));
  const changes = await page.evaluate(() => (window as any).changes as string[]);
  expect(new Set(changes)).toEqual(new Set(["characterData prose"]));
  ends.resolve();
  await settled();
  expect(
    await page.evaluate(
      () =>
        document.querySelectorAll("#messages *").length -
        [...document.querySelectorAll("#messages *")].filter((node) => (node as any).before).length,
    ),
  ).toBeLessThan(12);
  // one who reads further up is left there
  await conversation.evaluate((element) => element.scrollTo(0, 0));
  const toLatest = page.getByRole("button", { name: "Jump to the latest" });
  await shown(toLatest);
  await screenshot("long-further-up");
  await toLatest.click();
  await hidden(toLatest);
  await poll(() =>
    conversation.evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight),
  ).toBeLessThan(50);
  expect(await message.isVisible()).toBe(true);
  await server.close();
});
