/** One process of a conversation whose calls may wait for approval: all that it knows comes from the plan and the transcript. */
import {
  Agent,
  type AgentEvent,
  type AgentEventSink,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
  AssistantMessageBuilder,
  dropFailedTail,
  resumeAgentLoop,
  runAgentLoop,
  runAgentLoopContinue,
  type StreamFn,
  type ToolCall,
  type ToolCallDecision,
  userMessage,
} from "turnloop";

export interface PlannedCall {
  suspends: boolean;
  /** What is decided if it is pending. */
  decision: "approve" | "edit" | "deny" | "result";
  throws: boolean;
  sequential: boolean;
  /** How many microtasks the tool takes. */
  takes: number;
}

export interface Plan {
  /** The calls of each answer; the answer after these has none. Call n has the id `c<n>` in every turn. */
  turns: PlannedCall[][];
  via: "core" | "agent";
  toolExecution: "parallel" | "sequential";
  maxParallelToolCalls: number;
}

/** When a process ends other than by itself: at the n-th event it is aborted, or gone. */
export interface Disturbance {
  at: number;
  by: "abort" | "crash";
}

export interface Segment {
  /** The transcript as it was recorded, message by message. */
  transcript: AgentMessage[];
  /** The calls whose tool was entered: `<turn>/<index>`. */
  executed: string[];
  events: AgentEvent[];
  resumed: boolean;
  /** Undefined: the process was gone before. */
  outcome?: string | undefined;
}

/** What a process begins with: a prompt, decisions on what is pending, or going on; undefined: nothing is left to do. */
export function nextStep(plan: Plan, transcript: AgentMessage[]): { decisions?: ToolCallDecision[]; prompt?: AgentMessage } | undefined {
  const { pendingApprovals } = new Agent({ model, streamFn: modelOf(plan), messages: transcript });
  if (transcript.length === 0) return { prompt: userMessage("go", { timestamp: 5 }) };
  if (pendingApprovals.length > 0) return { decisions: pendingApprovals.map(({ toolCall }) => decide(plan, toolCall)) };
  const tail = dropFailedTail(transcript).at(-1);
  return tail?.role === "assistant" ? undefined : {};
}

function planned(turns: Plan["turns"], { turn, index }: { turn?: number; index?: number }): PlannedCall {
  const call = turns[turn ?? -1]?.[index ?? -1];
  if (!call) throw new Error(`no call is planned at ${turn}/${index}`);
  return call;
}

function decide({ turns }: Plan, { id: toolCallId, arguments: args }: ToolCall): ToolCallDecision {
  const { decision } = planned(turns, args);
  if (decision === "edit") return { toolCallId, action: "approve", args: { ...args, edited: "yes" } };
  return decision === "result" ? { toolCallId, action: decision, result: "by hand" } : { toolCallId, action: decision };
}

const model = { id: "planned", provider: "none" };

/** `onCrash` is called at the event where the process is gone; it may not return. */
export async function playSegment(
  plan: Plan,
  transcript: AgentMessage[],
  disturbance: Disturbance | undefined,
  onCrash: (segment: Segment) => void = () => {},
): Promise<Segment> {
  const step = nextStep(plan, transcript) ?? {};
  const base = step.decisions ? transcript : dropFailedTail(transcript);
  const segment: Segment = { transcript: [...base], executed: [], events: [], resumed: step.decisions !== undefined };
  const controller = new AbortController();
  let gone: Segment | undefined;
  const emit: AgentEventSink = (event) => {
    if (event.type === "message_end") segment.transcript.push(structuredClone(event.message));
    if (event.type === "agent_end") segment.outcome = event.outcome;
    if (segment.events.push(event) - 1 !== disturbance?.at) return;
    if (disturbance.by === "crash") {
      gone = structuredClone({ ...segment, events: [] });
      onCrash(gone);
    }
    controller.abort("disturbed");
  };
  const note = (key: string): void => void segment.executed.push(key);
  await start(plan, step, base, note, emit, controller.signal);
  return gone ? { ...gone, events: segment.events } : segment;
}

function start(
  plan: Plan,
  { decisions, prompt }: { decisions?: ToolCallDecision[]; prompt?: AgentMessage },
  messages: AgentMessage[],
  note: (key: string) => void,
  emit: AgentEventSink,
  signal: AbortSignal,
): Promise<unknown> {
  const { toolExecution, maxParallelToolCalls } = plan;
  const beforeToolCall: AgentLoopConfig["beforeToolCall"] = ({ args }) => ({ suspend: planned(plan.turns, args).suspends });
  const config: AgentLoopConfig = { model, toolExecution, maxParallelToolCalls, beforeToolCall, now: () => 5 };
  const streamFn = modelOf(plan);
  const tools = toolsOf(plan, note);
  if (plan.via === "agent") {
    const agent = new Agent({ ...config, messages, tools, streamFn });
    agent.subscribe(emit);
    if (decisions) return agent.resume(decisions, { signal });
    return prompt ? agent.prompt(prompt, { signal }) : agent.continue({ signal });
  }
  const rest = [{ systemPrompt: "", messages, tools }, config, emit, signal, streamFn] as const;
  if (decisions) return resumeAgentLoop(decisions, ...rest);
  return prompt ? runAgentLoop([prompt], ...rest) : runAgentLoopContinue(...rest);
}

/** Answers by what the request shows: it remembers nothing. */
function modelOf({ turns }: Plan): StreamFn {
  return async function* (given, { messages }) {
    const turn = messages.filter(({ role }) => role === "assistant").length;
    const builder = new AssistantMessageBuilder(given, { now: () => 5 });
    yield* builder.text(`answer ${turn}`);
    for (const [index, call] of (turns[turn] ?? []).entries()) {
      yield* builder.toolCallStart(`c${index}`, call.sequential ? "one_by_one" : "work");
      yield* builder.toolCallDelta(JSON.stringify({ turn, index }));
      yield* builder.toolCallEnd();
    }
    yield* builder.done();
  };
}

function toolsOf({ turns }: Plan, note: (key: string) => void): AgentTool[] {
  const execute: AgentTool["execute"] = async (_id, { turn, index, edited }: any) => {
    note(`${turn}/${index}`);
    const { takes, throws } = planned(turns, { turn, index });
    for (let i = 0; i < takes; i++) await Promise.resolve();
    if (throws) throw new Error(`${turn}/${index} broke`);
    return `did ${turn}/${index}${edited ? " as edited" : ""}`;
  };
  const parameters = { type: "object", properties: { edited: { type: "string" } }, required: ["turn", "index"] };
  return [
    { name: "work", description: "", parameters, execute },
    { name: "one_by_one", description: "", parameters, execute, executionMode: "sequential" },
  ];
}
