/** Blocks of prompts, named by their index in a scenario, and what the model reads of each. */
import type { ImageContent, TextContent } from "turnloop";
import { raise } from "./odd-values.js";

export interface PromptRow {
  /** As the client gives it, new each time. */
  given: () => unknown;
  /** What the model reads; undefined: the prompt is refused; "nothing": the block is left out. */
  read?: TextContent | ImageContent | "nothing";
  /** Only within a process: JSON cannot hold it. */
  isLive?: true;
}

const text = (value: string): TextContent => ({ type: "text", text: value });
const plain = (given: object, read?: PromptRow["read"]): PromptRow => ({ given: () => structuredClone(given), ...(read && { read }) });
const refused = (given: unknown): PromptRow => ({ given: () => given });
const live = (given: () => unknown, read?: PromptRow["read"]): PromptRow => ({ given, isLive: true, ...(read && { read }) });

const image = { type: "image", data: "aGk=", mimeType: "image/png" } as const;
const broken = text("[image/png content that cannot be read]");
const resource = (more: object): object => ({ type: "resource", resource: { uri: "file:///a", ...more } });
const hidden = (block: object, key: string): object =>
  Object.defineProperty({ ...block }, key, { enumerable: true, get: () => raise(new Error(`no ${key} for you`)) });

function circular(): object {
  const value: Record<string, unknown> = { big: 10n };
  value["self"] = value;
  return value;
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({ ...text("gone") }, {});
  revoke();
  return proxy;
}

export const PROMPTS: readonly PromptRow[] = [
  plain(text("go"), text("go")),
  plain(text(""), "nothing"),
  plain(text("cut \ud83d"), text("cut \ufffd")),
  plain({ ...text("noted"), annotations: { audience: ["user"], priority: 0.5 }, _meta: { a: 1 } }, text("noted")),
  {
    given: () => JSON.parse('{"type":"text","text":"own","__proto__":{"poisoned":1},"constructor":{"prototype":{"poisoned":1}}}'),
    read: text("own"),
  },
  plain(image, image),
  plain({ ...image, uri: "file:///a.png" }, image),
  ...["", "data:image/png;base64,aGk=", "a=Gk", "%%%", "aG k="].map((data) => plain({ ...image, data }, broken)),
  plain({ ...image, mimeType: "" }, text("[image content that cannot be read]")),
  plain({ ...image, mimeType: "image/\ud83d" }, { ...image, mimeType: "image/\ufffd" }),
  plain({ type: "audio", data: "aGk=", mimeType: "audio/wav" }, text("[audio content that cannot be read]")),
  plain({ type: "resource_link", uri: "file:///a", name: "a", title: "A" }, text("[A](file:///a)")),
  plain({ type: "resource_link", uri: "", name: "" }, text("[]()")),
  plain(resource({ text: "inside" }), text("Content of file:///a:\n\ninside")),
  plain(resource({ blob: "aGk=", mimeType: "image/gif" }), { ...image, mimeType: "image/gif" }),
  plain(resource({ blob: "", mimeType: "image/gif" }), text("[file:///a: image/gif content that cannot be read]")),
  plain(resource({ blob: "aGk=" }), text("[file:///a: binary content that cannot be read]")),
  ...[null, 5, "text", [], {}, { type: "video" }, { type: "text" }, { type: "text", text: 5 }, { text: "untyped" }].map(refused),
  ...[{ type: "image", data: "aGk=" }, { type: "__proto__" }, { type: "constructor" }, resource({}), { type: "resource" }].map(refused),
  live(() => ({ ...text("tied"), _meta: circular() }), text("tied")),
  live(() => Object.assign(Object.create(null), text("bare")), text("bare")),
  live(() => Object.freeze(text("cold")), text("cold")),
  live(() => ({ ...text("said"), toJSON: () => raise(new Error("no JSON for you")) }), text("said")),
  live(() => hidden(text(""), "text")),
  live(() => hidden(text("x"), "type")),
  live(() => hidden(image, "data")),
  live(() => revoked()),
  live(() => Symbol("block")),
  live(() => () => text("called")),
  live(() => 10n),
];

/** What a user message holds of the prompt; undefined: it is refused. */
export function readOf(rows: readonly PromptRow[]): (TextContent | ImageContent)[] | undefined {
  const read = rows.map((row) => row.read);
  const content = read.filter((block): block is TextContent | ImageContent => typeof block === "object");
  return read.includes(undefined) || content.length === 0 ? undefined : content;
}
