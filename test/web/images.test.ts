import { Buffer } from "node:buffer";
import { afterEach, beforeEach, expect, test } from "vitest";
import { text } from "../adapters/helpers.js";
import { type Endpoint, endpoint, stopWith } from "./endpoint.js";
import { useChat } from "./page.js";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const file = (name: string): { name: string; mimeType: string; buffer: Buffer } => ({
  name,
  mimeType: "image/png",
  buffer: Buffer.from(PNG, "base64"),
});

const chat = useChat();
let server: Endpoint;
beforeEach(async () => {
  server = await endpoint();
  await chat().useServer(server.url);
});
afterEach(() => server.close());

// SPEC 2 8.1
test("images are chosen, taken back, and sent with the message", async () => {
  const { page, say, button, conversation, settled, screenshot, shown } = chat();
  server.answer((res) => void res.end(text("A dot.") + stopWith(1, 1)));
  const choosing = page.waitForEvent("filechooser");
  await button("Attach images").click();
  await (await choosing).setFiles([file("dot.png"), file("other.png")]);
  const attached = page.getByRole("list", { name: "Attached images" });
  await shown(attached.getByRole("img", { name: "other.png" }));
  await screenshot("images-attached");
  await button("Remove other.png").click();
  expect(await attached.getByRole("img").count()).toBe(1);
  await say("What is this?");
  await settled();
  expect(await attached.count(), "they went with the message").toBe(0);
  await shown(conversation.getByRole("article", { name: "You" }).getByRole("img", { name: "Attached image 1" }));
  expect(server.requests[0]?.body.messages.at(-1).content).toEqual([
    { type: "text", text: "What is this?" },
    { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
  ]);
});

test("an image is pasted, and may go without a word", async () => {
  const { page, message, button, settled, shown } = chat();
  server.answer((res) => void res.end(text("A dot.") + stopWith(1, 1)));
  await message.evaluate((element, data) => {
    const clipboardData = new DataTransfer();
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    clipboardData.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, PNG);
  await shown(page.getByRole("img", { name: "pasted.png" }));
  await button("Send").click();
  await settled();
  expect(server.requests[0]?.body.messages.at(-1).content).toMatchObject([{ type: "image_url" }]);
});

test("what cannot be attached is named, with the reason", async () => {
  const { page, say, shown, settled } = chat();
  server.answer((res) => void res.end(text("Hello.") + stopWith(1, 1)));
  const attached = page.getByRole("list", { name: "Attached images" });
  await page
    .locator("#files")
    .setInputFiles([
      { name: "scan.png", mimeType: "image/png", buffer: Buffer.alloc(5_000_001) },
      { name: "plan.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>") },
      file("dot.png"),
    ]);
  await shown(attached.getByRole("img", { name: "dot.png" }));
  expect(await attached.getByRole("img").count()).toBe(1);
  const told = page.getByRole("alert");
  expect(await told.innerText()).toBe("scan.png is larger than 5 MB. plan.svg is not a PNG, JPEG, GIF or WebP image.");
  await say("hi");
  await settled();
  expect(await told.count(), "it was about that message").toBe(0);
});
