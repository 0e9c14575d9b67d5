import { describe, expect, test } from "vitest";
import { useChat } from "./page.js";

describe.each([
  ["light", { width: 1280, height: 800 }],
  ["dark", { width: 1280, height: 800 }],
  ["light", { width: 390, height: 844 }],
  ["dark", { width: 390, height: 844 }],
] as const)("%s %o", (colorScheme, viewport) => {
  const chat = useChat({ colorScheme, viewport });
  const name = `${colorScheme}-${viewport.width}`;

  test("the page in all its states", async () => {
    const { page, say, screenshot, settled, button, tool, conversation, shown, poll } = chat();
    await screenshot(`${name}-1-welcome`);
    await say("Proofread all files");
    await shown(page.getByRole("group", { name: "Thinking" }));
    await screenshot(`${name}-2-thinking`);
    await shown(tool("Proofread", 2).getByRole("progressbar"));
    await say("what is 12 * (3 + 4)?");
    await page.getByRole("textbox", { name: "Message" }).fill("draw a chart of data/visitors.csv");
    await button("Later").click();
    await screenshot(`${name}-3-working`);
    await settled();
    await poll(() => conversation.getByRole("img").count()).toBe(1);
    await screenshot(`${name}-4-complete`);
    await say('write "Bring candles" to notes/todo.md');
    await shown(page.getByRole("dialog", { name: "Write file?" }));
    await screenshot(`${name}-5-approval`);
    await page.keyboard.press("Escape");
    await shown(button("Review"));
    await screenshot(`${name}-6-put-aside`);
    await button("Stop").click();
    await shown(button("Try again"));
    await screenshot(`${name}-7-stopped`);
    for (const width of [viewport.width, 1040]) {
      await page.setViewportSize({ ...viewport, width });
      const edges = () =>
        page.locator("#messages, .field").evaluateAll((all) => {
          const [messages, field] = all.map((one) => one.getBoundingClientRect());
          return [
            (field?.left ?? Number.NaN) - (messages?.left ?? Number.NaN),
            (field?.right ?? Number.NaN) - (messages?.right ?? Number.NaN),
          ];
        });
      // what is written stands under what was said, a frame after the width
      await poll(edges).toEqual([0, 0]);
    }
    await page.setViewportSize(viewport);
    await page.getByRole("button", { name: /^Model: / }).click();
    await screenshot(`${name}-8-model`);
    const [scroll, client] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    expect(scroll, "nothing is wider than the page").toBe(client);
  });
});
