import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { build, type Options } from "tsup";
import { Agent } from "turnloop";
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { startHost } from "../../examples/server/host.js";
import { readPage } from "../../examples/server/page-files.js";
import serverConfig from "../../tsup.server.config.js";
import { heldModel } from "../examples/server-host-helpers.js";
import { makeTool } from "../helpers.js";

const folder = mkdtempSync(join(tmpdir(), "turnloop-page-"));
let browser: Browser;
beforeAll(async () => {
  await build({ ...(serverConfig as Options), outDir: folder, clean: false, config: false, silent: true });
  browser = await chromium.connect(inject("browserUrl"));
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A user of a server whose model says what the test has it say. What the console reports as an error fails the test. */
async function user(colorScheme: "light" | "dark" = "light") {
  const model = heldModel();
  const look = makeTool("look", () => "much to see\n".repeat(60));
  const host = await startHost({
    page: readPage(folder),
    closeGraceMs: 50,
    createAgent: () =>
      new Agent({
        model: { id: "held", provider: "test" },
        streamFn: model.streamFn,
        tools: [look],
        beforeToolCall: () => ({ suspend: true }),
      }),
  });
  const context = await browser.newContext({ viewport: { width: 390, height: 600 }, colorScheme });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("console", (message) => void (message.type() === "error" && errors.push(message.text())));
  onTestFinished(async () => {
    await context.close();
    await host.close();
    expect(errors).toEqual([]);
  });
  await page.goto(host.url);
  const text = page.getByRole("textbox", { name: "Message" });
  return { page, model, text, status: page.getByRole("status") };
}

const isAtEnd = (page: Page): Promise<boolean> =>
  page.evaluate(() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2 && scrollY > 0);

test("a question is answered by keyboard alone; the page goes along with what comes, and stays where one reads", async () => {
  const { page, model, text, status } = await user();
  await text.fill("look around");
  await text.press("Enter");
  await expect.poll(() => status.innerText()).toBe("Working…");
  expect(await text.inputValue()).toBe("");
  model.calls("look");
  model.ends();
  await expect.poll(() => status.innerText()).toBe("Your decision is needed.");
  const allow = page.getByRole("button", { name: "Allow" });
  await allow.focus();
  await page.getByRole("button", { name: "Later" }).waitFor({ state: "hidden" });
  await page.keyboard.press("Enter");
  const result = page.getByText("much to see");
  await result.waitFor();
  expect(await text.evaluate((element) => element === document.activeElement), "the focus has somewhere to be").toBe(true);
  model.says("I see. ".repeat(300));
  await page.getByText("I see.").waitFor();
  await expect.poll(() => isAtEnd(page)).toBe(true);
  const node = await result.elementHandle();
  await page.evaluate(() => scrollTo(0, 0));
  model.says("That is all.");
  await page.getByText("That is all.").waitFor();
  expect(await page.evaluate(() => scrollY)).toBe(0);
  expect(await node?.evaluate((element) => element.isConnected), "what is there stays there").toBe(true);
  model.ends();
  await expect.poll(() => status.innerText()).toBe("completed");
});

test("what is typed while a message is sent is not lost", async () => {
  const { page, text } = await user();
  let goOn = (): void => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  await page.route("**/prompt", async (route) => {
    await held;
    await route.continue();
  });
  await text.fill("first");
  const answered = page.waitForResponse("**/prompt");
  await text.press("Enter");
  await text.pressSequentially("second");
  goOn();
  await answered;
  await page.getByText("first").waitFor();
  expect(await text.inputValue()).toBe("second");
});

test("a reload in the middle of an answer shows the same, and goes on", async () => {
  const { page, model, text, status } = await user();
  await text.fill("go");
  await text.press("Enter");
  model.says("The first half");
  await page.getByText("The first half").waitFor();
  await page.reload();
  await page.getByText("The first half").waitFor();
  expect(await status.innerText()).toBe("Working…");
  model.says(", and the second <b>half</b>.");
  model.ends();
  await page.getByText("The first half, and the second <b>half</b>.", { exact: true }).waitFor();
});

test("is dark where the user wants it dark, and what scrolls can be reached by keyboard", async () => {
  const { page, model, text } = await user("dark");
  const colors = await page.evaluate(() => [document.body, document.querySelector("form")].map((it) => getComputedStyle(it as Element)));
  for (const { backgroundColor, color } of colors) {
    const [behind, letters] = [backgroundColor, color].map((value) => Number(/\d+/.exec(value)?.[0]));
    expect(behind).toBeLessThan(60);
    expect(letters).toBeGreaterThan(190);
  }
  expect(await page.getByRole("banner").getByRole("heading", { level: 1 }).count()).toBe(1);
  await text.fill("go");
  await text.press("Enter");
  model.calls("look");
  model.ends();
  await page.getByRole("button", { name: "Allow" }).click();
  await page.locator("pre").waitFor();
  expect(await page.locator("pre").getAttribute("tabindex")).toBe("0");
  expect(readFileSync(join(folder, "index.html"), "utf8")).not.toContain('aria-live="polite"');
});
