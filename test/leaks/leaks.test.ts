/** What a process is left with after many runs: memory, listeners, timers and handles (SPEC 7.1, 14.3). */
import { getEventListeners } from "node:events";
import {
  Agent,
  type AgentMessage,
  agentLoop,
  resumeAgentLoop,
  runAgentLoop,
  type StreamFn,
  userMessage,
  withFallback,
  withRetry,
  withStallTimeout,
  withThinkingCard,
} from "turnloop";
import { durable, type Step } from "turnloop/durable";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { answer, finalMessages } from "../field-reports/conditions.js";
import { makeTool, model } from "../helpers.js";

const gc = (globalThis as { gc?: () => void }).gc;
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The heap in bytes, when all is collected that can be. */
async function heap(): Promise<number> {
  for (let i = 0; i < 2; i++) {
    await tick();
    gc?.();
  }
  return process.memoryUsage().heapUsed;
}

const toolTurn = (id: string): any => answer({ content: [{ type: "toolCall", id, name: "x", arguments: {} }], stopReason: "toolUse" });

// SPEC 4.8, 14.3; F89 counts messages and listeners of the same run
describe.runIf(gc)("the heap", () => {
  it("of a run of 3,000 turns whose context is cut to 20 messages grows by its transcript only", { timeout: 30_000 }, async () => {
    const turns = 3000;
    const at: number[] = [];
    let calls = 0;
    const streamFn: StreamFn = async (...request) => {
      calls++;
      if (calls % 1000 === 0) at.push(await heap());
      return finalMessages(calls < turns ? toolTurn(`c${calls}`) : answer({}))(...request);
    };
    const messages = await runAgentLoop(
      [userMessage("go")],
      { systemPrompt: "", messages: [], tools: [makeTool("x", () => "ran", { timeoutMs: 60_000 })] },
      { model, transformContext: (all) => all.slice(-20) },
      () => {},
      undefined,
      streamFn,
    );
    expect(messages.length).toBe(2 * turns);
    const [first = 0, second = 0, third = 0] = at;
    const perTurn = (third - second) / 1000;
    console.info(`${Math.round(perTurn)} bytes a turn, of which the transcript is ${JSON.stringify(messages.slice(1, 3)).length} as JSON`);
    // a request kept for each turn would be 20 messages, and thrice as much
    expect(perTurn).toBeLessThan(8000);
    expect(third - second).toBeLessThan(2 * (second - first) + 2_000_000);
  });

  it("is as before when runs are over, and 10,000 at a time fit into it", { timeout: 60_000 }, async () => {
    const runs = 10_000;
    const batch = async (count: number): Promise<{ during: number; after: number }> => {
      const before = await heap();
      const started: (() => void)[] = [];
      const context = {
        systemPrompt: "",
        messages: [],
        tools: [makeTool("x", () => new Promise<string>((r) => started.push(() => r("ran"))))],
      };
      const ended = Promise.all(
        Array.from({ length: count }, async (_, i) => {
          await runAgentLoop([userMessage("go")], context, { model }, () => {}, undefined, finalMessages(toolTurn(`c${i}`)));
        }),
      );
      while (started.length < count) await tick();
      const during = (await heap()) - before;
      for (const go of started) go();
      await ended;
      started.length = 0;
      return { during, after: (await heap()) - before };
    };
    await batch(500); // what is made once
    const { during, after } = await batch(runs);
    console.info(`${Math.round(during / runs)} bytes a run that waits for its tool, ${runs} at once`);
    expect(during / runs).toBeLessThan(16_000); // the README says about 8
    expect(after).toBeLessThan(3_000_000);
  });
});

// SPEC 4.1, 14.3
describe.runIf(gc)("a tool that many runs share", () => {
  it("does not keep the others it was listed with", async () => {
    const shared = makeTool("shared", () => "ran");
    const refs = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const own = makeTool("own", () => "ran");
        const context = { systemPrompt: "", messages: [], tools: [shared, own] };
        await runAgentLoop([userMessage("go")], context, { model }, () => {}, undefined, scriptedModel([[{ toolCall: "own" }], "done"]));
        return new WeakRef(own);
      }),
    );
    await heap();
    expect(refs.map((ref) => ref.deref()?.name)).toEqual([undefined, undefined, undefined]);
    expect(shared.name).toBe("shared");
  });
});

/** How many timers, sockets and other things keep the process alive. */
const alive = (): number => process.getActiveResourcesInfo().length;

describe("when they are over", () => {
  const history: AgentMessage[] = [userMessage("go"), toolTurn("a")];
  const context = () => ({ systemPrompt: "", messages: [], tools: [makeTool("x", () => "ran", { timeoutMs: 60_000 })] });
  const ask = (signal: AbortSignal, streamFn: StreamFn) =>
    runAgentLoop([userMessage("go")], context(), { model }, () => {}, signal, streamFn);
  const plain = (): StreamFn => scriptedModel([[{ toolCall: "x" }], "done"]);
  const hanging: StreamFn = () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) });
  const failing: StreamFn = finalMessages(
    answer({ stopReason: "error", errorMessage: "no", errorInfo: { kind: "network", retryable: true } }),
  );
  const live: Step = (_name, fn) => fn({});
  const aborting = async (begin: (signal: AbortSignal) => Promise<unknown>): Promise<void> => {
    const own = new AbortController();
    const ended = begin(own.signal).catch(() => {});
    await tick();
    own.abort();
    await ended;
  };
  const kinds: [string, (signal: AbortSignal) => Promise<unknown>][] = [
    ["a run", (signal) => ask(signal, plain())],
    ["an aborted run", () => aborting((own) => ask(own, hanging))],
    ["a failed run", (signal) => ask(signal, () => Promise.reject(new Error("no")))],
    [
      "an iteration that is left",
      async (signal) => {
        for await (const event of agentLoop([userMessage("go")], context(), { model }, signal, plain()))
          if (event.type === "message_update") break;
      },
    ],
    [
      "a resumed run",
      (signal) =>
        resumeAgentLoop(
          [{ toolCallId: "a", action: "approve" }],
          { ...context(), messages: history },
          { model },
          () => {},
          signal,
          scriptedModel(["done"]),
        ),
    ],
    [
      "an Agent",
      async (signal) => {
        const agent = new Agent({ model, streamFn: plain(), tools: context().tools, thinking: { heartbeatMs: 60_000 } });
        await agent.prompt("go", { signal });
      },
    ],
    [
      "an Agent that is aborted",
      async () => {
        const agent = new Agent({ model, streamFn: hanging, tools: [], thinking: { heartbeatMs: 60_000 } });
        const ended = agent.prompt("go");
        await tick();
        agent.abort();
        await ended;
      },
    ],
    ["withThinkingCard", (signal) => ask(signal, withThinkingCard(plain(), { heartbeatMs: 60_000, showAfterMs: 60_000 }))],
    ["withStallTimeout", (signal) => ask(signal, withStallTimeout(plain(), { firstEventMs: 60_000, idleMs: 60_000 }))],
    [
      "withRetry, aborted while it waits",
      () => aborting((own) => ask(own, withRetry(failing, { minDelayMs: 60_000, maxDelayMs: 60_000 }))),
    ],
    [
      "withFallback",
      (signal) =>
        ask(
          signal,
          withFallback([
            { streamFn: failing, model },
            { streamFn: plain(), model },
          ]),
        ),
    ],
    [
      "all of them",
      () =>
        aborting((own) =>
          ask(
            own,
            withThinkingCard(withRetry(withStallTimeout(hanging, { firstEventMs: 60_000, idleMs: 60_000 })), { heartbeatMs: 60_000 }),
          ),
        ),
    ],
    [
      "a durable run",
      (signal) => {
        const parts = durable({ step: live, streamFn: plain(), tools: context().tools, prefix: "p", toolTimeoutMs: 60_000 });
        return runAgentLoop(
          [userMessage("go")],
          { ...context(), tools: parts.tools },
          { model, now: parts.now },
          () => {},
          signal,
          parts.streamFn,
        );
      },
    ],
    [
      "a durable run that is aborted",
      () =>
        aborting((own) => {
          const parts = durable({ step: live, streamFn: hanging, tools: [], prefix: "p" });
          return runAgentLoop(
            [userMessage("go")],
            { ...context(), tools: parts.tools },
            { model, now: parts.now },
            () => {},
            own,
            parts.streamFn,
          );
        }),
    ],
  ];

  // SPEC 7.1, 14.3
  it.each(kinds)("300 of them leave no timer, no handle and no listener on their signal: %s", async (_what, begin) => {
    const { signal } = new AbortController();
    await begin(signal);
    await tick();
    const before = alive();
    for (let i = 0; i < 300; i++) await begin(signal);
    await tick();
    expect(alive()).toBeLessThan(before + 30); // the test runner has a few of its own, which come and go
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});
