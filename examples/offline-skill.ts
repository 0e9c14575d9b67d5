/** What a host teaches the offline model beside what it knows. Runs in a browser. */
import type { Outcome, PlannedCall } from "./offline-planner.js";

/** The tool calls a request needs, step by step; gets their results and returns its part of the answer. */
export type SkillWork = Generator<PlannedCall[], string, Outcome[]>;

export interface Skill {
  /** Words a request of this kind begins with. */
  verbs: string[];
  /** Of the whole request, without the marks at its end. */
  pattern: RegExp;
  /** What the model says it is going to do: "draw a chart". */
  describe(captures: string[]): string;
  work(captures: string[]): SkillWork;
}

/** `show` brings back what was quoted. */
export function skillFor(
  request: string,
  skills: readonly Skill[],
  show: (hidden: string) => string,
): { skill: Skill; captures: string[] } | undefined {
  for (const skill of skills) {
    const match = skill.pattern.exec(request);
    if (match) return { skill, captures: match.slice(1).map((capture = "") => show(capture)) };
  }
  return undefined;
}
