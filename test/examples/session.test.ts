import { Writable } from "node:stream";
import { Agent, type AgentTool } from "turnloop";
import { type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { describe, expect, test } from "vitest";
import { Renderer } from "../../examples/render.js";
import { COMMANDS, Session } from "../../examples/session.js";
import { deferred, textOf } from "../helpers.js";
import { MODEL } from "./helpers.js";

/** A session on a scripted model with the tools "look", which answers when it may, and "other". */
function sessionWith(answers: ScriptedAnswer[], { canSwitchModel = true } = {}) {
  let shown = "";
  const screen = new Writable({
    write(chunk, _encoding, done) {
      shown += chunk;
      done();
    },
  });
  const [lookStarted, mayEnd] = [deferred(), deferred()];
  const tools: AgentTool[] = ["look", "other"].map((name) => ({
    name,
    description: `Does ${name}`,
    parameters: {},
    execute: () => "seen",
  }));
  tools[0]!.execute = (_id, _args, signal) => {
    lookStarted.resolve();
    return Promise.race([mayEnd.promise, new Promise((resolve) => signal.addEventListener("abort", resolve))]).then(() => "seen");
  };
  const scripted = scriptedModel(answers);
  const models: string[] = [];
  const agent = new Agent({
    model: MODEL,
    tools,
    streamFn: (model, context, options) => {
      models.push(model.id);
      return scripted(model, context, options);
    },
  });
  const renderer = new Renderer({ answer: screen, activity: screen, terminal: true, colours: false, now: () => 0 });
  let quits = 0;
  const onQuit = (): void => void quits++;
  return {
    agent,
    session: new Session(agent, renderer, { canSwitchModel, onQuit }),
    models,
    lookStarted: lookStarted.promise,
    endLook: () => mayEnd.resolve(),
    quits: () => quits,
    requests: () => scripted.requests.map(({ messages }) => messages.map(textOf)),
    toolsAsked: () => scripted.requests.map((request) => request.tools?.map(({ name }) => name)),
    /** What was shown since it was last asked for. */
    shown: () => {
      const text = shown;
      shown = "";
      return text;
    },
  };
}

const LOOK: ScriptedAnswer = [{ toolCall: "look" }];

describe("while a tool runs", () => {
  test("a line steers, /later waits for the answer; both are shown when queued and when delivered", async () => {
    const { session, lookStarted, endLook, requests, shown } = sessionWith([LOOK, "steered", "followed"]);
    const running = session.enter("go");
    await lookStarted;
    shown();
    expect(await session.enter("/later and\n then?")).toBeUndefined();
    expect(await session.enter(" more, please ")).toBeUndefined();
    expect(shown()).toBe("» queued for later: and then?\n» queued for the next turn: more, please\n");
    endLook();
    expect(await running).toBe("completed");
    expect(requests()).toEqual([["go"], ["go", "", "seen", "more, please"], ["go", "", "seen", "more, please", "steered", "and\n then?"]]);
    expect(shown()).toBe(
      [
        "✓ look: seen (0 ms)",
        "» delivered: more, please",
        "",
        "steered",
        "» delivered: and then?",
        "",
        "followed",
        "",
        "0 ms, 3 turns, 1 tool call\n",
      ].join("\n"),
    );
  });

  test("/model and /tools count from the next turn on", async () => {
    const { session, lookStarted, endLook, models, toolsAsked, shown } = sessionWith([LOOK, LOOK, "done", "again"]);
    const running = session.enter("go");
    await lookStarted;
    shown();
    for (const line of ["/model second", "/tools off look", "/tools", "/model"]) await session.enter(line);
    expect(shown()).toBe(
      [
        "The model is second from the next turn on.",
        "look is off from the next turn on.",
        "off look: Does look",
        "on  other: Does other",
        "The model is second.\n",
      ].join("\n"),
    );
    endLook();
    expect(await running).toBe("completed");
    await session.enter("/tools on look");
    await session.enter("go");
    expect(models).toEqual([MODEL.id, "second", "second", "second"]);
    expect(toolsAsked()).toEqual([["look", "other"], ["other"], ["other"], ["other", "look"]]);
  });

  test("/stop ends the answer, what was queued goes with the next question", async () => {
    const { session, lookStarted, requests, shown } = sessionWith([LOOK, "fine", "later"]);
    const running = session.enter("go");
    await lookStarted;
    await session.enter("a word");
    await session.enter("/later another");
    await session.enter("/stop");
    expect(await running).toBe("aborted");
    expect(shown()).toMatch(/\nstopped\n.*\n2 queued messages will go with the next question or \/retry\.\n$/);
    expect(await session.enter("next")).toBe("completed");
    expect(requests().map((texts) => texts.slice(-2))).toEqual([["go"], ["next", "a word"], ["fine", "another"]]);
    expect(shown()).toContain("» delivered: a word\n");
  });

  test("/retry and a question wait for their turn", async () => {
    const { session, lookStarted, endLook, shown } = sessionWith([LOOK, "done"]);
    const running = session.enter("go");
    await lookStarted;
    shown();
    expect(await session.enter("/retry")).toBeUndefined();
    expect(shown()).toBe("An answer is running; /stop it first.\n");
    endLook();
    await running;
  });
});

test("what comes too late for a run gets a run of its own", async () => {
  const { agent, session, requests } = sessionWith(["first", "second"]);
  agent.on("agent_end", () => {
    if (requests().length === 1) void session.enter("one more");
  });
  expect(await session.enter("go")).toBe("completed");
  expect(requests()).toEqual([["go"], ["go", "first", "one more"]]);
});

describe("while nothing runs", () => {
  test("/retry asks again without the failed answer", async () => {
    const { session, requests, shown } = sessionWith([{ errorMessage: "overloaded" }, "fine"]);
    expect(await session.enter("go")).toBe("error");
    expect(shown()).toBe("error: overloaded\n");
    expect(await session.enter("/retry")).toBe("completed");
    expect(requests()).toEqual([["go"], ["go"]]);
    shown();
    await session.enter("/retry");
    expect(shown()).toBe("The last answer did not fail; there is nothing to retry.\n");
  });

  test("/retry behind a whole answer that was stopped at its very end says why it cannot", async () => {
    const { agent, session, requests, shown } = sessionWith(["whole"]);
    agent.on("turn_end", () => agent.abort());
    expect(await session.enter("go")).toBe("aborted");
    shown();
    expect(await session.enter("/retry")).toBeUndefined();
    expect(shown()).toMatch(/^The transcript ends in an assistant message/);
    expect(requests()).toHaveLength(1);
  });

  test("/later is a question like any other", async () => {
    const { session, requests } = sessionWith(["yes"]);
    expect(await session.enter("/later now?")).toBe("completed");
    expect(requests()).toEqual([["now?"]]);
  });

  test.each([
    ["/help", COMMANDS],
    ["/HELP", COMMANDS],
    ["/stop", "Nothing is running."],
    ["/later", "/later needs a text: /later and how does it end?"],
    ["/nope x", "There is no command /nope; /help shows those there are."],
    ["/tools off nope", 'There is no tool "nope"; /tools lists those there are.'],
    ["/tools off", "Expected /tools, /tools on NAME or /tools off NAME."],
    ["/tools look", "Expected /tools, /tools on NAME or /tools off NAME."],
    ["/tools on look other", "Expected /tools, /tools on NAME or /tools off NAME."],
    ["/tools on look", "look is on from the next turn on."],
    ["/model", `The model is ${MODEL.id}.`],
    ["/model other", `There is only ${MODEL.id} here; a server has more (--help).`],
  ])("%s is answered without the model", async (line, text) => {
    const { session, requests, shown } = sessionWith([], { canSwitchModel: false });
    expect(await session.enter(line)).toBeUndefined();
    expect([shown(), requests()]).toEqual([`${text}\n`, []]);
  });

  test("an empty line does nothing, a path is a question, /quit leaves", async () => {
    const { session, requests, shown, quits } = sessionWith(["a path"]);
    await session.enter("  ");
    expect([shown(), requests(), quits()]).toEqual(["", [], 0]);
    await session.enter("/etc/hosts?");
    expect(requests()).toEqual([["/etc/hosts?"]]);
    await session.enter("/quit");
    await session.enter("/exit");
    expect(quits()).toBe(2);
  });
});
