/**
 * The web chat in a browser, as a user has it before them. What the console reports as an error fails the test.
 * The page's clock moves only while a test waits for something: what has come stays until the test has looked at it.
 */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject } from "vitest";

/** Milliseconds of the page's time between two looks at it. */
const STEP_MS = 100;
const PATIENCE_MS = 20_000;
const NOON = Date.UTC(2026, 0, 1, 12);
/** More than the clock can have gone before it was stopped. */
const HOUR = 3_600_000;
const artefacts = fileURLToPath(new URL("../../test-artefacts/", import.meta.url));

export interface Chat {
  page: Page;
  message: Locator;
  conversation: Locator;
  /** Types a message and sends it with Enter. */
  say(text: string): Promise<void>;
  button(name: string | RegExp): Locator;
  /** The card of the nth call of a tool. */
  tool(label: string, nth?: number): Locator;
  useServer(url: string, key?: string): Promise<void>;
  /** The page's time goes on until this is visible. */
  shown(locator: Locator): Promise<void>;
  hidden(locator: Locator): Promise<void>;
  /** `expect.poll` while the page's time goes on. */
  poll<T>(look: () => Promise<T> | T): ReturnType<typeof expect.poll<T>>;
  /** The page's time goes on until the answer is complete. */
  settled(): Promise<void>;
  screenshot(name: string): Promise<void>;
  /** Errors that the test has caused on purpose. */
  allowErrors(pattern: RegExp): void;
}

/** A fresh page for each test of the file. */
export function useChat(options: BrowserContextOptions = {}): () => Chat {
  let browser: Browser;
  let chat: Chat;
  let errors: string[] = [];
  let allowed: RegExp | undefined;
  beforeAll(async () => {
    mkdirSync(artefacts, { recursive: true });
    browser = await chromium.connect(inject("browserUrl"));
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    errors = [];
    allowed = undefined;
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    page.on("console", (message) => void (message.type() === "error" && errors.push(message.text())));
    page.on("pageerror", (error) => void errors.push(String(error)));
    await page.clock.install({ time: NOON });
    await page.clock.pauseAt(NOON + HOUR);
    await page.goto(inject("pageUrl"));
    await page.clock.runFor(STEP_MS);
    chat = chatOn(page, (pattern) => {
      allowed = pattern;
    });
  });
  afterEach(async () => {
    await chat.page.context().close();
    expect(errors.filter((text) => !allowed?.test(text))).toEqual([]);
  });
  return () => chat;
}

function chatOn(page: Page, allowErrors: Chat["allowErrors"]): Chat {
  const message = page.getByRole("textbox", { name: "Message" });
  const button: Chat["button"] = (name) => page.getByRole("button", { name, exact: true });
  const poll: Chat["poll"] = (look) => {
    const lookAfterAStep = async () => {
      await page.clock.runFor(STEP_MS);
      return look();
    };
    return expect.poll(lookAfterAStep, { interval: 1, timeout: PATIENCE_MS });
  };
  const shown: Chat["shown"] = (locator) => poll(() => locator.isVisible()).toBe(true);
  const hidden: Chat["hidden"] = (locator) => poll(() => locator.isVisible()).toBe(false);
  return {
    page,
    poll,
    shown,
    hidden,
    message,
    button,
    allowErrors,
    conversation: page.getByRole("log", { name: "Conversation" }),
    tool: (label, nth = 0) => page.getByRole("group", { name: `Tool: ${label}` }).nth(nth),
    async say(text) {
      await message.fill(text);
      await message.press("Enter");
    },
    async useServer(url, key = "") {
      await page.getByRole("button", { name: /^Model: / }).click();
      const dialog = page.getByRole("dialog", { name: "Model" });
      await dialog.getByRole("textbox", { name: "Base URL" }).fill(url);
      await dialog.getByLabel("API key").fill(key);
      await dialog.getByRole("textbox", { name: "Model" }).fill("test-model");
      await dialog.getByRole("button", { name: "Use this server" }).click();
      await hidden(dialog);
    },
    settled: () => shown(button("Send")),
    async screenshot(name) {
      await page.clock.runFor(STEP_MS);
      await page.screenshot({ path: `${artefacts}${name}.png`, animations: "disabled" });
    },
  };
}
