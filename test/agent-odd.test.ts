import { getEventListeners } from "node:events";
import { Agent, withRetry } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeTool, model, run, textOf } from "./helpers.js";

const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): void => void unhandled.push(error);
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", onUnhandled);
});
afterEach(() => {
  process.off("unhandledRejection", onUnhandled);
});
/** Node tells of unhandled rejections once the microtasks are done. */
const macrotask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("an Agent that is given odd things", () => {
  it.each([[{}], [5], ["signal"]])("%j for a signal leaves it idle, usable and with all that was queued", async (signal) => {
    // SPEC 8.3, 8.5
    const agent = new Agent({ model, streamFn: scriptedModel(["x", "y"]) });
    agent.steer("kept");
    const first = await agent.prompt("go", { signal: signal as never }).catch((error: unknown) => error);
    expect(agent.isRunning).toBe(false);
    if (first instanceof Error) expect([agent.messages, agent.steeringQueue.size]).toEqual([[], 1]);
    const { outcome } = await agent.prompt("again");
    expect(outcome).toBe("completed");
    expect(agent.messages.filter((message) => textOf(message) === "kept").length).toBe(1);
  });

  it("a reporter of listener errors that rejects is no unhandled rejection", async () => {
    // SPEC 8.4, 14.3
    const fails = (): never => {
      throw new Error("listener");
    };
    const agent = new Agent({ model, streamFn: scriptedModel(["x"]), onListenerError: async () => fails() });
    agent.on("turn_start", fails);
    agent.subscribe(fails);
    expect((await agent.prompt("go")).outcome).toBe("completed");
    await macrotask();
    expect(unhandled).toEqual([]);
  });

  it("an onRetry that rejects is no unhandled rejection", async () => {
    // SPEC 11.1, 14.3
    const busy = { errorMessage: "busy", errorInfo: { kind: "rate_limit", retryable: true } as const };
    const onRetry = async (): Promise<void> => {
      throw new Error("onRetry");
    };
    const { outcome } = await run(withRetry(scriptedModel([busy, "ok"]), { minDelayMs: 0, maxDelayMs: 0, onRetry }));
    await macrotask();
    expect([outcome, unhandled]).toEqual(["completed", []]);
  });

  it("leaves no listener on the signals it was given, however runs end", async () => {
    // SPEC 7.1
    const { signal } = new AbortController();
    const tools = [makeTool("t", () => "r")];
    const agent = new Agent({ model, tools, streamFn: scriptedModel(["x", { errorMessage: "e" }, [{ toolCall: "t" }], "y", "z"]) });
    agent.subscribe(async () => {});
    for (let i = 0; i < 3; i++) await agent.prompt("go", { signal });
    await expect(agent.continue({ signal })).rejects.toMatchObject({ code: "cannot_continue_from_assistant" });
    const running = agent.prompt("go", { signal });
    await expect(agent.prompt("busy", { signal })).rejects.toMatchObject({ code: "busy" });
    await running;
    expect(getEventListeners(signal, "abort").length).toBe(0);
  });

  it("follow-ups and steering queued while the end is told wait for the next run", async () => {
    // SPEC 8.3
    const agent = new Agent({ model, streamFn: scriptedModel(["x", "y", "z"]) });
    agent.once("agent_end", () => {
      agent.followUp("later");
      agent.steer("soon");
    });
    await agent.prompt("go");
    expect([agent.steeringQueue.size, agent.followUpQueue.size]).toEqual([1, 1]);
    await agent.continue();
    expect(agent.messages.map(textOf)).toEqual(["go", "x", "soon", "y", "later", "z"]);
  });
});
