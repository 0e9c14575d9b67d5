import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type AgentEvent, type AgentMessage, type RunOutcome, runAgentLoop, userMessage } from "turnloop";
import { assertEventSequence, recordEvents } from "turnloop/testing";
import { onTestFinished } from "vitest";
import { offlineModel } from "../../examples/offline-model.js";
import { workspaceTools } from "../../examples/workspace-tools.js";

export const MODEL = { id: "offline-planner", provider: "turnloop-examples" };

/** A folder that is gone after the test. */
export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "turnloop-examples-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function writeFiles(root: string, files: Record<string, string | Buffer>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

export function workspaceOf(files: Record<string, string | Buffer>): string {
  const root = temporaryFolder();
  writeFiles(root, files);
  return root;
}

export interface Conversation {
  answer: string;
  thinking: string;
  /** The tool calls of each turn: `read_file {"path":"a.txt"}`. */
  turns: string[][];
  outcome: RunOutcome;
  events: AgentEvent[];
  /** The whole transcript, to go on from. */
  messages: AgentMessage[];
}

export interface AskOptions {
  earlier?: AgentMessage[];
  /** Comes in after the first turn. */
  steering?: string;
  tools?: ReturnType<typeof workspaceTools>;
}

/** Has the offline model answer the questions with the tools over `root`. */
export async function ask(root: string, questions: string | string[], options: AskOptions = {}): Promise<Conversation> {
  const recorder = recordEvents();
  const steering = options.steering === undefined ? [] : [userMessage(options.steering)];
  const earlier = options.earlier ?? [];
  const added = await runAgentLoop(
    [questions].flat().map((question) => userMessage(question)),
    { systemPrompt: "", messages: earlier, tools: options.tools ?? workspaceTools(root) },
    { model: MODEL, getSteeringMessages: () => steering.splice(0) },
    recorder,
    undefined,
    offlineModel({ chunkDelayMs: 0 }),
  );
  assertEventSequence(recorder.events);
  const answers = added.flatMap((message) => (message.role === "assistant" ? [message] : []));
  const end = recorder.events.at(-1) as Extract<AgentEvent, { type: "agent_end" }>;
  const thinking = answers.flatMap(({ content }) => content.flatMap((block) => (block.type === "thinking" ? [block.thinking] : [])));
  return {
    answer: answers.flatMap(({ content }) => content.flatMap((block) => (block.type === "text" ? [block.text] : []))).join("\n"),
    thinking: thinking.join("\n"),
    turns: answers.map(({ content }) =>
      content.flatMap((block) => (block.type === "toolCall" ? [`${block.name} ${JSON.stringify(block.arguments)}`] : [])),
    ),
    outcome: end.outcome,
    events: recorder.events,
    messages: [...earlier, ...added],
  };
}
