/** From the blocks of an ACP prompt to a user message (SPEC 10.1). */
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { ImageContent, TextContent } from "../../messages.js";

/** Text and images as they are; files and links as text that names them. Empty blocks are left out. */
export function promptContent(blocks: readonly ContentBlock[]): (TextContent | ImageContent)[] {
  return blocks.map(promptBlock).filter((block) => block.type === "image" || block.text !== "");
}

function promptBlock(block: ContentBlock): TextContent | ImageContent {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "image":
      return { type: "image", data: block.data, mimeType: block.mimeType };
    case "resource_link":
      return text(`[${block.title ?? block.name}](${block.uri})`);
    case "resource": {
      const { uri, mimeType } = block.resource;
      if ("text" in block.resource) return text(`Content of ${uri}:\n\n${block.resource.text}`);
      if (mimeType?.startsWith("image/")) return { type: "image", data: block.resource.blob, mimeType };
      return text(`[${uri}: ${mimeType ?? "binary"} content that cannot be read]`);
    }
    default:
      return text(`[${block.type} content that cannot be read]`);
  }
}

function text(value: string): TextContent {
  return { type: "text", text: value };
}
