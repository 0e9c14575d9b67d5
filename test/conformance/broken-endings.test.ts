import { describe, expect, it } from "vitest";
import {
  abortedLate,
  bare,
  type Case,
  changing,
  copied,
  deaf,
  type Expected,
  expectFailures,
  final,
  first,
  info,
  lagging,
  oneCall,
  only,
  otherCall,
  titles,
  when,
  writingLater,
} from "./broken.js";
import { good, live, outcomeOf } from "./helpers.js";

const { ends, encoded, shows, still, copies, untouched, serialised, firedAlready, inTheMiddle, beforeFirst } = titles;

function fail(text: string): never {
  throw new Error(text);
}

// SPEC 13.3
describe("testStreamFn finds, and nothing else with it,", () => {
  it.each<Case>([
    [
      "a wrong stop reason",
      changing(
        "length",
        when("done", (e) => ({ ...e, reason: "stop" })),
      ),
      [`length: ${ends}`, /"length" ends in done .*got event 9 \(done\), reason "stop"/],
    ],
    ["a stop reason of no known kind", final("text", () => ({ stopReason: "end_turn" })), [`text: ${ends}`, /got "stop" and "end_turn"/]],
    [
      "calls that end in stop",
      changing(
        "calls",
        when("done", (e) => ({ ...e, reason: "stop", message: { ...e.message, stopReason: "stop" } })),
      ),
      [`calls: ${ends}`, /the reason "toolUse"; got/],
    ],
    [
      "a failure in place of an answer",
      only("length", () => good("error")),
      [`length: ${ends}`, /got event 9 \(error\).* saying "no luck"/],
    ],
    [
      "an answer in place of a failure",
      only("error", () => good("text")),
      [`error: ${encoded}`, /ends in error with the reason "error"; got event 9 \(done\)/],
    ],
    ["an answer without text", changing("text", bare), [`text: ${ends}`, /answers with text; got \[\]/]],
    [
      "an answer without thinking",
      only("thinking", () => good("text")),
      [`thinking: ${ends}`, /answers with a thinking block; got .*The sea/],
    ],
    ["one call", changing("calls", oneCall), [`calls: ${ends}`, /two tool calls or more; got 1/]],
    ["two calls of one id", otherCall({ id: "c1" }), [`calls: ${ends}`, /ids of their own; two are c1/]],
    ["a call without a name", otherCall({ name: "" }), [`calls: ${ends}`, /has an id and a name; got/]],
    ["a call with broken arguments", otherCall({ argumentsError: "broken" }), [`calls: ${ends}`, /arguments are an object; got "broken"/]],

    [
      "a failure that is thrown",
      only(
        "error",
        first((_m, _c, o) => (o?.signal?.aborted ? undefined : fail("at once"))),
      ),
      [`error: ${encoded}`, /not thrown; this was thrown: "Error: at once"/],
    ],
    [
      "a failure that is a rejection",
      only(
        "error",
        first((_m, _c, o) => (o?.signal?.aborted ? undefined : Promise.reject(new Error("later")))),
      ),
      [`error: ${encoded}`, /not thrown; this was thrown: "Error: later"/],
    ],
    ["a failure without a text", final("error", () => ({ errorMessage: " " })), [`error: ${encoded}`, /says why in errorMessage; got " "/]],
    [
      "an errorInfo of no known kind",
      final("error", () => ({ errorInfo: { kind: "bad", retryable: true } })),
      [`error: ${encoded}`, /one of rate_limit, .*got "bad"/],
    ],
    [
      "an errorInfo that says nothing of retries",
      final("error", () => ({ errorInfo: { kind: "auth" } })),
      [`error: ${encoded}`, /retryable is a boolean/],
    ],
    [
      "a status that is a text",
      final("error", info({ status: "529" })),
      [`error: ${encoded}`, /status is an integer where there is one; got "529"/],
    ],
    ["a waiting time below 0", final("error", info({ retryAfterMs: -1 })), [`error: ${encoded}`, /retryAfterMs is a number.*got -1/]],

    [
      "a partial that lags behind",
      changing("text", lagging()),
      [`text: ${shows}`, /event 2 \(text_delta\) shows "" where the deltas say "The sea "/],
    ],
    [
      "partials that are one object",
      only("text", () => live("text")),
      [`text: ${still}`, /event 0 \(start\) did: it had 0 blocks and now has 1.*livePartials/],
    ],
    [
      "a partial that loses blocks later",
      changing(
        "length",
        writingLater(({ content }) => content.splice(0)),
      ),
      [`length: ${still}`, /it had 1 blocks and now has 0/],
    ],
    [
      "a partial whose usage changes",
      changing(
        "length",
        writingLater((partial) => Object.assign(partial, { usage: 1 })),
      ),
      [`length: ${still}`, /its fields beside the content were/],
    ],
    [
      "a block that changes",
      changing(
        "length",
        writingLater(({ content }) => Object.assign(content[0] ?? {}, { text: "!" })),
      ),
      [`length: ${still}`, /event 1 .*block 0 was .* and now is/],
    ],
    [
      "a deep copy for each delta, several blocks",
      changing("calls", copied),
      [`calls: ${copies}`, /event 7 \(toolcall_delta\) is not about block 0, which was copied/],
    ],
    [
      "a deep copy for each delta, one block",
      changing("text", copied),
      [`text: ${serialised}`, /in 6 deltas the text so far went 5 times through structuredClone/],
    ],

    [
      "a request that is written to",
      only(
        "text",
        first((_, { messages }) => void Object.assign(messages[0]?.content[0] ?? {}, { text: "x" })),
      ),
      [`text: ${untouched}`, /context\.messages\[0\]\.content\[0\]\.text was "Write .* and is "x"/],
    ],
    [
      "tools that are written to and put back",
      only(
        "calls",
        first((_, { tools }) => void Object.assign(tools?.[0] ?? {}, { name: tools?.[0]?.name })),
      ),
      [`calls: ${untouched}`, /with a frozen one the call fails: "(Cannot|Attempted to) assign/],
    ],
    [
      "a model that is written to",
      only(
        "calls",
        first((model) => void Object.assign(model, { id: "other" })),
      ),
      [`calls: ${untouched}`, /frozen one the call fails/],
    ],
    [
      "options that are written to",
      only(
        "text",
        first((_m, _c, options) => void Object.assign(options ?? {}, { temperature: 0 })),
      ),
      [`text: ${untouched}`, /frozen one the call fails/],
    ],

    [
      "a signal that is not looked at before the call",
      only("text", (f) => (model, context) => f(model, context)),
      [`text: ${firedAlready}`, /an aborted call ends in error with the reason "aborted"; got event 9/],
    ],
    [
      "a throw for a signal that has fired",
      only(
        "error",
        first((_m, _c, o) => (o?.signal?.aborted ? fail("at once") : undefined)),
      ),
      [`error: ${firedAlready}`, /not thrown; this was thrown: "Error: at once"/],
    ],
    [
      "a signal that is never looked at",
      only("hang", deaf),
      ...[firedAlready, beforeFirst, inTheMiddle].map(
        (title): Expected => [`hang: ${title}`, /after event 0 \(start\) nothing came for 30 ms/],
      ),
    ],
    [
      "an abort that is an error like others",
      changing(
        "hang",
        abortedLate(({ error }) => ({ reason: "error", error: { ...error, stopReason: "error" } })),
      ),
      [`hang: ${inTheMiddle}`, /the reason "aborted"; got event 9 \(error\), reason "error"/],
    ],
    [
      "an abort that loses the text",
      changing(
        "hang",
        abortedLate(({ error }) => ({ error: { ...error, content: [] } })),
      ),
      [`hang: ${inTheMiddle}`, /block 0 was streamed.* and is missing/],
    ],
    [
      "an abort with another kind of error",
      changing(
        "hang",
        abortedLate(({ error }) => ({ error: { ...error, errorInfo: { kind: "timeout", retryable: true } } })),
      ),
      [`hang: ${inTheMiddle}`, /kind of an aborted call is "aborted"; got "timeout"/],
    ],
    [
      "a hang that does not hang",
      only("hang", () => good("text")),
      [`hang: ${beforeFirst}`, /an aborted call ends in error.*; got event 9 \(done\)/],
      [`hang: ${inTheMiddle}`, /must give a StreamFn that is silent/],
    ],
  ])("%s", (_, make, ...expected) => expectFailures(make, expected));

  it("partials that fall behind also where they are live", async () => {
    const { failures } = await outcomeOf(changing("text", lagging()), { livePartials: true });
    expect(failures.map(([title]) => title)).toEqual([`text: ${shows}`]);
  });

  it("what makeStreamFn throws", async () => {
    const { failures, titles } = await outcomeOf(() => Promise.reject(new Error("no server")));
    expect(failures).toEqual(titles.map((title) => [title, "no server"]));
  });
});
