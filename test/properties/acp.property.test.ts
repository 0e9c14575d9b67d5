import type { ContentBlock, PromptResponse, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import fc from "fast-check";
import { Agent, type AgentTool, type AssistantMessage, type StreamFn, type ToolResultMessage, toWellFormed } from "turnloop";
import { type AcpSessionInfo, requestPermission } from "turnloop/acp";
import { type Block, type ScriptedAnswer, scriptedModel } from "turnloop/testing";
import { expect, it, vi } from "vitest";
import { AcpClient, choose } from "../adapters/acp-helpers.js";
import { aborted, makeTool, model, textOf } from "../helpers.js";
import { PROMPTS, type PromptRow, readOf } from "./acp-prompts.js";
import { type AcpScenario, type AnswerSketch, acpScenarios, type BlockSketch, type SessionSketch } from "./acp-scenario.js";
import { counter, runsOf, timeoutOf } from "./runs.js";

const RUNS = runsOf("acp", "TURNLOOP_PROPERTY_RUNS");
const played = counter("acp");
/** Repeats a failure: the seed that it printed. */
const SEED = Number(process.env.TURNLOOP_PROPERTY_SEED) || undefined;
/** Turns of the event loop after which something is taken to hang. */
const PATIENCE = 30;

const never = (): Promise<never> => new Promise(() => {});
const turn = (): Promise<void> => new Promise(setImmediate);

function scripted({ blocks, end, after }: AnswerSketch): ScriptedAnswer {
  const content = blocks.map(
    (block: BlockSketch): Block => ("tool" in block ? { toolCall: block.tool, id: block.id, rawArgs: block.args } : block),
  );
  if (end === "done") return content;
  if (end === "length") return { content, stopReason: end };
  if (end === "error") return { content, errorMessage: "broken", errorInfo: { kind: "overloaded", retryable: true } };
  if (end === "refusal") return { content, errorMessage: "no", errorInfo: { kind: "refusal", retryable: false } };
  return { content, fault: { kind: end, afterEvents: after } };
}

/** Some answers come whole: only their terminal event. */
function modelOf(answers: readonly AnswerSketch[]): StreamFn {
  const streamFn = scriptedModel(answers.map(scripted), { chunkSize: 5 });
  return async function* (...given) {
    const { isStreamed } = answers[streamFn.requests.length] ?? { isStreamed: true };
    for await (const event of await streamFn(...given)) if (isStreamed || !("partial" in event)) yield event;
  };
}

const unreadable = Object.defineProperty({}, "diff", { get: () => expect.fail("unreadable") });
const tools: AgentTool[] = [
  makeTool("ok", () => "fine"),
  makeTool("edit", (_id, args) => ({ content: [{ type: "text", text: "\ud83d" }], details: args })),
  makeTool("failing", () => Promise.reject(new Error("no"))),
  makeTool("hanging", never),
  makeTool("late", async (_id, _args, signal) => {
    await Promise.race([turn(), aborted(signal)]);
    return "late";
  }),
  makeTool("chatty", async (_id, _args, _signal, onUpdate) => {
    for (let i = 0; i < 20; i++) {
      onUpdate({ content: [{ type: "text", text: `${i}` }] });
      if (i % 7 === 0) await turn();
    }
    void turn().then(() => onUpdate({ content: [{ type: "text", text: "too late" }] }));
    return "said";
  }),
  makeTool("image", () => ({ content: [{ type: "image", data: "AA==", mimeType: "image/png" }], details: { big: 1n } })),
  makeTool("unreadable", () => ({ content: [{ type: "text", text: "" }], details: unreadable }), { kind: "edit" }),
];

function agentOf({ connection, sessionId }: AcpSessionInfo, { answers, thinking, sequential }: SessionSketch): Agent {
  return new Agent({
    model,
    streamFn: modelOf(answers),
    tools,
    thinking,
    toolExecution: sequential ? "sequential" : "parallel",
    beforeToolCall: requestPermission(connection, sessionId, { ask: ({ toolCall }) => toolCall.name !== "ok" }),
    abortGraceMs: 1,
  });
}

function say(saying: SessionSketch["says"][number] | undefined): RequestPermissionResponse["outcome"] | Promise<never> {
  if (saying === "cancelled") return { outcome: "cancelled" };
  if (saying === "hangs") return never();
  return saying === "fails" ? Promise.reject(new Error("no window")) : choose(saying ?? "allow_once");
}

/** Prompts, cancels and leaves as the scenario says; then checks all that was sent, and what became of it. */
async function play({ sessions, isInProcess, leaveAt }: AcpScenario): Promise<void> {
  const byId = new Map<string, { sketch: SessionSketch; asked: number }>();
  const client = new AcpClient([], {
    isInProcess,
    createAgent: (session) => {
      const sketch = sessions[byId.size] as SessionSketch;
      byId.set(session.sessionId, { sketch, asked: 0 });
      return agentOf(session, sketch);
    },
    permission: ({ sessionId }) => {
      const session = byId.get(sessionId) as { sketch: SessionSketch; asked: number };
      const { says } = session.sketch;
      return say(says[session.asked++ % says.length]);
    },
  });
  const rowsOf = (prompt: readonly number[]): PromptRow[] =>
    prompt.map((at) => PROMPTS[at] as PromptRow).filter(({ isLive }) => isInProcess || !isLive);
  const talks = sessions.map(({ prompts }) => prompts.map(rowsOf));
  await client.initialize();
  const ids: string[] = [];
  for (const _ of sessions) ids.push(await client.session());
  const leaving = leaveAt === undefined ? never() : leave(client, leaveAt);
  await Promise.race([
    leaving,
    Promise.all(
      ids.map((id, i) => converse(client, id, talks[i] as PromptRow[][], sessions[i] as SessionSketch, client.agents[i] as Agent)),
    ),
  ]);
  await client.finish();
  expect(client.agents.map(({ isRunning }) => isRunning)).toEqual(ids.map(() => false));
  if (client.connection.signal.aborted && leaveAt !== undefined) return;
  for (const [i, id] of ids.entries()) {
    checkShown(client, id, client.agents[i] as Agent, sessions[i] as SessionSketch);
    checkSaid(client.agents[i] as Agent, talks[i] as PromptRow[][]);
  }
}

async function leave(client: AcpClient, turns: number): Promise<void> {
  for (let i = 0; i < turns; i++) await turn();
  client.leave();
  await client.served.closed;
}

async function converse(
  client: AcpClient,
  id: string,
  prompts: readonly PromptRow[][],
  sketch: SessionSketch,
  agent: Agent,
): Promise<void> {
  for (const [n, rows] of prompts.entries()) {
    const controller = new AbortController();
    let answer: PromptResponse["stopReason"] | Error | undefined;
    const blocks = rows.map(({ given }) => given() as ContentBlock);
    const prompt = client.prompt(id, blocks, { cancellationSignal: controller.signal }).then(
      ({ stopReason }) => {
        answer = stopReason;
      },
      (error: Error) => {
        answer = error;
      },
    );
    const cancelAt = sketch.cancelAt[n];
    let isCancelled = false;
    let mustBeCancelled = false;
    let quiet = 0;
    for (let turns = 0, seen = 0; answer === undefined && !client.connection.signal.aborted; turns++) {
      quiet = client.recorded.length === seen ? quiet + 1 : 0;
      seen = client.recorded.length;
      if (isCancelled && agent.isRunning) mustBeCancelled = true;
      if (!isCancelled && (turns === cancelAt || quiet > PATIENCE)) {
        isCancelled = true;
        if (sketch.cancelBy === "request") controller.abort();
        else void client.cancel(id);
      }
      await turn();
    }
    if (client.connection.signal.aborted) return;
    await prompt;
    if (!readOf(rows)) expect([-32602, -32603]).toContain((answer as unknown as { code?: number })?.code);
    else if (mustBeCancelled) expect(answer).toBe("cancelled");
    else if (answer instanceof Error) expect(answer).toMatchObject({ code: -32603 });
    else expect(["end_turn", "max_tokens", "refusal", ...(isCancelled ? ["cancelled"] : [])]).toContain(answer);
  }
}

/** The client has seen what the transcript holds. */
function checkShown(client: AcpClient, id: string, agent: Agent, sketch: SessionSketch): void {
  const updates = client.updates(id);
  const shown = new Map<string, string>();
  for (const update of updates) {
    if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") continue;
    shown.set(update.messageId as string, (shown.get(update.messageId as string) ?? "") + update.content.text);
  }
  const answers = agent.messages.filter((message): message is AssistantMessage => message.role === "assistant");
  const written = answers
    .map((message) => textOf(toWellFormed([{ ...message, content: [{ type: "text", text: textOf(message) }] }])[0]))
    .filter(Boolean);
  const texts = [...shown.values()];
  if (sketch.answers.some(({ end }) => end === "restart")) for (const text of written) expect(texts).toContain(text);
  else expect(texts).toEqual(written);

  const cards = updates.flatMap((update) => (update.sessionUpdate === "tool_call_update" && !update._meta ? [update.status] : []));
  const results = agent.messages.filter((message): message is ToolResultMessage => message.role === "toolResult");
  expect(cards.filter((status) => status === "completed")).toHaveLength(results.filter(({ isError }) => !isError).length);
  expect(cards.filter((status) => status === "failed").length).toBeGreaterThanOrEqual(results.filter(({ isError }) => isError).length);
}

/** The transcript holds what could be read of the prompts, and nothing that a provider would refuse or JSON cannot hold. */
function checkSaid(agent: Agent, prompts: readonly PromptRow[][]): void {
  const said = agent.messages.filter((message) => message.role === "user").map(({ content }) => content);
  expect(
    toWellFormed([...agent.messages])
      .filter(({ role }) => role === "user")
      .map(({ content }) => content),
  ).toEqual(prompts.flatMap((rows) => (readOf(rows) ? [readOf(rows)] : [])));
  expect(JSON.parse(JSON.stringify(said))).toEqual(said);
  expect((Object.prototype as { poisoned?: unknown }).poisoned).toBeUndefined();
}

// SPEC 10.1, 10.2, 10.4, 10.5, 14.3
it(`every session keeps the protocol, whatever models, tools, users and clients do (${RUNS} runs)`, {
  timeout: timeoutOf(RUNS),
}, async () => {
  vi.spyOn(console, "error").mockImplementation(() => {}); // the SDK tells of answers that come after the end
  const holds = fc.asyncProperty(acpScenarios, (scenario) => {
    played();
    return play(scenario);
  });
  await fc.assert(holds, { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) });
  vi.restoreAllMocks();
});
