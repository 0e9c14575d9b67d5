/** Inngest's function and step, as its documentation has them. What is below them stands in examples/durable/README.md. */
import { type AgentTool, type Model, runAgentLoop, type StreamFn, userMessage } from "turnloop";
import { durable } from "turnloop/durable";

/** What a value is after it went through JSON. */
type Jsonified<T> = T extends string | number | boolean | null
  ? T
  : T extends (...given: never[]) => unknown
    ? never
    : { [K in keyof T]: Jsonified<T[K]> };
type AnyFunction = (...given: any[]) => unknown;
interface StepTools {
  /** Calls `fn` with `input`, which most steps have none of. */
  run<F extends AnyFunction>(
    id: string | { id: string; name?: string },
    fn: F,
    ...input: Parameters<F>
  ): Promise<Jsonified<Awaited<ReturnType<F>>>>;
}
interface HandlerContext {
  event: { name: string; data: { text: string } };
  runId: string;
  attempt: number;
  step: StepTools;
}
type Trigger = { event: string; if?: string } | { cron: string };

declare const inngest: {
  createFunction(options: { id: string; triggers: Trigger | Trigger[] }, handler: (context: HandlerContext) => Promise<unknown>): object;
};
declare const streamFn: StreamFn, tools: AgentTool[], model: Model, systemPrompt: string;

// README
export const agent = inngest.createFunction({ id: "agent", triggers: { event: "agent/prompt" } }, async ({ event, step }) => {
  const startedAt = await step.run("start", () => Date.now());
  const run = durable({ step: (name, fn) => step.run(name, fn) as never, streamFn, tools, prefix: "run", startedAt });
  const prompts = [userMessage(event.data.text, { timestamp: startedAt })];
  const context = { systemPrompt, messages: [], tools: run.tools };
  return runAgentLoop(prompts, context, { model, now: run.now }, () => {}, undefined, run.streamFn);
});
