/** A worker: conversations about the files of a folder, with the offline model. Start as many as you like. */
import type { AgentEvent } from "turnloop";
import { offlineModel } from "../offline-model.js";
import { workspaceTools } from "../workspace-tools.js";
import { startWorker } from "./start-worker.js";

await startWorker({
  model: { id: "offline", provider: "example" },
  streamFn: offlineModel(),
  tools: workspaceTools(process.env["WORKSPACE"] ?? process.cwd()),
  systemPrompt: "Answer questions about the files of the workspace. Look at them with your tools; do not guess.",
  emit: (_conversation, event) => {
    const line = describe(event);
    if (line) console.log(line);
  },
});

function describe(event: AgentEvent): string | undefined {
  if (event.type === "tool_execution_start") return `tool ${event.toolName} ${JSON.stringify(event.args)}`;
  if (event.type === "tool_execution_end") return `tool ${event.toolName} ${event.isError ? "failed" : "is done"}`;
  return event.type === "agent_end" ? `run ${event.outcome}` : undefined;
}
