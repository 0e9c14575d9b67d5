import { describe, expect, test } from "vitest";
import { useChat } from "./page.js";

const chat = useChat();

// SPEC 15.1 4.6
describe("an answer of the offline model", () => {
  test("shows its thoughts and its text", async () => {
    const { page, say, conversation, settled, screenshot, shown } = chat();
    await say("list files in notes");
    const answer = conversation.getByRole("article", { name: "Assistant" });
    await shown(answer.last().getByText("In notes: 2 files"));
    await settled();
    expect(await page.getByRole("timer").count()).toBe(0);
    expect(await answer.last().innerText()).toContain("- notes/ideas.md (233 bytes)\n- notes/meeting.md (336 bytes)");
    expect(await answer.first().getByText("Plan: list").isVisible(), "thoughts close when the answer goes on").toBe(false);
    await answer.first().getByText("Thought", { exact: true }).click();
    await shown(answer.first().getByText("Plan: list the files in notes. Next: list_files."));
    await screenshot("answer-text-and-thinking");
  });

  test("shows what its tools do, side by side, how far they are and what came out", async () => {
    const { page, say, tool, settled, screenshot, shown, poll } = chat();
    await say("proofread notes/meeting.md and texts/storm.md");
    const bars = page.getByRole("progressbar", { name: "Proofread progress" });
    await poll(() => bars.count()).toBe(2);
    await poll(() => tool("Proofread", 0).innerText()).toMatch(
      /path: notes\/meeting\.md\s+Running\s+\d\.\d s\s+line [3-9] of 12, 0 findings/,
    );
    await poll(() => tool("Proofread", 1).innerText()).toMatch(/Done/);
    expect(await tool("Proofread", 0).innerText(), "the slower one goes on").toMatch(/Running/);
    await screenshot("answer-tools-in-parallel");
    await settled();
    expect(await bars.count()).toBe(0);
    const slow = tool("Proofread", 0);
    expect(await slow.innerText()).toMatch(/Done\s+[1-9]\.\d s\s+notes\/meeting\.md: 1 finding in 12 lines/);
    await slow.getByText("notes/meeting.md: 1 finding in 12 lines").click();
    await shown(slow.getByText('line 6 "the the" is there twice'));
    expect(await tool("Proofread", 1).innerText()).toMatch(/texts\/storm\.md: 0 findings in 4 lines/);
  });

  test("shows a tool that fails, and why", async () => {
    const { say, tool, settled, conversation, shown } = chat();
    await say("show missing.md");
    await settled();
    expect(await tool("Read file").innerText()).toMatch(/Failed[\s\S]*"missing\.md" does not exist in the workspace\./);
    await shown(conversation.getByText('I could not read missing.md: "missing.md" does not exist'));
  });

  test("shows the image a tool made", async () => {
    const { say, tool, settled, screenshot, poll } = chat();
    await say("draw a chart of data/visitors.csv");
    await settled();
    const image = tool("Draw chart").getByRole("img", { name: "Result of Draw chart" });
    await poll(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBe(1280);
    await screenshot("answer-image-out");
  });

  test("shows what each turn took, in words", async () => {
    const { page, say, settled } = chat();
    const rows = page.getByRole("table", { name: "Usage by turn" }).getByRole("row");
    await say("what is 6 * 7?");
    await settled();
    const [first, second, all] = (await rows.allInnerTexts()).slice(1).map((row) => row.split(/\s+/).slice(1, 3).map(Number));
    expect([first?.[0], second?.[0]].every((input) => Number(input) > 5)).toBe(true);
    expect(second?.[0], "the second request holds the call's result too").toBeGreaterThan(first?.[0] as number);
    expect(all).toEqual([0, 1].map((column) => (first?.[column] as number) + (second?.[column] as number)));
  });

  test("shows when what happened", async () => {
    const { page, say, settled, screenshot, shown } = chat();
    const timeline = page.getByRole("list", { name: "Timeline" });
    const bars = (): Promise<string[]> =>
      timeline
        .getByRole("listitem")
        .evaluateAll((items) => items.map((item) => item.getAttribute("aria-label")?.replace(/\d+\.\d s/, "n s") ?? ""));
    await shown(page.getByText("Nothing has run yet."));
    await say("proofread texts/storm.md and README.md");
    await shown(timeline.getByRole("listitem", { name: /^Proofread README\.md, .* so far$/ }));
    await screenshot("timeline-running");
    await settled();
    const turn = ["Waiting for the model, n s", "Model answers, n s"];
    expect((await bars()).sort()).toEqual(
      ["Turn 1, n s", "Turn 2, n s", ...turn, ...turn, "Proofread texts/storm.md, n s", "Proofread README.md, n s"].sort(),
    );
    const boxes = await Promise.all(
      ["texts/storm.md", "README.md"].map((path) => timeline.getByRole("listitem", { name: path }).boundingBox()),
    );
    expect(boxes[0]?.x, "they begin together").toBeCloseTo(boxes[1]?.x as number, 0);
    expect(boxes[0]?.y, "each in a lane of its own").toBeLessThan(boxes[1]?.y as number);
    await say("what is 1 + 1?");
    await settled();
    expect(await bars(), "a new run begins a new timeline").toContain("Calculate, n s");
    expect(await bars()).not.toContain("Proofread README.md, n s");
  });
});
