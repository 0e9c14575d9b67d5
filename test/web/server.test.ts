import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { text } from "../adapters/helpers.js";
import { deferred } from "../helpers.js";
import { callsOf, type Endpoint, endpoint, failWith, reasoning, stopWith } from "./endpoint.js";
import { useChat } from "./page.js";

const chat = useChat();
let server: Endpoint;
beforeEach(async () => {
  server = await endpoint();
  await chat().useServer(server.url, "key-of-the-user");
});
afterEach(() => server.close());

// SPEC 12.1 12.2
describe("a server", () => {
  test("is named in the page, gets the key, and the key stays in memory", async () => {
    const { page, say, settled, shown } = chat();
    const { host } = new URL(server.url);
    await shown(page.getByRole("button", { name: `Model: test-model, ${host}. Change` }));
    server.answer((res) => void res.end(text("Hello", " there") + stopWith(10, 2)));
    await say("hi");
    await settled();
    expect(server.requests[0]?.headers["authorization"]).toBe("Bearer key-of-the-user");
    expect(server.requests[0]?.body).toMatchObject({ model: "test-model", stream: true });
    expect(server.requests[0]?.body.tools).toHaveLength(9);
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
    expect(stored).toBe('[{},{},""]');
  });

  // SPEC 9.2 9.3
  test("that is slow is waited for with a clock, until its first word", async () => {
    const { page, say, settled, conversation, screenshot, shown, poll } = chat();
    const [speaks, ends] = [deferred(), deferred()];
    server.answer(async (res) => {
      res.flushHeaders();
      await speaks.promise;
      res.write(text("At last"));
      await ends.promise;
      res.end(text("."));
    });
    await say("hi");
    const clock = page.getByRole("group", { name: "Thinking" }).getByRole("timer", { name: "Waiting time" });
    await poll(() => clock.innerText()).toBe("0 s");
    await poll(() => clock.innerText()).toBe("2 s");
    await screenshot("waiting-for-a-server");
    speaks.resolve();
    await shown(conversation.getByText("At last"));
    expect(await clock.isVisible()).toBe(false);
    ends.resolve();
    await shown(page.getByRole("button", { name: "Try again" })); // the body ended without a finish reason
    await settled();
  });

  test("that streams is read as it writes: thoughts, and then the answer", async () => {
    const { page, say, settled, conversation, shown } = chat();
    const steps = [deferred(), deferred(), deferred()] as const;
    server.answer(async (res) => {
      res.write(reasoning("Let me see"));
      await steps[0].promise;
      res.write(reasoning(", a greeting."));
      await steps[1].promise;
      res.write(text("Good "));
      await steps[2].promise;
      res.end(text("morning!") + stopWith(3, 3));
    });
    await say("hi");
    const answer = conversation.getByRole("article", { name: "Assistant" });
    await shown(answer.getByText("Thinking", { exact: true }));
    await shown(answer.getByText("Let me see", { exact: true }));
    expect(await page.getByRole("timer").count(), "there is something to read: no more waiting").toBe(0);
    steps[0].resolve();
    await shown(answer.getByText("Let me see, a greeting.", { exact: true }));
    steps[1].resolve();
    await shown(answer.getByText("Good", { exact: true }));
    expect(await answer.getByText("Let me see").isVisible(), "a thought closes when it is thought").toBe(false);
    const node = await answer.getByText("Good", { exact: true }).evaluateHandle((element) => element.firstChild);
    steps[2].resolve();
    await shown(answer.getByText("Good morning!", { exact: true }));
    await settled();
    expect(await node.evaluate((grown) => grown?.isConnected && grown.textContent), "the text grows in place").toBe("Good morning!");
  });

  test("that thinks shows its reasoning, calls tools side by side, and reports what each turn cost", async () => {
    const { page, say, tool, settled, conversation, screenshot, shown } = chat();
    server.answer(
      (res) =>
        void res.end(
          reasoning("Two sums, ") +
            reasoning("at once.") +
            callsOf(["calculate", { expression: "6 * 7" }], ["count_lines", { path: "README.md" }]) +
            stopWith(1200, 80),
        ),
      (res) => void res.end(text("42 and 9.") + stopWith(1300, 6)),
    );
    await say("6 * 7, and the lines of README.md?");
    await shown(conversation.getByText("42 and 9."));
    await settled();
    await conversation.getByText("Thought", { exact: true }).click();
    await shown(conversation.getByText("Two sums, at once."));
    expect(await tool("Calculate").innerText()).toMatch(/Done[\s\S]*6 \* 7 = 42/);
    expect(await tool("Count lines").innerText()).toMatch(/README\.md: 9 lines/);
    const table = page.getByRole("table", { name: "Usage by turn" });
    expect((await table.getByRole("row").allInnerTexts()).map((row) => row.replace(/\s+/g, " "))).toEqual([
      "Turn Input Output Cost",
      "1 1,200 80 –",
      "2 1,300 6 –",
      "All 2,500 86 –",
    ]);
    await shown(conversation.getByText("1,300 in · 6 out"));
    expect(server.requests[1]?.body.messages.slice(-2)).toMatchObject([{ role: "tool", content: "6 * 7 = 42" }, { role: "tool" }]);
    await screenshot("server-thinking-tools-usage");
  });

  test("gets the ids it gave, also when it gives them again: each result stands on its own card", async () => {
    const { say, tool, settled } = chat();
    const sum = (expression: string) => callsOf(["calculate", { expression }]) + stopWith(1, 1);
    server.answer(
      (res) => void res.end(sum("1 + 1")),
      (res) => void res.end(sum("2 + 2")),
      (res) => void res.end(text("Done.") + stopWith(1, 1)),
    );
    await say("count");
    await settled();
    expect(await tool("Calculate", 0).innerText()).toMatch(/1 \+ 1 = 2$/);
    expect(await tool("Calculate", 1).innerText()).toMatch(/2 \+ 2 = 4$/);
  });
});

// SPEC 8.1 11.1
describe("a failure", () => {
  test("is told, and tried again by hand; the failed answer is gone from the conversation and the request", async () => {
    const { page, say, button, conversation, settled, screenshot, allowErrors, shown } = chat();
    allowErrors(/status of 401/);
    server.answer(failWith(401, "Incorrect API key provided"), (res) => void res.end(text("Now it works.") + stopWith(5, 3)));
    await say("hi");
    const alert = page.getByRole("alert");
    await shown(alert.getByText("The server refused the key."));
    expect(await alert.innerText()).toMatch(/Incorrect API key provided/);
    await screenshot("failed");
    await button("Try again").click();
    await shown(conversation.getByText("Now it works."));
    await settled();
    expect(await alert.count()).toBe(0);
    expect(await conversation.getByRole("article", { name: "Assistant" }).count()).toBe(1);
    expect(server.requests[1]?.body.messages).toEqual(server.requests[0]?.body.messages);
  });

  test("that passes is tried again by itself, and the wait says so; with the answer that is over", async () => {
    const { page, say, conversation, allowErrors, settled, shown, tool } = chat();
    const { promise: answers, resolve } = deferred();
    allowErrors(/status of 429/);
    server.answer(
      (res) => void res.writeHead(429, { "content-type": "application/json", "retry-after": "1" }).end('{"error":{"message":"slow down"}}'),
      (res) => void res.end(callsOf(["calculate", { expression: "6 * 7" }]) + stopWith(5, 3)),
      async (res) => {
        await answers;
        res.end(text("Thanks for waiting.") + stopWith(5, 3));
      },
    );
    await say("hi");
    await shown(page.getByRole("group", { name: "Thinking" }).getByText("Rate limit (429); trying again in 1.0 s"));
    await shown(tool("Calculate").getByText("6 * 7 = 42"));
    await shown(page.getByRole("group", { name: "Thinking" }));
    expect(await page.getByText("trying again").count(), "the next request is another one").toBe(0);
    resolve();
    await shown(conversation.getByText("Thanks for waiting."));
    await settled();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  test.each(["javascript:alert(1)", "localhost:11434/v1", "ftp://127.0.0.1/v1"])(
    "of the form: %s is no address of a server",
    async (url) => {
      const { page } = chat();
      await page.getByRole("button", { name: /^Model: / }).click();
      const dialog = page.getByRole("dialog", { name: "Model" });
      const address = dialog.getByRole("textbox", { name: "Base URL" });
      await address.fill(url);
      await dialog.getByRole("button", { name: "Use this server" }).click();
      expect(await dialog.isVisible()).toBe(true);
      expect(await address.evaluate((input: HTMLInputElement) => input === document.activeElement && input.validity.valid)).toBe(false);
      await dialog.getByRole("button", { name: "Cancel" }).click();
    },
  );

  test("of the address says what may be wrong with it", async () => {
    const { page, say, useServer, allowErrors, shown } = chat();
    allowErrors(/ERR_CONNECTION_REFUSED|Failed to load/);
    await server.close();
    await useServer(server.url);
    await say("hi");
    await shown(page.getByRole("alert").getByText("No answer came. Is the address right, and does the server let this page in (CORS)?"));
  });

  test("half way keeps what came", async () => {
    const { page, say, conversation, screenshot, shown } = chat();
    const { promise: breaks, resolve } = deferred();
    server.answer(async (res) => {
      res.write(text("The first half"));
      await breaks;
      res.destroy();
    });
    chat().allowErrors(/ERR_INCOMPLETE_CHUNKED_ENCODING|Failed to load/);
    await say("hi");
    await shown(conversation.getByText("The first half"));
    resolve();
    await shown(page.getByRole("alert").getByText("The answer broke off."));
    expect(await page.getByRole("alert").innerText(), "it was reached").not.toContain("CORS");
    expect(await conversation.getByText("The first half").isVisible()).toBe(true);
    await screenshot("failed-half-way");
  });
});

// SPEC 7.3 12.2
test("stop cancels the request", async () => {
  const { say, button, conversation, shown } = chat();
  const { promise: closed, resolve } = deferred();
  server.answer((res) => {
    res.write(text("I go on "));
    res.on("close", resolve);
  });
  await say("hi");
  await shown(conversation.getByText("I go on"));
  await button("Stop").click();
  await closed;
  await shown(conversation.getByText("You stopped this answer."));
});
