import { expect, test } from "vitest";
import { useChat } from "./page.js";

const chat = useChat();
const WRITE = 'write "Bring candles" to notes/todo.md';

// SPEC 5.8 6
test("a call that is marked waits until it is allowed", async () => {
  const { page, say, tool, settled, conversation, shown } = chat();
  await say(WRITE);
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  expect(await dialog.getByRole("textbox", { name: "path" }).inputValue()).toBe("notes/todo.md");
  expect(await dialog.getByRole("textbox", { name: "text" }).inputValue()).toBe("Bring candles\n");
  expect(await page.getByRole("heading", { name: "Write file?" }).evaluate((title) => title === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter"); // meant for the message: it decides nothing
  expect(await dialog.isVisible()).toBe(true);
  await dialog.getByRole("button", { name: "Allow" }).click();
  await settled();
  expect(await tool("Write file").innerText()).toMatch(/Done[\s\S]*Created notes\/todo\.md: 1 line, 14 bytes/);
  await shown(conversation.getByText("Done. Created notes/todo.md"));
});

test("its arguments can be changed first", async () => {
  const { page, say, tool, settled, conversation, screenshot, shown } = chat();
  await say(WRITE);
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  await dialog.getByRole("textbox", { name: "text" }).fill("Bring candles and matches\n");
  await dialog.getByRole("textbox", { name: "path" }).fill("notes/list.md");
  await screenshot("approval-edited");
  await dialog.getByRole("button", { name: "Allow" }).click();
  await settled();
  expect(await tool("Write file").innerText()).toMatch(/edited · path: notes\/list\.md · text: Bring candles and matches/);
  await say("show notes/list.md");
  await settled();
  await shown(conversation.getByRole("article", { name: "Assistant" }).last().getByText("Bring candles and matches"));
});

test("it can be refused, and the model reads why", async () => {
  const { page, say, tool, settled, conversation, screenshot, shown } = chat();
  await say("delete README.md");
  const dialog = page.getByRole("dialog", { name: "Delete file?" });
  await shown(dialog);
  await dialog.getByRole("textbox", { name: "Reason for refusing (optional)" }).fill("Tom still needs it.");
  await dialog.getByRole("button", { name: "Deny" }).click();
  await settled();
  expect(await tool("Delete file").innerText()).toMatch(/Failed[\s\S]*The user did not allow this\. Tom still needs it\./);
  await shown(conversation.getByText("I did not delete README.md: The user did not allow this. Tom still needs it."));
  await screenshot("approval-denied");
  await say("how many lines does README.md have?");
  await settled();
  await shown(conversation.getByText("README.md has 9 lines").last());
});

test("the question can be put aside and taken up again", async () => {
  const { page, say, tool, settled, shown, hidden } = chat();
  await say(WRITE);
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  await dialog.getByRole("textbox", { name: "text" }).fill("Half a thought");
  await page.keyboard.press("Escape");
  await hidden(dialog);
  expect(await tool("Write file").innerText()).toMatch(/Waits for you/);
  await tool("Write file").getByRole("button", { name: "Review" }).click();
  expect(await dialog.getByRole("textbox", { name: "text" }).inputValue(), "nothing typed is lost").toBe("Half a thought");
  await dialog.getByRole("button", { name: "Allow" }).click();
  await settled();
  expect(await tool("Write file").getByRole("button").count()).toBe(0);
  expect(await tool("Write file").innerText()).toMatch(/Done/);
});

// SPEC 7.2 7.4
test("a stop answers the question too", async () => {
  const { page, say, tool, button, conversation, shown } = chat();
  await say(`${WRITE} and write "Sweep" to notes/b.md`);
  await shown(page.getByRole("dialog", { name: "Write file?" }));
  await page.keyboard.press("Escape");
  await button("Stop").click();
  await shown(conversation.getByText("You stopped this answer."));
  for (const nth of [0, 1]) expect(await tool("Write file", nth).innerText()).toMatch(/Failed[\s\S]*Not executed/);
  expect(await page.getByRole("dialog").count()).toBe(0);
});

// SPEC 5.6 5.9
test("two calls of one answer are asked about one after the other", async () => {
  const { page, say, tool, settled, shown, poll } = chat();
  await say(`${WRITE} and write "Sweep" to notes/b.md`);
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  await dialog.getByRole("button", { name: "Deny" }).click();
  await poll(() => dialog.getByRole("textbox", { name: "path" }).inputValue()).toBe("notes/b.md");
  await dialog.getByRole("button", { name: "Allow" }).click();
  await settled();
  expect(await tool("Write file", 0).innerText()).toMatch(/Failed[\s\S]*did not allow/);
  expect(await tool("Write file", 1).innerText()).toMatch(/Done[\s\S]*Created notes\/b\.md/);
});
