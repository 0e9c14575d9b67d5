/** What Temporal gives to workflows, as its documentation has it. What is below it stands in examples/durable/README.md. */
import { type AgentMessage, type AgentTool, type Model, runAgentLoop, userMessage } from "turnloop";
import { durable } from "turnloop/durable";
import type * as activities from "./temporal-activities.test-d.js";

type Duration = string | number;
type ActivityFunction = (...given: any[]) => Promise<any>;
declare const ActivityCancellationType: {
  readonly ABANDON: "ABANDON";
  readonly TRY_CANCEL: "TRY_CANCEL";
  readonly WAIT_CANCELLATION_COMPLETED: "WAIT_CANCELLATION_COMPLETED";
};
interface ActivityOptions {
  startToCloseTimeout?: Duration;
  scheduleToCloseTimeout?: Duration;
  heartbeatTimeout?: Duration;
  retry?: { maximumAttempts?: number };
  cancellationType?: (typeof ActivityCancellationType)[keyof typeof ActivityCancellationType];
}
/** A function that is no activity cannot be called. */
declare function proxyActivities<A>(options: ActivityOptions): { [K in keyof A]: A[K] extends ActivityFunction ? A[K] : symbol };
declare const CancellationScope: { current(): { readonly cancelRequested: Promise<never> } };
declare const tools: AgentTool[], model: Model, systemPrompt: string;

// README
const { agentStep } = proxyActivities<typeof activities>({
  startToCloseTimeout: "15 minutes",
  heartbeatTimeout: "30 seconds",
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED, // what was cut short is recorded
});
const elsewhere = () => {
  throw new Error("Models are called in the activity.");
};

export async function prompt(text: string): Promise<AgentMessage[]> {
  const abort = new AbortController();
  CancellationScope.current().cancelRequested.catch((reason) => abort.abort(reason));
  const startedAt = Date.now(); // the workflow's own time: the same on every replay
  const run = durable({ step: (_name, _fn, info) => agentStep(info) as never, streamFn: elsewhere, tools, prefix: "run", startedAt });
  const prompts = [userMessage(text, { timestamp: startedAt })];
  const context = { systemPrompt, messages: [], tools: run.tools };
  return runAgentLoop(prompts, context, { model, now: run.now }, () => {}, abort.signal, run.streamFn);
}
