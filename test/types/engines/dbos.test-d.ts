/** The two functions of DBOS that a durable run needs, as its documentation has them. What is below them stands in examples/durable/README.md. */
import { type AgentTool, type Model, runAgentLoop, type StreamFn, userMessage } from "turnloop";
import { durable } from "turnloop/durable";

declare const DBOS: {
  runStep<Return>(
    func: () => Promise<Return>,
    config?: { name?: string; retriesAllowed?: boolean; intervalSeconds?: number; maxAttempts?: number; backoffRate?: number },
  ): Promise<Return>;
  registerWorkflow<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config?: { name?: string; maxRecoveryAttempts?: number },
  ): (this: This, ...args: Args) => Promise<Return>;
};
declare const streamFn: StreamFn, tools: AgentTool[], model: Model, systemPrompt: string;

// README
async function promptWorkflow(text: string) {
  const startedAt = await DBOS.runStep(async () => Date.now(), { name: "start" });
  const run = durable({ step: (name, fn) => DBOS.runStep(fn, { name }), streamFn, tools, prefix: "run", startedAt });
  const prompts = [userMessage(text, { timestamp: startedAt })];
  const context = { systemPrompt, messages: [], tools: run.tools };
  return runAgentLoop(prompts, context, { model, now: run.now }, () => {}, undefined, run.streamFn);
}

export const prompt = DBOS.registerWorkflow(promptWorkflow, { name: "prompt" });
