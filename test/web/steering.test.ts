import { describe, expect, test } from "vitest";
import { useChat } from "./page.js";

const chat = useChat();
const SLOW = "proofread notes/meeting.md";

// SPEC 8.2 8.3 8.4 15.1
describe("while an answer is on", () => {
  test("what is sent steers it, and is answered with it", async () => {
    const { page, say, tool, conversation, settled, screenshot, shown, poll } = chat();
    await say(SLOW);
    await shown(tool("Proofread").getByRole("progressbar"));
    await say("what is 12 * (3 + 4)?");
    const chips = page.getByRole("list", { name: "Waiting messages" }).getByRole("listitem");
    await poll(() => chips.allInnerTexts()).toEqual([expect.stringMatching(/^Next\s+what is 12/)]);
    await screenshot("steering-waits");
    await shown(conversation.getByRole("article", { name: "You" }).nth(1));
    expect(await chips.count(), "delivered").toBe(0);
    await settled();
    const last = await conversation.getByRole("article", { name: "Assistant" }).last().innerText();
    expect(last).toContain('"the the" is there twice');
    expect(last).toContain("12 * (3 + 4) = 84");
  });

  test("what is for later waits as a chip, can be taken back, and is asked in order", async () => {
    const { page, say, tool, message, button, conversation, settled, screenshot, shown, poll } = chat();
    await say(SLOW);
    await shown(tool("Proofread").getByRole("progressbar"));
    await message.fill("what is 1 + 1?");
    await message.press("Control+Enter");
    await message.fill("what is 2 + 2?");
    await button("Later").click();
    await message.fill("what is 3 + 3?");
    await button("Later").click();
    const chips = page.getByRole("list", { name: "Waiting messages" }).getByRole("listitem");
    await poll(async () => (await chips.allInnerTexts()).map((text) => text.replace(/\s+/g, " "))).toEqual([
      "Later what is 1 + 1? ×",
      "Later what is 2 + 2? ×",
      "Later what is 3 + 3? ×",
    ]);
    await screenshot("follow-ups-wait");
    await button("Take back: what is 2 + 2?").click();
    await poll(() => chips.count()).toBe(2);
    expect(await message.evaluate((element) => element === document.activeElement), "the focus has somewhere to be").toBe(true);
    await settled();
    expect(await conversation.getByRole("article", { name: "You" }).allInnerTexts()).toEqual([
      expect.stringContaining(SLOW),
      expect.stringContaining("1 + 1"),
      expect.stringContaining("3 + 3"),
    ]);
    await shown(conversation.getByText("3 + 3 = 6").last());
  });
});

// SPEC 7.3 7.4 8.1 8.3
describe("stop", () => {
  test("ends the answer and its tools at once; what waits stays and can be sent", async () => {
    const { page, say, tool, button, message, conversation, settled, screenshot, shown } = chat();
    await say(SLOW);
    await shown(tool("Proofread").getByRole("progressbar"));
    await message.fill("what is 1 + 1?");
    await button("Later").click();
    await button("Stop").click();
    await shown(conversation.getByText("You stopped this answer."));
    expect(await tool("Proofread").innerText()).toMatch(/Failed[\s\S]*stopped by the user/);
    expect(await page.getByRole("status").innerText()).toBe("The answer was stopped.");
    expect(await button("Stop").count()).toBe(0);
    await screenshot("stopped");
    await button("Send now").click();
    await shown(conversation.getByText("1 + 1 = 2").last());
    await settled();
    expect(await page.getByRole("list", { name: "Waiting messages" }).count()).toBe(0);
    expect(await conversation.getByText("You stopped this answer.").count()).toBe(0);
    expect(await button("Send now").count()).toBe(0);
  });

  test("while the answer streams keeps what came, and it can be tried again", async () => {
    const { say, button, conversation, settled, shown } = chat();
    await say("help");
    await shown(conversation.getByText("I am a small offline model"));
    await button("Stop").click();
    await shown(button("Try again"));
    const answers = conversation.getByRole("article", { name: "Assistant" });
    expect(await answers.last().innerText()).toMatch(/I am a small[\s\S]*stopped$/);
    await button("Try again").click();
    await settled();
    expect(await answers.count(), "the new answer stands in place of the stopped one").toBe(1);
    await shown(answers.getByText("what is 12 * (3 + 4)?"));
  });
});

test("a new conversation begins with nothing, also while an answer is on", async () => {
  const { page, say, tool, message, button, conversation, settled, shown } = chat();
  await say(SLOW);
  await shown(tool("Proofread").getByRole("progressbar"));
  await message.fill("what is 1 + 1?");
  await button("Later").click();
  await button("New conversation").click();
  await shown(page.getByRole("heading", { name: "What would you like to know?" }));
  expect(await conversation.getByRole("article").count()).toBe(0);
  expect(await page.getByRole("list", { name: "Waiting messages" }).count()).toBe(0);
  expect(await page.getByRole("list", { name: "Timeline" }).count()).toBe(0);
  await button("Draw a chart of data/visitors.csv").click();
  await settled();
  expect(await conversation.getByRole("img").count()).toBe(1);
  expect(await conversation.getByRole("article", { name: "You" }).count()).toBe(1);
});

test("the page is not left by mistake while an answer is on", async () => {
  const { page, say, tool, settled, shown } = chat();
  const questions: string[] = [];
  page.on("dialog", (dialog) => {
    questions.push(dialog.type());
    void dialog.dismiss();
  });
  await say(SLOW);
  await shown(tool("Proofread").getByRole("progressbar"));
  await page.close({ runBeforeUnload: true });
  await expect.poll(() => questions).toEqual(["beforeunload"]);
  await settled();
  expect(await tool("Proofread").innerText()).toMatch(/Done/);
});
