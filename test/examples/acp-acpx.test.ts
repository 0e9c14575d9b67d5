import { describe, expect, test } from "vitest";
import { calls, chunk, sse, stop, text } from "../adapters/helpers.js";
import { agentAndServer, answerIn, framesOf, runAcpx } from "./acp.js";
import { cardsOf } from "./acp-cards.js";
import { workspaceOf } from "./helpers.js";

const { env, hold, answer, requests } = agentAndServer();

const json = ["--format", "json", "--json-strict"];
const workspace = (): string => workspaceOf({ "a.txt": "one\ntwo\n" });

// SPEC 10.2, 10.3, 10.5, 10.6
describe("acpx 0.1.15", () => {
  test("sees the wait with its beats, the call and the answer", async () => {
    const counting = calls({ index: 0, id: "c1", function: { name: "count_lines", arguments: '{"path":"a.txt"}' } });
    const held = hold(counting + sse(chunk({}, "tool_calls"), "[DONE]"));
    const { output, frame, finished } = runAcpx(workspace(), [...json, "--approve-all"], "count", env({ HEARTBEAT_MS: "20" }));
    await frame(() => cardsOf(framesOf(output.stdout))[0]?.titles[2]);
    void answer((response) => response.end(text("It has", " two lines.") + stop));
    await held.release();
    const { code, stdout, stderr } = await finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const wire = framesOf(stdout);
    const [wait, call, secondWait, ...others] = cardsOf(wire);
    expect(wait?.titles.slice(1, 3)).toEqual(Array(2).fill(expect.stringMatching(/^Thinking\.\.\. \(\d+s\)$/)));
    for (const card of [wait, secondWait]) {
      expect(card).toMatchObject({ kind: "think", text: "" });
      expect([card?.titles[0], card?.titles.at(-1)]).toEqual(["Thinking...", "Thinking..."]);
      expect([card?.statuses[0], card?.statuses.at(-1)]).toEqual(["in_progress", "completed"]);
    }
    expect([call, ...others]).toEqual([
      {
        id: "c1",
        kind: "read",
        titles: ["Count lines", "Count lines"],
        statuses: ["pending", "in_progress", "pending", "in_progress", "completed"], // asked for in the middle
        text: "a.txt: 2 lines, 8 bytes",
      },
    ]);
    expect({ answer: answerIn(wire), last: wire.at(-1)?.result }).toEqual({
      answer: "It has two lines.",
      last: { stopReason: "end_turn" },
    });
    expect(requests().map(({ body }) => body.messages.at(-1).content)).toEqual(["count", "a.txt: 2 lines, 8 bytes"]);
  });

  test("prints the answer and nothing else when it is to be quiet", async () => {
    const { finished } = runAcpx(workspace(), ["--format", "quiet", "--approve-all"], "how many lines has a.txt?");
    expect(await finished).toEqual({ code: 0, stdout: "a.txt has 2 lines (8 bytes).\n", stderr: "" });
  });

  test.each<[string, (pid: number) => number]>([
    ["SIGINT", (pid) => pid],
    ["Ctrl-C in a terminal, which the agent hears as well,", (pid) => -pid],
  ])("ends a run with cancelled after %s", async (_name, target) => {
    const held = hold(text("Hello") + stop);
    const { child, frame, finished } = runAcpx(workspace(), [...json, "--approve-all"], "hi", env());
    await frame(({ params }) => params?.update?.sessionUpdate === "tool_call");
    await held.asked;
    process.kill(target(child.pid as number), "SIGINT");
    const { code, stdout, stderr } = await finished;
    await held.closed;
    const wire = framesOf(stdout);
    expect([0, 130]).toContain(code); // acpx leaves by its signal or by the answer, whichever it hears of first
    expect({ stderr, results: wire.flatMap(({ result }) => result?.stopReason ?? []) }).toEqual({ stderr: "", results: ["cancelled"] });
    expect(cardsOf(wire)).toMatchObject([{ kind: "think", titles: ["Thinking...", "Stopped"], statuses: ["in_progress", "failed"] }]);
  });

  test("ends with the model's error", async () => {
    void answer((response) => response.writeHead(401).end('{"error":{"message":"no such key"}}'));
    const { finished } = runAcpx(workspace(), [...json, "--approve-all"], "hi", env());
    const { code, stdout, stderr } = await finished;
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(framesOf(stdout).find(({ error }) => error)?.error).toMatchObject({ code: -32603, message: "401 no such key" });
  });
});

// SPEC 10.4
describe("acpx 0.1.15 is asked before a file is looked at", () => {
  test("--approve-reads allows reading and searching", async () => {
    const { finished } = runAcpx(workspace(), [...json, "--approve-reads"], 'how many lines has a.txt, and where is "two" mentioned?');
    const { code, stdout, stderr } = await finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const wire = framesOf(stdout);
    expect(wire.flatMap(({ result }) => (result?.outcome ? [result.outcome.optionId] : []))).toEqual(["allow_once", "allow_once"]);
    const cards = cardsOf(wire).filter(({ kind }) => kind !== "think");
    expect(cards.map(({ kind, statuses }) => [kind, statuses[0], statuses.at(-1)])).toEqual([
      ["read", "pending", "completed"],
      ["search", "pending", "completed"],
    ]);
  });

  test("--deny-all is told to the model, and is exit code 5", async () => {
    const { finished } = runAcpx(workspace(), ["--format", "quiet", "--deny-all"], "how many lines has a.txt?");
    const stdout = "I could not count the lines of a.txt: The user did not allow this call.\n";
    expect(await finished).toEqual({ code: 5, stdout, stderr: "" });
  });
});
