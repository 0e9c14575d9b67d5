/** The results that the loop gives in place of a tool's own (SPEC 5.3, 5.5, 7.4). Their texts are for the model and differ. */
import { describe, errorText } from "../errors.js";
import type { ToolCall } from "../messages.js";
import type { AgentTool, AgentToolResult } from "../tool.js";
import type { RunAbort } from "./abort.js";
import { errorResult } from "./results.js";
import type { Run } from "./run.js";

type Abortable = { readonly abort: Pick<RunAbort, "aborted" | "reasonText"> };
type Named = Pick<AgentTool, "name">;

const MAX_NAMES_SHOWN = 20;

export function unknownTool(run: Run, call: ToolCall): AgentToolResult {
  if (typeof call.name !== "string" || call.name.trim() === "") return errorResult("The tool call has no tool name.");
  const names = run.tools.list.map((tool) => tool.name);
  const shown = names.slice(0, MAX_NAMES_SHOWN).join(", ");
  const more = names.length > MAX_NAMES_SHOWN ? ` and ${names.length - MAX_NAMES_SHOWN} more` : "";
  return errorResult(
    `Tool ${describe(call.name)} not found. ${names.length === 0 ? "There are no tools." : `Available tools: ${shown}${more}.`}`,
  );
}

export function argumentsUnusable(tool: AgentTool, error: unknown): AgentToolResult {
  return errorResult(`The arguments of "${tool.name}" could not be prepared or validated: ${errorText(error)}`);
}

export function truncatedCall(): AgentToolResult {
  return errorResult(
    "Not executed: the answer reached the output limit, so the arguments may be cut off. Send the call again, shorter or in parts.",
  );
}

export function deniedCall(reason: unknown): AgentToolResult {
  return errorResult(typeof reason === "string" && reason !== "" ? reason : "Not executed: the user denied this tool call.");
}

/** The call is not started because the run ends. */
export function notExecuted(run: Abortable): AgentToolResult {
  const why = run.abort.aborted ? `the run was aborted (${run.abort.reasonText})` : "the run was stopped because its event sink failed";
  return errorResult(`Not executed: ${why} before this call started.`);
}

export function thrownResult(run: Abortable, tool: Named, error: unknown): AgentToolResult {
  const text = errorText(error);
  if (!run.abort.aborted) return errorResult(text);
  return errorResult(`Tool "${tool.name}" was aborted (${run.abort.reasonText}) and may have partly run: ${text}`);
}

export function stillRunning(run: Abortable, tool: Named): AgentToolResult {
  return errorResult(
    `The run was aborted (${run.abort.reasonText}) and tool "${tool.name}" did not stop in time: it may still be running or may have taken effect.`,
  );
}

export function overLimit(timeoutMs: number): string {
  return `did not finish within its limit of ${timeoutMs} ms`;
}

export function timedOut(tool: Named, timeoutMs: number): AgentToolResult {
  return errorResult(`Tool "${tool.name}" ${overLimit(timeoutMs)}; it may still be running or may have taken effect.`);
}
