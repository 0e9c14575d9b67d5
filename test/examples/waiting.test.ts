/** How the demo shows the wait for a model. */
import { Writable } from "node:stream";
import { Agent, type AgentTool } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Renderer } from "../../examples/render.js";
import { ERASE_LINE } from "../../examples/wording.js";
import { MODEL } from "./helpers.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"] });
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const COLOUR = new RegExp(`${"\x1b"}\\[\\d+m`, "g");
const look: AgentTool = { name: "look", description: "", parameters: {}, execute: () => "found" };
const late = (delayMs: number, content: (string | { toolCall: string })[], more: object = {}): ScriptedAnswer => ({
  content,
  delayMs,
  ...more,
});

function collector() {
  const chunks: string[] = [];
  const stream = new Writable({ decodeStrings: false, write: (chunk, _encoding, next) => next(void chunks.push(chunk)) });
  /** What came since it was last asked for. */
  return { stream, taken: (): string => chunks.splice(0).join("") };
}

/** A run of these answers, and what is on the screen: ESC[2m and so on left out, ⌫ where the line is written over. */
function shownOf(answers: ScriptedAnswer[], { colours = true, apart = false } = {}) {
  const [screen, answer] = [collector(), collector()];
  const streams = { answer: apart ? answer.stream : screen.stream, activity: screen.stream };
  const renderer = new Renderer({ ...streams, terminal: !apart, colours, now: () => 0 });
  const agent = new Agent({ model: MODEL, streamFn: scriptedModel(answers), tools: [look], thinking: renderer.waits });
  agent.subscribe((event) => renderer.show(event));
  const running = agent.prompt("go");
  return {
    agent,
    renderer,
    /** What came within so much time. */
    async within(ms: number): Promise<string> {
      await vi.advanceTimersByTimeAsync(ms);
      return screen.taken().replaceAll(ERASE_LINE, "⌫").replaceAll(COLOUR, "");
    },
    answered: answer.taken,
    running,
  };
}

describe("on a line that can be written over", () => {
  test("the wait counts its seconds, and is gone with the first delta", async () => {
    const { within, running } = shownOf([late(3500, ["Hello."])]);
    expect(await within(299)).toBe("");
    expect(await within(1)).toBe("⌫Thinking...");
    expect(await within(2700)).toBe("⌫Thinking... (1s)⌫Thinking... (2s)⌫Thinking... (3s)");
    expect(await within(500)).toBe("⌫\nHello.\n\n0 ms, 1 turn, 0 tool calls\n");
    await running;
  });

  test("fast answers show nothing", async () => {
    const { within } = shownOf([late(299, [{ toolCall: "look" }]), late(299, ["Hello."])]);
    expect(await within(600)).toBe("→ look \n✓ look: found (0 ms)\n\nHello.\n\n0 ms, 2 turns, 1 tool call\n");
  });

  test("the second call of a run is waited for like the first", async () => {
    const { within } = shownOf([late(400, [{ toolCall: "look" }]), late(1100, ["Hello."])]);
    expect(await within(400)).toBe("⌫Thinking...⌫→ look \n✓ look: found (0 ms)\n");
    expect(await within(1100)).toBe("⌫Thinking...⌫Thinking... (1s)⌫\nHello.\n\n0 ms, 2 turns, 1 tool call\n");
  });

  test("a notice in between stays; the wait goes on below it", async () => {
    const { within, renderer } = shownOf([late(1500, ["Hello."])]);
    await within(400);
    renderer.notice("… retry 1 in 0.5 s: rate limit (429)");
    expect(await within(700)).toBe("⌫… retry 1 in 0.5 s: rate limit (429)\n⌫Thinking... (1s)");
    expect(await within(400)).toMatch(/^⌫\nHello\./);
  });

  test("a failure and a stop remove it too", async () => {
    const failed = shownOf([late(400, [], { errorMessage: "no more" })]);
    expect(await failed.within(400)).toBe("⌫Thinking...⌫error: no more\n");
    const stopped = shownOf([late(5000, ["never"])]);
    await stopped.within(400);
    stopped.agent.abort();
    expect(await stopped.within(0)).toBe("⌫stopped\n0 ms, 1 turn, 0 tool calls\n");
  });

  test("after ten minutes it counts no further: that may be a hang", async () => {
    const { within, agent } = shownOf([late(3_600_000, ["never"])]);
    expect((await within(3_000_000)).slice(-20)).toBe("⌫Thinking... (600s)".padStart(20, ")"));
    agent.abort();
    await within(0);
  });
});

describe("where each line stays", () => {
  test.each([false, true])("a wait is one line, after 3 s, and another each 30 s; answers apart: %s", async (apart) => {
    const { within, answered } = shownOf([late(2999, [{ toolCall: "look" }]), late(61_000, ["Hello."])], { colours: false, apart });
    expect(await within(2999)).toBe("→ look \n✓ look: found (0 ms)\n");
    expect(await within(60_500)).toBe("Thinking...\nThinking... (30s)\nThinking... (60s)\n");
    const shown = await within(500);
    const total = "0 ms, 2 turns, 1 tool call\n";
    expect([shown, answered()]).toEqual(apart ? [total, "Hello.\n"] : [`\nHello.\n\n${total}`, ""]);
  });
});
