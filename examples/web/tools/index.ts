/** All that the model may call. Nothing leaves the page. */
import { type AgentTool, defineTool } from "turnloop";
import { Type } from "turnloop/schema";
import { evaluate, formatNumber } from "../../calculator.js";
import { drawChart } from "./chart.js";
import { readingTools, writingTools } from "./file-tools.js";
import { proofread } from "./proofread.js";
import { SAMPLE_FILES } from "./sample-files.js";
import { Workspace } from "./workspace.js";

const PROOFREAD_MS_PER_LINE = 150;

const calculate = defineTool({
  name: "calculate",
  label: "Calculate",
  kind: "think",
  description: "Works out arithmetic with + - * / % ^, parentheses and decimals.",
  parameters: Type.Object({ expression: Type.String({ description: "For example 12 * (3 + 4)" }) }),
  execute: (_id, { expression }) => `${expression.trim()} = ${formatNumber(evaluate(expression))}`,
});

export interface Toolbox {
  tools: AgentTool[];
  /** The user decides about each call of these. */
  needsApproval(tool: AgentTool): boolean;
}

export function createToolbox(): Toolbox {
  const workspace = new Workspace(SAMPLE_FILES);
  const writing = writingTools(workspace);
  return {
    tools: [...readingTools(workspace), ...writing, calculate, proofread(workspace, PROOFREAD_MS_PER_LINE), drawChart],
    needsApproval: (tool) => writing.includes(tool),
  };
}
