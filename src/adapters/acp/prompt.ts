/** From the blocks of an ACP prompt to a user message (SPEC 10.1). */
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { ImageContent, TextContent } from "../../messages.js";

/** Text and images as they are; files, links and broken images as text that names them. Empty blocks are left out. */
export function promptContent(blocks: readonly ContentBlock[]): (TextContent | ImageContent)[] {
  return blocks.map(promptBlock).filter((block) => block.type === "image" || block.text !== "");
}

function promptBlock(block: ContentBlock): TextContent | ImageContent {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "image":
      return image(block.data, block.mimeType) ?? unread(block.mimeType || "image");
    case "resource_link":
      return text(`[${block.title ?? block.name}](${block.uri})`);
    case "resource": {
      const { uri, mimeType } = block.resource;
      if ("text" in block.resource) return text(`Content of ${uri}:\n\n${block.resource.text}`);
      return image(block.resource.blob, mimeType ?? "") ?? unread(`${uri}: ${mimeType ?? "binary"}`);
    }
    default:
      return unread(block.type);
  }
}

/** Undefined for what a provider would refuse: this request and, the prompt being in the transcript, all later ones. */
function image(data: string, mimeType: string): ImageContent | undefined {
  const isBase64 = data !== "" && !/[^A-Za-z\d+/=]|=[^=]/.test(data);
  return isBase64 && mimeType.startsWith("image/") ? { type: "image", data, mimeType } : undefined;
}

function unread(what: string): TextContent {
  return text(`[${what} content that cannot be read]`);
}

function text(value: string): TextContent {
  return { type: "text", text: value };
}
