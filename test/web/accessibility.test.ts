import { describe, expect, test } from "vitest";
import { text } from "../adapters/helpers.js";
import { callsOf, endpoint, stopWith } from "./endpoint.js";
import { type Chat, useChat } from "./page.js";

const chat = useChat();

/** What has the focus, as a screen reader names it. */
function focused({ page }: Chat): Promise<string> {
  return page.evaluate(() => {
    const element = document.activeElement as HTMLElement;
    return (
      element.getAttribute("aria-label") ?? (element as HTMLInputElement).labels?.[0]?.textContent ?? element.textContent?.trim() ?? ""
    );
  });
}

/** Presses Tab until that has the focus. */
async function tabTo(current: Chat, name: string | RegExp, key = "Tab"): Promise<void> {
  const passed: string[] = [];
  for (let presses = 0; presses < 25; presses++) {
    await current.page.keyboard.press(key);
    passed.push(await focused(current));
    if (typeof name === "string" ? passed.at(-1) === name : name.test(passed.at(-1) as string)) return;
  }
  throw new Error(`"${name}" was not reached by ${key}: ${passed.join(" > ")}`);
}

test("everything can be done by keyboard", async () => {
  const current = chat();
  const { page, conversation, settled, tool, button, shown, poll } = current;
  const { keyboard } = page;
  expect(await focused(current), "one can write at once").toBe("Message");
  await keyboard.type('write "Sweep" to notes/b.md');
  await keyboard.press("Shift+Enter");
  await keyboard.type("what is 1 + 1?");
  await keyboard.press("Enter");
  // an approval: the focus goes to its title, is kept in the dialog, and comes back
  const dialog = page.getByRole("dialog", { name: "Write file?" });
  await shown(dialog);
  await tabTo(current, "text");
  await keyboard.press("End");
  await keyboard.type(" twice");
  await tabTo(current, "Allow");
  await keyboard.press("Enter");
  await settled();
  await poll(() => focused(current)).toBe("Message");
  expect(await tool("Write file").innerText()).toContain("Sweep twice");
  await shown(conversation.getByText("1 + 1 = 2").last());
  // steering, a follow-up that is taken back, a stop
  await keyboard.type("proofread notes/meeting.md");
  await keyboard.press("Enter");
  await shown(tool("Proofread").getByRole("progressbar"));
  await keyboard.type("what is 2 + 2?");
  await keyboard.press("Control+Enter");
  await shown(button("Take back: what is 2 + 2?"));
  await tabTo(current, "Take back: what is 2 + 2?", "Shift+Tab");
  await keyboard.press("Enter");
  await poll(() => focused(current)).toBe("Message");
  await keyboard.press("Escape");
  await shown(button("Try again"));
  await tabTo(current, "Try again", "Shift+Tab");
  await keyboard.press("Enter");
  await settled();
  await poll(() => focused(current)).toBe("Message");
  // the conversation scrolls, thoughts open
  await tabTo(current, "Thought", "Shift+Tab");
  await keyboard.press("Enter");
  await tabTo(current, "Conversation", "Shift+Tab");
  await keyboard.press("Home");
  // the model's form
  await tabTo(current, /^Model: /, "Shift+Tab");
  await keyboard.press("Enter");
  await poll(() => focused(current)).toBe("Base URL");
  await keyboard.press("Escape");
  await poll(() => focused(current)).toMatch(/^Model: /);
});

test("the page has its landmarks, each control its name, and its headings skip no level", async () => {
  const { page, say, settled } = chat();
  for (const role of ["banner", "main", "complementary"] as const) expect(await page.getByRole(role).count(), role).toBe(1);
  expect(await page.getByRole("heading", { level: 1 }).allInnerTexts()).toEqual(["turnloop"]);
  expect(await page.getByRole("button").evaluateAll((all) => all.filter((one) => !one.textContent && !one.ariaLabel).length)).toBe(0);
  expect(await page.locator("main").ariaSnapshot()).toContain('- form "Message"');
  await say("what is 1 + 1?");
  await settled();
  const headings = page.getByRole("heading");
  expect(await headings.evaluateAll((all) => all.map(({ tagName, textContent }) => `${tagName} ${textContent}`))).toEqual([
    "H1 turnloop",
    "H2 You",
    "H2 Assistant",
    "H2 Assistant",
    "H2 Last run",
  ]);
});

test("a screen reader hears what happens, and not every word", async () => {
  const { page, say, settled, conversation, poll } = chat();
  const heard: string[] = [];
  await page.exposeFunction("hear", (words: string) => void heard.push(words));
  await page.evaluate(() => {
    const announcer = document.querySelector("[role=status]") as HTMLElement;
    new MutationObserver(() => (window as any).hear(announcer.textContent)).observe(announcer, {
      childList: true,
      characterData: true,
      subtree: true,
    });
  });
  expect(await conversation.getAttribute("aria-live")).toBe("off");
  await say("list files in notes");
  await settled();
  await poll(() => heard).toEqual(["Working on it.", "The answer is complete."]);
});

// SPEC 5.7 14.1
describe("what a model writes", () => {
  test("breaks no card and no table, however long it is", async () => {
    const { page, say, settled, useServer, tool } = chat();
    const server = await endpoint();
    const name = "no_such_tool_".repeat(40);
    server.answer(
      (res) => void res.end(callsOf([name, { path: "x".repeat(500) }]) + stopWith(1e30, 7)),
      (res) => void res.end(text("y".repeat(5000)) + stopWith(1, 1)),
    );
    await useServer(server.url);
    await say("hi");
    await settled();
    expect(
      await tool(name)
        .getByText("Failed")
        .evaluate((element) => {
          const [own, card] = [element.getBoundingClientRect(), (element.closest(".tool") as Element).getBoundingClientRect()];
          return own.right <= card.right;
        }),
    ).toBe(true);
    const wide = await page.evaluate(() =>
      [...document.querySelectorAll("body, main, aside, #scroller")].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
    );
    expect(wide).toEqual([]);
    await server.close();
  });

  test("is text and never markup", async () => {
    const { page, say, settled, conversation, useServer, shown } = chat();
    const server = await endpoint();
    const markup = '<img src=x onerror="document.title=1"> <b>bold</b> &amp; # heading';
    server.answer((res) => void res.end(text(markup) + stopWith(1, 1)));
    await useServer(server.url);
    await say("hi");
    await settled();
    await shown(conversation.getByText(markup, { exact: true }));
    expect(await conversation.locator("b, img").count()).toBe(0);
    expect(await page.title()).toBe("turnloop chat");
    await server.close();
  });
});

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  const chatIn = useChat({ colorScheme });

  test("texts stand out from what is behind them", async () => {
    const { page, say, settled, button, shown } = chatIn();
    await say("show missing.md");
    await settled();
    await say("proofread README.md");
    await shown(button("Stop"));
    const weak = await page.evaluate(() => {
      const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D;
      const luminance = (color: string): number => {
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const linear = [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((part) => {
          const share = part / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        }) as [number, number, number];
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
      };
      const background = (element: Element | null): string => {
        for (let at = element; at; at = at.parentElement) {
          const { backgroundColor } = getComputedStyle(at);
          if (backgroundColor !== "rgba(0, 0, 0, 0)") return backgroundColor;
        }
        return "white";
      };
      const found: string[] = [];
      for (const element of document.querySelectorAll<HTMLElement>("body *:not(svg *, script)")) {
        const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim());
        if (!own || !element.checkVisibility()) continue;
        const [light, dark] = [luminance(getComputedStyle(element).color), luminance(background(element))].sort((a, b) => b - a) as [
          number,
          number,
        ];
        const contrast = (light + 0.05) / (dark + 0.05);
        if (contrast < 4.5) found.push(`${contrast.toFixed(2)}: ${element.textContent?.trim().slice(0, 40)}`);
      }
      return found;
    });
    expect(weak).toEqual([]);
  });
});
