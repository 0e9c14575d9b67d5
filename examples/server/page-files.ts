/** The files of the page, read once. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface PageFile {
  headers: Record<string, string>;
  content: Buffer;
}

/** By the path they are asked for with. */
export type Page = ReadonlyMap<string, PageFile>;

const HEADERS = {
  "cache-control": "no-cache",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

export function readPage(folder: string): Page {
  const file = (name: string, type: string): PageFile => ({
    headers: { ...HEADERS, "content-type": `${type}; charset=utf-8` },
    content: readFileSync(join(folder, name)),
  });
  return new Map([
    ["/", file("index.html", "text/html")],
    ["/page.js", file("page.js", "text/javascript")],
  ]);
}
