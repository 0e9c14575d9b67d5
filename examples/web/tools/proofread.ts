/** A tool that takes its time and says how far it is. */
import { type AgentTool, defineTool } from "turnloop";
import { Type } from "turnloop/schema";
import { counted } from "../../wording.js";
import type { Workspace } from "./workspace.js";

/** What `details` of a partial result may hold for a progress bar. */
export interface ProgressDetails {
  done: number;
  total: number;
}

const CHECKS: { pattern: RegExp; finding(match: string): string }[] = [
  { pattern: /\b(\w+)\s+\1\b/i, finding: (match) => `"${match}" is there twice` },
  { pattern: /[ \t]+$/, finding: () => "ends in a space" },
  { pattern: /.{120,}/, finding: (match) => `has ${match.length} characters` },
];

export function proofread(workspace: Workspace, msPerLine: number): AgentTool {
  return defineTool({
    name: "proofread",
    label: "Proofread",
    kind: "read",
    description: "Reads a text file slowly, line by line, and reports doubled words, spaces at line ends and very long lines.",
    parameters: Type.Object({ path: Type.String({ minLength: 1, description: "A file of the workspace" }) }),
    async execute(_id, { path }, signal, onUpdate) {
      const { lines } = workspace.read(path);
      const findings: string[] = [];
      for (const [index, line] of lines.entries()) {
        const details: ProgressDetails = { done: index, total: lines.length };
        onUpdate({
          content: [{ type: "text", text: `line ${index + 1} of ${lines.length}, ${counted(findings.length, "finding")}` }],
          details,
        });
        await sleep(msPerLine, signal);
        for (const { pattern, finding } of CHECKS) {
          const match = pattern.exec(line);
          if (match) findings.push(`line ${index + 1} ${finding(match[0])}`);
        }
      }
      return [`${path}: ${counted(findings.length, "finding")} in ${counted(lines.length, "line")}`, ...findings].join("\n");
    },
  });
}

/** Rejects with the reason when the signal fires. */
export function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
