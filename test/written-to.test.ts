/** Hooks are shown the stored messages. One that writes to them spoils what it writes to, never the end of the run (SPEC 4.5, 6.2). */
import { Agent, type AgentLoopConfig, type AgentMessage, type AssistantMessage, type ToolCall, userMessage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, it } from "vitest";
import { answer } from "./field-reports/conditions.js";
import { makeTool, model, resultsOf, resumeRun, run, textOf } from "./helpers.js";

const echo = makeTool("echo", () => "ran");
const script = () => [[{ toolCall: "echo" }, { toolCall: "echo" }], [{ toolCall: "echo" }], "end"];

const onRole = (role: string, write: (message: any) => void) => (messages: AgentMessage[]) => {
  for (const message of messages) if (message.role === role) write(message);
};
const spoiledCalls: [string, (call: ToolCall) => void][] = [
  ["a bigint", (call) => Object.assign(call.arguments, { n: 1n })],
  ["a cycle", (call) => Object.assign(call.arguments, { call })],
  [
    "a getter that throws",
    (call) =>
      Object.defineProperty(call.arguments, "n", {
        enumerable: true,
        get: () => {
          throw new Error("boom");
        },
      }),
  ],
  ["nothing", (call) => Reflect.deleteProperty(call, "arguments")],
];
const onCalls = (write: (call: ToolCall) => void) =>
  onRole("assistant", (message: AssistantMessage) => {
    for (const block of message.content) if (block.type === "toolCall") write(block);
  });
const writers: [string, (messages: AgentMessage[]) => void][] = [
  ...["user", "assistant", "toolResult"].flatMap((role) =>
    [null, "text", 5, [null]].map((content): [string, (messages: AgentMessage[]) => void] => [
      `${JSON.stringify(content)} as the content of each ${role} message`,
      onRole(role, (message) => Object.assign(message, { content })),
    ]),
  ),
  ["no usage", onRole("assistant", (message) => Reflect.deleteProperty(message, "usage"))],
  ...spoiledCalls.map(([what, write]): [string, (messages: AgentMessage[]) => void] => [`${what} in the calls`, onCalls(write)]),
];

const hooks = ["transformContext", "convertToLlm", "beforeToolCall", "afterToolCall", "prepareNextTurn", "shouldStopAfterTurn"] as const;

/** Each hook, writing to whatever messages it is shown. */
const writing = (hook: (typeof hooks)[number], write: (messages: AgentMessage[]) => void): Partial<AgentLoopConfig> => ({
  [hook]: (shown: AgentMessage[] | { context: { messages: AgentMessage[] } }) => {
    if (!Array.isArray(shown)) return write(shown.context.messages);
    write(shown);
    return shown;
  },
});

describe.each(hooks)("a %s that writes to stored messages", (hook) => {
  // SPEC 4.5, 6.3
  it.each(writers)("%s: the run has its end", async (_what, write) => {
    const events: string[] = [];
    const config = writing(hook, write);
    const ended = await run(script(), { tools: [echo], config, onEvent: ({ type }) => void events.push(type) }).catch(
      (error) => error.message,
    );
    expect(events.filter((type) => type === "agent_end")).toHaveLength(1);
    expect(events.at(-1)).toBe("agent_end");
    expect(typeof ended === "string" ? ended : ended.outcome).toMatch(/^(completed|error|Event .*)$/);

    const agent = new Agent({ model, streamFn: scriptedModel(script()), tools: [echo], ...config });
    expect((await agent.prompt("go")).outcome).toMatch(/^(completed|error)$/);
    expect(agent.isRunning).toBe(false);
  });
});

describe("a beforeToolCall that spoils the calls it is asked about", () => {
  const ways = (["parallel", "sequential"] as const).flatMap((toolExecution) =>
    spoiledCalls.map(([what, write]) => [what, toolExecution, onCalls(write)] as const),
  );
  // SPEC 15.2
  it.each(ways)("with %s, and suspends one, %s: the run is suspended", async (_what, toolExecution, write) => {
    let asked = 0;
    const beforeToolCall: AgentLoopConfig["beforeToolCall"] = ({ context }) => {
      write(context.messages);
      return asked++ === 0 ? { suspend: true } : undefined;
    };
    const { outcome, end } = await run(script(), { tools: [echo], config: { toolExecution, beforeToolCall } });
    expect([outcome, end.pending?.map(({ toolCall, args }) => [toolCall.id, args])]).toEqual(["suspended", [["scripted_1_0", {}]]]);
  });
});

describe("a transcript whose pending call is spoiled", () => {
  const pending = (write: (call: ToolCall) => void): AgentMessage[] => {
    const call: ToolCall = { type: "toolCall", id: "a", name: "echo", arguments: {} };
    write(call);
    return [userMessage("go"), answer({ content: [call], stopReason: "toolUse" })];
  };
  // SPEC 15.3, 4.6, 5.6
  it.each(spoiledCalls.slice(0, 3))("by %s is resumed, and the call answered", async (_what, write) => {
    const record = await resumeRun([{ toolCallId: "a", action: "approve" }], ["end"], { messages: pending(write), tools: [echo] });
    expect(resultsOf(record)).toMatchObject([{ toolCallId: "a", isError: true }]);
    expect(textOf(resultsOf(record)[0])).toMatch(/could not be prepared/);
  });

  // SPEC 5.5
  it("by a name that is none is resumed, and the call answered", async () => {
    const messages = pending((call) => Object.assign(call, { name: null }));
    const record = await resumeRun([{ toolCallId: "a", action: "approve" }], ["end"], { messages, tools: [echo] });
    expect([record.outcome, textOf(resultsOf(record)[0])]).toEqual(["completed", "The tool call has no tool name."]);
  });
});
