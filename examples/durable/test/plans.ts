import type { AgentMessage } from "turnloop";

/** What the scripted model says turn by turn to `do <plan> <key>`, and which calls it makes. */
export const plans: Record<string, { text: string; calls: string[] }[]> = {
  six: [
    { text: "First one.", calls: ["a"] },
    { text: "Now three.", calls: ["b", "c", "d"] },
    { text: "Then two.", calls: ["e", "f"] },
    { text: "All six are done.", calls: [] },
  ],
  three: [
    { text: "Two at once.", calls: ["a", "b"] },
    { text: "One more.", calls: ["c"] },
    { text: "All three are done.", calls: [] },
  ],
  one: [
    { text: "Just one.", calls: ["a"] },
    { text: "It is done.", calls: [] },
  ],
  wrong: [{ text: "This host's hook waits.", calls: ["mistake", "b", "c"] }],
  deploy: [
    { text: "May I?", calls: ["a", "deploy"] },
    { text: "That was it.", calls: [] },
  ],
};

export function textOf(message: AgentMessage | undefined): string {
  const content = message?.content ?? "";
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}
