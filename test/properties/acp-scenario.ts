/** What an ACP client, its user, its agents, their models and tools do in one random run. */
import fc from "fast-check";
import { PROMPTS } from "./acp-prompts.js";

const texts = ["Hello", "", "a\ud83d", "\ude00b", "x".repeat(40), "\n"];

interface CallSketch {
  tool: (typeof tools)[number];
  id: string | undefined;
  args: string;
}
export type BlockSketch = { text: string } | { thinking: string } | CallSketch;

export interface AnswerSketch {
  blocks: BlockSketch[];
  end: (typeof ends)[number];
  /** Events before a fault. */
  after: number;
  /** False: the answer comes whole, with no delta. */
  isStreamed: boolean;
}

export interface SessionSketch {
  answers: AnswerSketch[];
  /** What the user says, one after the other and over again. */
  says: (typeof sayings)[number][];
  thinking: boolean;
  sequential: boolean;
  /** The blocks of each prompt, as rows of PROMPTS. */
  prompts: number[][];
  /** When the client cancels a prompt, in turns of the event loop after it was sent. */
  cancelAt: (number | undefined)[];
  cancelBy: "notification" | "request";
}

export interface AcpScenario {
  sessions: SessionSketch[];
  /** Its messages go as they are; else as JSON, without what that cannot hold. */
  isInProcess: boolean;
  /** When the client leaves. */
  leaveAt: number | undefined;
}

const tools = ["ok", "edit", "failing", "hanging", "late", "chatty", "image", "unreadable", "nope"] as const;
const ends = [
  "done",
  "done",
  "done",
  "done",
  "length",
  "error",
  "refusal",
  "stall",
  "throw",
  "end",
  "restart",
  "noStart",
  "reject",
] as const;
const sayings = [
  "allow_once",
  "allow_once",
  "allow_always",
  "reject_once",
  "reject_always",
  "cancelled",
  "unknown",
  "fails",
  "hangs",
] as const;
const json = ["{}", '{"path":"a","newText":"\\ud83d"}', '{"path":"/x","content":"y","line":3}', "{broken", "[]"];

const text = fc.constantFrom(...texts);
const block: fc.Arbitrary<BlockSketch> = fc.oneof(
  fc.record({ text }),
  fc.record({ thinking: text }),
  fc.record({ tool: fc.constantFrom(...tools), id: fc.constantFrom("a", "b", "", undefined), args: fc.constantFrom(...json) }),
);
const answer: fc.Arbitrary<AnswerSketch> = fc.record({
  blocks: fc.array(block, { maxLength: 4 }),
  end: fc.constantFrom(...ends),
  after: fc.nat(12),
  isStreamed: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
});
const prompt: fc.Arbitrary<number[]> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<number[]>([0]) },
  { weight: 1, arbitrary: fc.array(fc.nat(PROMPTS.length - 1), { maxLength: 4 }) },
);
const moment = fc.option(fc.nat(25), { nil: undefined, freq: 1 });
const session: fc.Arbitrary<SessionSketch> = fc.record({
  answers: fc.array(answer, { maxLength: 5 }),
  says: fc.array(fc.constantFrom(...sayings), { maxLength: 3 }),
  thinking: fc.boolean(),
  sequential: fc.boolean(),
  prompts: fc.array(prompt, { minLength: 1, maxLength: 3 }),
  cancelAt: fc.array(moment, { minLength: 3, maxLength: 3 }),
  cancelBy: fc.constantFrom("notification", "request"),
});

export const acpScenarios: fc.Arbitrary<AcpScenario> = fc.record({
  sessions: fc.array(session, { minLength: 1, maxLength: 2 }),
  isInProcess: fc.boolean(),
  leaveAt: fc.option(fc.nat(40), { nil: undefined, freq: 6 }),
});
