import { expect, test } from "vitest";
import { text } from "../adapters/helpers.js";
import { callsOf, endpoint, stopWith } from "./endpoint.js";
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

test("changes that break the tool's schema are not carried out, and the card says why", async () => {
  const { page, say, tool, settled, shown } = chat();
  await say(WRITE);
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  await dialog.getByRole("textbox", { name: "path" }).fill("");
  await dialog.getByRole("button", { name: "Allow" }).click();
  await settled();
  expect(await tool("Write file").innerText()).toMatch(/Failed[\s\S]*not executed:\s+- path: String is too short/);
});

test("the whole of an argument can be read, and what in it does not show as it is has a warning", async () => {
  const { page, say, shown } = chat();
  await say(`write "${"one long line ".repeat(20).trim()}" to notes/\u202Etxt.exe`);
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  const hidden = dialog.getByRole("textbox").evaluateAll((all) => all.map(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight));
  expect(await hidden).toEqual([0, 0, 0]);
  expect(await dialog.getByText("has characters that cannot be seen").allInnerTexts()).toEqual([
    "path has characters that cannot be seen: \\u202e",
  ]);
});

test("allowed as they are, arguments stay what the model wrote, to the last byte", async () => {
  const { page, say, tool, settled, shown, useServer } = chat();
  const server = await endpoint();
  server.answer(
    (res) => void res.end(callsOf(["write_file", { path: "dos.txt", text: "one\r\ntwo" }]) + stopWith(1, 1)),
    (res) => void res.end(text("Done.") + stopWith(1, 1)),
  );
  await useServer(server.url);
  await say("write it");
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  await dialog.getByRole("button", { name: "Allow" }).click();
  await settled();
  expect(await tool("Write file").innerText()).toMatch(/^Write file\s+path: dos\.txt[\s\S]*Created dos\.txt: 2 lines, 8 bytes$/);
  await server.close();
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
