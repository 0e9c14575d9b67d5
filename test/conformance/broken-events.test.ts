import { describe, it } from "vitest";
import {
  bare,
  block,
  type Case,
  changing,
  deaf,
  drop,
  endless,
  expectFailures,
  final,
  only,
  stalling,
  thenGoesOn,
  throwing,
  titles,
  usage,
  when,
} from "./broken.js";

const { order, terminal, sums, complete, shows } = titles;

function cyclic(): object {
  const raw: Record<string, unknown> = {};
  raw["self"] = raw;
  return raw;
}

// SPEC 13.3
describe("testStreamFn finds, and nothing else with it,", () => {
  it.each<Case>([
    ["no start", changing("text", drop("start")), [`text: ${order}`, /SPEC 3: start comes before everything.*got event 0 \(text_start\)/]],
    [
      "a done without a start",
      changing("length", (e) => (e.type === "start" ? [] : bare(e))),
      [`length: ${order}`, /start comes before.*got event 0 \(done\)/],
    ],
    [
      "a late start",
      changing(
        "text",
        when("text_delta", (e) => [e, { ...e, type: "start" }]),
      ),
      [`text: ${order}`, /there is one start/],
    ],
    [
      "an event of no known type",
      changing(
        "text",
        when("text_end", (e) => [{ type: "ping" }, e]),
      ),
      [`text: ${order}`, /event 8 \(ping\)/],
    ],
    [
      "an event that is none",
      changing(
        "text",
        when("text_end", (e) => [null, e]),
      ),
      [`text: ${order}`, /types.*event 8 \(null\)/],
    ],
    ["a delta before its block", changing("text", drop("text_start")), [`text: ${order}`, /opened by its .*event 1 \(text_delta\)/]],
    ["a block never closed", changing("text", drop("text_end")), [`text: ${order}`, /block 0 \(text\) got no \.\.\._end/]],
    [
      "a block closed early",
      changing(
        "text",
        when("text_delta", (e) => [e, { ...e, type: "text_end", content: e.delta }]),
      ),
      [`text: ${order}`, /nothing comes .* after/],
    ],
    [
      "a wrong contentIndex",
      changing(
        "thinking",
        when("thinking_start", (e) => ({ ...e, contentIndex: 1 })),
      ),
      [`thinking: ${order}`, /next contentIndex, here 0; .*contentIndex 1/],
    ],
    [
      "a contentIndex that is not one of the partial",
      changing(
        "thinking",
        when("thinking_start", (e) => ({ ...e, partial: { ...e.partial, content: [] } })),
      ),
      [`thinking: ${order}`, /names the block of the partial.*a thinking; got event 1/],
    ],
    [
      "an event about a block of another kind",
      changing(
        "text",
        when("text_start", (e) => ({ ...e, type: "thinking_start" })),
      ),
      [`text: ${order}`, /names the block of the partial/],
    ],
    [
      "an event without a partial",
      changing(
        "text",
        when("text_start", ({ partial: _, ...e }) => e),
      ),
      [`text: ${order}`, /has a partial/],
    ],

    ["no terminal event", changing("text", drop("done")), [`text: ${terminal}`, /ended after event 8 \(text_end\) without one/]],
    [
      "two terminal events",
      changing(
        "text",
        when("done", (e) => [e, e]),
      ),
      [`text: ${terminal}`, /event 10 \(done\) came after event 9/],
    ],
    ["a throw after the end", only("text", thenGoesOn(throwing)), [`text: ${terminal}`, /threw after event 9 \(done\)/]],
    ["no end after the end", only("text", thenGoesOn(stalling)), [`text: ${terminal}`, /did not end after event 9 \(done\) within 60 ms/]],
    ["a silence", only("length", deaf), [`length: ${terminal}`, /after event 0 \(start\) nothing came for 60 ms/]],
    ["no stream at all", only("length", () => () => new Promise(() => {})), [`length: ${terminal}`, /at the beginning nothing came/]],
    ["an endless stream", only("text", thenGoesOn(endless)), [`text: ${terminal}`, /event 10 \(ping\) came after event 9 \(done\)/]],

    [
      "a lost delta",
      changing(
        "length",
        when("text_delta", (e) => ({ ...e, delta: "" })),
      ),
      [`length: ${sums}`, /event 8 \(text_end\) has the content "The sea is.*but its deltas say "is wide/],
      [`length: ${shows}`, /event 2 \(text_delta\) shows "The sea " where the deltas say ""/],
    ],
    [
      "a final text of its own",
      final("length", block(0, { text: "Other" })),
      [`length: ${sums}`, /SPEC 13.3: the deltas.*block 0 says "Other", its deltas say "The sea is wide/],
    ],
    [
      "a block that is lost",
      final("thinking", ({ content }) => ({ content: content.slice(0, 1) })),
      [`thinking: ${sums}`, /block 1 was streamed/],
    ],
    [
      "a block that was never streamed",
      final("length", ({ content }) => ({ content: [...content, { type: "text", text: "!" }] })),
      [`length: ${sums}`, /block 1 says "!", its deltas say ""/],
    ],
    [
      "arguments of its own",
      final("calls", block(1, { arguments: { city: "Bonn" } })),
      [`calls: ${sums}`, /block 1 is .*Bonn.* toolcall_end says .*Rome/],
    ],
    [
      "deltas that are not the arguments",
      changing(
        "calls",
        when("toolcall_delta", (e) => ({ ...e, delta: "[" })),
      ),
      [`calls: ${sums}`, /no JSON: "\[:\\"Paris/],
    ],
    ["a failure that loses the text", final("error", () => ({ content: [] })), [`error: ${sums}`, /block 0 was streamed.* and is missing/]],

    [
      "a terminal event without its message",
      changing(
        "length",
        when("done", ({ message: _, ...e }) => e),
      ),
      [`length: ${complete}`, /"message"; got none/],
    ],
    ["another role", final("text", () => ({ role: "model" })), [`text: ${complete}`, /role must be "assistant"; got "model"/]],
    ...["api", "provider", "model"].map(
      (key): Case => [
        `no ${key}`,
        final("calls", () => ({ [key]: "" })),
        [`calls: ${complete}`, new RegExp(`SPEC 2: .*${key} must be a non-empty string; got ""`)],
      ],
    ),
    ["a date", final("text", () => ({ timestamp: new Date(0) })), [`text: ${complete}`, /timestamp must be in Unix milliseconds/]],
    [
      "no number of tokens",
      final("text", usage({ input: Number.NaN })),
      [`text: ${complete}`, /usage\.input must be a number from 0; got NaN/],
    ],
    ["no cost", final("error", usage({ cost: undefined })), [`error: ${complete}`, /usage\.cost\.input must be.*got undefined/]],
    [
      "a block of no known kind",
      final("thinking", ({ content }) => ({ content: [...content, { type: "image" }] })),
      [`thinking: ${complete}`, /content\[2\] must be a text, a thinking or a toolCall block; got .*image/],
    ],
    [
      "an instance in the message",
      final("text", () => ({ raw: new Map() })),
      [`text: ${complete}`, /SPEC 2.1: .*message\.raw is an instance of Map/],
    ],
    ["a cycle in the message", final("text", () => ({ raw: cyclic() })), [`text: ${complete}`, /message\.raw\.self contains itself/]],
  ])("%s", (_, make, ...expected) => expectFailures(make, expected));
});
