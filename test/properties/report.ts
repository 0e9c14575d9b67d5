/** A counterexample as a person reads it. */
import { show } from "./odd-values.js";
import { type Scenario, sketch } from "./scenario.js";
import type { World } from "./world.js";

/** The scenario without what is as in the plainest run: paste it into counterexamples.test.ts. */
function describeScenario(scenario: Scenario): string {
  const plain = sketch({ answers: [{}], tools: [{}] });
  const differing = (value: object, base: object): object =>
    Object.fromEntries(Object.entries(value).filter(([key, item]) => show(item) !== show(base[key as keyof typeof base])));
  const answers = scenario.answers.map((answer) => differing(answer, plain.answers[0] as object));
  const tools = scenario.tools.map((tool) => differing(tool, plain.tools[0] as object));
  const parts = { ...scenario, answers, tools, ...inner(scenario, plain, differing) };
  const named = differing(parts, { ...sketch({}), answers: [], tools: [] });
  return show(named).replaceAll(/"(\w+)":/g, " $1: ");
}

function inner(scenario: Scenario, plain: Scenario, differing: (value: object, base: object) => object): object {
  const entries = (["sink", "consumer", "config", "abort"] as const).map((key) => [key, differing(scenario[key], plain[key])]);
  return Object.fromEntries(entries.filter(([, value]) => Object.keys(value as object).length > 0));
}

export function describeRun({ violations, scenario, sinkCalls }: World): string {
  const begin = sinkCalls[0]?.from ?? 0;
  const events = sinkCalls.map(({ json, from }, i) => `${String(i).padStart(3)} ${String(from - begin).padStart(5)} ms  ${cut(json, 150)}`);
  const wrong = violations.map((text) => `  ${cut(text, 900)}`);
  return ["What is wrong:", ...wrong, "The scenario:", `  ${describeScenario(scenario)}`, "The events:", ...events].join("\n");
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}...` : text;
}
