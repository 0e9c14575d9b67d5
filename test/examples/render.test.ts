import { Writable } from "node:stream";
import { type AgentEvent, type AgentTool, runAgentLoop, userMessage } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, test } from "vitest";
import { Renderer } from "../../examples/render.js";
import { MODEL } from "./helpers.js";

class Collected extends Writable {
  text = "";

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** A clock that goes on by 100 ms whenever it is read. */
function steppingClock(): () => number {
  let time = 0;
  return () => {
    time += 100;
    return time;
  };
}

const look: AgentTool = {
  name: "look",
  description: "",
  parameters: {},
  execute(_id, { fail }, _signal, onUpdate) {
    onUpdate({ content: [{ type: "text", text: "half way" }] });
    if (fail) throw new Error("not there");
    return "found\nmore";
  },
};

const ANSWERS: ScriptedAnswer[] = [
  [
    { thinking: "Let me look." },
    { text: "Looking." },
    { toolCall: "look", args: { path: "a" } },
    { toolCall: "look", args: { fail: true } },
  ],
  "It is there.",
];

async function run(answers: ScriptedAnswer[], renderer: Pick<Renderer, "show">, signal?: AbortSignal): Promise<void> {
  const context = { systemPrompt: "", messages: [], tools: [look] };
  await runAgentLoop(
    [userMessage("Is it there?")],
    context,
    { model: MODEL },
    (event) => renderer.show(event),
    signal,
    scriptedModel(answers),
  );
}

describe("apart", () => {
  test("the answer alone on one stream, everything else on the other, without colours", async () => {
    const [answer, activity] = [new Collected(), new Collected()];
    await run(ANSWERS, new Renderer({ answer, activity, terminal: false, colours: false, now: steppingClock() }));
    expect(answer.text).toBe("Looking.\nIt is there.\n");
    expect(activity.text).toBe(
      [
        "Let me look.",
        '→ look path: "a"',
        "→ look fail: true",
        "… look: half way",
        "✓ look: found (200 ms)",
        "… look: half way",
        "✗ look failed: not there (200 ms)",
        "500 ms, 2 turns, 2 tool calls\n",
      ].join("\n"),
    );
  });

  test("a failed run and a stopped run", async () => {
    const [answer, activity] = [new Collected(), new Collected()];
    const render = new Renderer({ answer, activity, terminal: false, colours: false, now: steppingClock() });
    await run([{ content: ["Half an"], errorMessage: "no more" }], render);
    await run(["Never said."], render, AbortSignal.abort("enough"));
    expect(answer.text).toBe("Half an\n");
    expect(activity.text).toBe("error: no more\nstopped\n100 ms, 1 turn, 0 tool calls\n");
  });

  test("a failure is one line, in the words of the host", async () => {
    const activity = new Collected();
    const explain = ({ message }: { message: string }): string => `Sorry:\n${message}\x1b[2J\n${"x".repeat(500)}`;
    const renderer = new Renderer({ answer: activity, activity, terminal: true, colours: false, explain });
    await run([{ content: [], errorMessage: "a\nb" }], renderer);
    expect(activity.text).toMatch(/^error: Sorry: a b�\[2J x+…\n$/);
    expect(activity.text.length).toBeLessThan(320);
  });

  test("a notice begins a line of its own, also inside an answer", async () => {
    const screen = new Collected();
    const renderer = new Renderer({ answer: screen, activity: screen, terminal: true, colours: false });
    const show = (event: AgentEvent): void => {
      renderer.show(event);
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") renderer.notice("by the way");
    };
    await run(["Whole."], { show });
    expect(screen.text).toMatch(/^\nWhole\.\nby the way\n/);
  });

  test("an answer that does not stream is shown", async () => {
    const answer = new Collected();
    const render = new Renderer({ answer, activity: new Collected(), terminal: false, colours: false });
    const show = (event: AgentEvent): void => {
      if (event.type !== "message_update") render.show(event);
    };
    await run(["All at once."], { show });
    expect(answer.text).toBe("All at once.\n");
  });

  test("long arguments and results are shortened", async () => {
    const activity = new Collected();
    const long = "x".repeat(500);
    const render = new Renderer({ answer: new Collected(), activity, terminal: false, colours: false });
    await run([[{ toolCall: "look", args: { path: long } }, { toolCall: long }], "Done."], render);
    for (const line of activity.text.split("\n").filter((text) => !text.startsWith("→ xxx"))) expect(line.length).toBeLessThan(120);
  });
});

describe("in a terminal", () => {
  test("colours, a blank line around the answer, progress that is written over", async () => {
    const screen = new Collected();
    await run(ANSWERS, new Renderer({ answer: screen, activity: screen, terminal: true, colours: true, now: steppingClock() }));
    expect(screen.text.replaceAll("\x1b", "ESC")).toBe(
      [
        "ESC[2mLet me look.ESC[0m",
        "",
        "Looking.",
        '→ ESC[36mlookESC[0m path: "a"',
        "→ ESC[36mlookESC[0m fail: true",
        "\rESC[KESC[2m… look: half wayESC[0m\rESC[KESC[32m✓ESC[0m look: found ESC[2m(200 ms)ESC[0m",
        "\rESC[KESC[2m… look: half wayESC[0m\rESC[KESC[31m✗ESC[0m look failed: not there ESC[2m(200 ms)ESC[0m",
        "",
        "It is there.",
        "",
        "ESC[2m500 ms, 2 turns, 2 tool callsESC[0m\n",
      ].join("\n"),
    );
  });

  test("what was read cannot steer the terminal, with or without colours", async () => {
    for (const colours of [true, false]) {
      const screen = new Collected();
      const answers = [[{ thinking: "\x1b[2J" }, { toolCall: "\x1b[2J", args: { path: "\u009b2J" } }], "red: \x1b[31m\ttab\n"];
      await run(answers, new Renderer({ answer: screen, activity: screen, terminal: true, colours }));
      expect(screen.text).toContain("red: �[31m\ttab\n");
      expect(screen.text).toContain('path: "�2J"');
      expect(screen.text).not.toContain("\x1b[2J");
    }
  });

  test("without colours progress has lines of its own", async () => {
    const screen = new Collected();
    await run(ANSWERS, new Renderer({ answer: screen, activity: screen, terminal: true, colours: false, now: steppingClock() }));
    expect(screen.text).toContain("\n… look: half way\n✓ look: found (200 ms)\n");
    expect(screen.text).not.toContain("\x1b");
  });
});
