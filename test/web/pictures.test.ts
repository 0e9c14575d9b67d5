/** The pictures of the manual. `npm run pictures` puts them into docs/pictures. */
import { mkdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { useChat } from "./page.js";

const folder = fileURLToPath(new URL("../../test-artefacts/pictures/", import.meta.url));
const MOST_BYTES = 150_000;

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  const chat = useChat({ colorScheme, viewport: { width: 1040, height: 650 }, deviceScaleFactor: 1.25 });

  async function picture(name: string): Promise<void> {
    const path = `${folder}${name}-${colorScheme}.png`;
    mkdirSync(folder, { recursive: true });
    await chat().page.screenshot({ path, animations: "disabled", caret: "hide" });
    expect(statSync(path).size, name).toBeLessThan(MOST_BYTES);
  }

  test("a conversation at work, when it is done, and when it asks", async () => {
    const { page, say, tool, conversation, message, button, settled, shown, poll } = chat();
    await say("Proofread notes/meeting.md, texts/keepers.md and texts/storm.md");
    await shown(tool("Proofread", 2).getByText("Done"));
    await conversation.getByText("Thought", { exact: true }).click();
    await say("what is 12 * (3 + 4)?");
    await message.fill("draw a chart of data/visitors.csv");
    await message.press("Control+Enter");
    await shown(button("Take back: draw a chart of data/visitors.csv"));
    await poll(() => tool("Proofread").innerText()).toContain("line 7 of 12");
    await picture("working");
    await settled();
    await poll(() => conversation.getByRole("img").count()).toBe(1);
    await picture("done");
    await button("New conversation").click();
    await say('write "Bring candles, and matches." to notes/todo.md');
    await shown(page.getByRole("dialog", { name: "Write file?" }));
    await picture("approval");
  });
});
