/** Values as the page words them. */
import type { AgentMessage, ImageContent, TextContent, Usage } from "turnloop";

/** "0.4 s", "12 s", "3 min 5 s" */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

/** The clock of a wait, in whole seconds. */
export function clock(milliseconds: number): string {
  return milliseconds < 60_000 ? `${Math.floor(Math.max(0, milliseconds) / 1000)} s` : duration(milliseconds);
}

/** "path: a.txt · lineCount: 5" */
export function argumentLine(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const values = Object.entries(args).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return values.join(" · ").replace(/\s+/g, " ").slice(0, 300);
}

/** "1,204 in · 88 out · 1,024 cached · $0.0123"; "" when the provider reported nothing. */
export function usageLine(usage: Usage): string {
  if (!(usage.totalTokens > 0)) return "";
  const parts = [`${count(usage.input)} in`, `${count(usage.output)} out`];
  if (usage.cacheRead > 0) parts.push(`${count(usage.cacheRead)} cached`);
  if (usage.cost?.total > 0) parts.push(`$${usage.cost.total.toFixed(4)}`);
  return parts.join(" · ");
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function textOf(message: AgentMessage): string {
  const { content } = message as { content: string | (TextContent | ImageContent)[] };
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

export function imagesOf(content: unknown): ImageContent[] {
  return Array.isArray(content) ? content.filter((block) => block?.type === "image") : [];
}

const SHOWN_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Undefined for what a model should not make this page load. */
export function imageUrl({ data, mimeType }: ImageContent): string | undefined {
  return SHOWN_TYPES.includes(mimeType) ? `data:${mimeType};base64,${data}` : undefined;
}

export { SHOWN_TYPES as IMAGE_TYPES };
