import { mcpTools } from "turnloop/mcp";
import { describe, expect, it } from "vitest";
import { callOnce, connect, listed, RawMcpServer } from "./mcp-helpers.js";

/** What a run stores of a server's answer. */
async function stored(answer: object) {
  const { client } = await connect(new RawMcpServer({ list: () => ({ tools: [listed("look")] }), call: () => answer }));
  const { content, details, isError } = await callOnce(await mcpTools(client));
  return { content, details, isError };
}

const text = (words: string) => ({ type: "text", text: words });
const image = { type: "image", data: "aGk=", mimeType: "image/png" };

// SPEC 12.3
describe("what a server answers", () => {
  it.each<[string, object, object]>([
    ["text", text("hi"), text("hi")],
    ["text with annotations", { ...text("hi"), annotations: { priority: 1 } }, text("hi")],
    ["an image", image, image],
    ["audio", { type: "audio", data: "aGkh", mimeType: "audio/wav" }, text("[audio, audio/wav, 3 bytes, not shown]")],
    [
      "a resource link",
      {
        type: "resource_link",
        uri: "file:///a.md",
        name: "a.md",
        title: "Notes",
        mimeType: "text/markdown",
        size: 12,
        description: "What to do",
      },
      text("[resource link file:///a.md, Notes, text/markdown, 12 bytes]\nWhat to do"),
    ],
    ["a bare resource link", { type: "resource_link", uri: "file:///a.md", name: "a.md" }, text("[resource link file:///a.md, a.md]")],
    [
      "an embedded text",
      { type: "resource", resource: { uri: "file:///a.md", mimeType: "text/markdown", text: "# A" } },
      text("[resource file:///a.md, text/markdown]\n# A"),
    ],
    ["an embedded image", { type: "resource", resource: { uri: "x:/a.png", mimeType: "image/png", blob: "aGk=" } }, image],
    [
      "embedded bytes",
      { type: "resource", resource: { uri: "x:/a.zip", mimeType: "application/zip", blob: "aGk=" } },
      text("[resource x:/a.zip, application/zip, 2 bytes, not shown]"),
    ],
    [
      "embedded bytes of no type",
      { type: "resource", resource: { uri: "x:/a", blob: "aGk=" } },
      text("[resource x:/a, 2 bytes, not shown]"),
    ],
    [
      "a kind that the SDK does not know",
      { type: "video", uri: "x:/v" },
      text('[content of a kind that cannot be shown: {"type":"video","uri":"x:/v"}]'),
    ],
    [
      "an image without bytes",
      { type: "image", mimeType: "image/png" },
      text('[content of a kind that cannot be shown: {"type":"image","mimeType":"image/png"}]'),
    ],
    // a provider that refuses an image refuses every later request of the transcript that holds it
    [
      "a drawing that no model takes",
      { type: "image", data: "PHN2Zy8+", mimeType: "image/svg+xml" },
      text("[image, image/svg+xml, 6 bytes, not shown]"),
    ],
    ["an image of no bytes", { type: "image", data: "", mimeType: "image/png" }, text("[image, image/png, 0 bytes, not shown]")],
    [
      "an image of another kind than it says",
      { type: "image", data: "aGk=", mimeType: "text/plain" },
      text("[image, text/plain, 2 bytes, not shown]"),
    ],
    [
      "an embedded drawing",
      { type: "resource", resource: { uri: "x:/a.svg", mimeType: "image/svg+xml", blob: "PHN2Zy8+" } },
      text("[resource x:/a.svg, image/svg+xml, 6 bytes, not shown]"),
    ],
    ["an empty resource", { type: "resource" }, text('[content of a kind that cannot be shown: {"type":"resource"}]')],
    ["null", null as never, text("[content of a kind that cannot be shown: null]")],
  ])("%s", async (_name, sent, shown) => {
    expect(await stored({ content: [text("first"), sent] })).toEqual({
      content: [text("first"), shown],
      details: { content: [text("first"), sent] },
      isError: false,
    });
  });

  it.each<[string, object, object]>([
    [
      "no content but structured",
      { structuredContent: { n: 1 } },
      { content: [text('{"n":1}')], details: { content: [], structuredContent: { n: 1 } }, isError: false },
    ],
    [
      "blank text and structured",
      { content: [text(" ")], structuredContent: { n: 1 } },
      { content: [text('{"n":1}')], details: { content: [text(" ")], structuredContent: { n: 1 } }, isError: false },
    ],
    [
      "both",
      { content: [text("one")], structuredContent: { n: 1 }, _meta: { cost: 2 } },
      { content: [text("one")], details: { content: [text("one")], structuredContent: { n: 1 }, _meta: { cost: 2 } }, isError: false },
    ],
    [
      "a result of the first protocol",
      { toolResult: [1, 2] },
      { content: [text("[1,2]")], details: { content: [], structuredContent: [1, 2] }, isError: false },
    ],
    ["nothing at all", {}, { content: [], details: { content: [] }, isError: false }],
    [
      "an error",
      { content: [text("no such file"), image], isError: true },
      { content: [text("no such file"), image], details: { content: [text("no such file"), image] }, isError: true },
    ],
    [
      "an error that says nothing",
      { content: [], isError: true },
      { content: [text('Tool "look" failed and gave no reason.')], details: { content: [] }, isError: true },
    ],
    [
      "isError that is no boolean",
      { content: [text("x")], isError: "yes" },
      { content: [text("x")], details: { content: [text("x")] }, isError: false },
    ],
  ])("%s", async (_name, answer, expected) => {
    expect(await stored(answer)).toEqual(expected);
  });
});
