import type { ImageContent } from "turnloop";
import { el } from "./dom.js";
import { imageUrl } from "./format.js";

/** An image with its description; a line in its place if it is of a kind that is not shown. */
export function figure(image: ImageContent, description: string): HTMLElement {
  const src = imageUrl(image);
  if (src === undefined) return el("p", { class: "muted" }, `${description}: ${image.mimeType}, not shown`);
  return el("img", { class: "picture", src, alt: description });
}
