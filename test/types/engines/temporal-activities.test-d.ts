/** What Temporal gives to activities, as its documentation has it. What is below it stands in examples/durable/README.md. */
import type { AgentTool, StreamFn } from "turnloop";
import { performStep, type StepInfo } from "turnloop/durable";

interface ActivityContext {
  heartbeat(details?: unknown): void;
  /** Rejects when the activity is cancelled, for whatever reason. */
  readonly cancelled: Promise<never>;
  readonly cancellationSignal: AbortSignal;
  readonly cancellationDetails: { cancelRequested: boolean; workerShutdown: boolean; timedOut: boolean; paused: boolean } | undefined;
}
declare const Context: { current(): ActivityContext };
declare const streamFn: StreamFn, tools: AgentTool[];

// README
export async function agentStep(info: StepInfo): Promise<unknown> {
  const context = Context.current();
  const [abort, attempt] = [new AbortController(), new AbortController()];
  context.cancelled.catch((reason) => {
    if (context.cancellationDetails?.cancelRequested)
      abort.abort(reason); // by the user: recorded
    else attempt.abort(new Error("This worker cannot go on.")); // it shuts down, or lost its server: tried again elsewhere
  });
  const beat = setInterval(() => context.heartbeat(), 5_000); // an activity that is silent hears of no cancellation
  try {
    return await performStep(info, { streamFn, tools, signal: abort.signal, attempt: attempt.signal });
  } finally {
    clearInterval(beat);
  }
}
