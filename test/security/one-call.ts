import { answer, finalMessages } from "../field-reports/conditions.js";
import { makeTool, resultsOf, run } from "../helpers.js";

/** A run of one call of one tool, whose arguments come whole, as they are. */
export async function outcomeOf(args: unknown, parameters?: unknown, execute: (id: string, args: any) => unknown = () => "ran") {
  const content = [{ type: "toolCall", id: "a", name: "t", arguments: args }];
  const answers = [answer({ content, stopReason: "toolUse" }), answer({ content: [{ type: "text", text: "done" }] })];
  const tools = [makeTool("t", execute as never, { parameters: parameters as object })];
  const record = await run((...request) => finalMessages(answers.shift())(...request), { tools });
  return { ...record, result: resultsOf(record)[0] };
}
