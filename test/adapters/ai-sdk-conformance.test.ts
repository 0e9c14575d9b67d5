import type { StreamFn } from "turnloop";
import { aiSdk } from "turnloop/ai-sdk";
import { type StreamFnScenario, testStreamFn } from "turnloop/testing";
import { describe, expect, test } from "vitest";
import { fakeModel, finish, streamOf, text, type Version, versions } from "./ai-sdk-helpers.js";

const cities = ['{"city":"Paris"}', '{"city":"Rome"}'];
const reasoning = ["Let me ", "think."].map((delta) => ({ type: "reasoning-delta", id: "r", delta }));

function parts(version: Version, scenario: StreamFnScenario): unknown[] {
  const words = text("t", "The sea is ", "wide, the sea ", "is deep.");
  switch (scenario) {
    case "text":
      return [...words, finish(version)];
    case "thinking":
      return [...reasoning, { type: "reasoning-end", id: "r" }, ...words, finish(version)];
    case "calls": {
      const calls = cities.flatMap((input, index) => [
        { type: "tool-input-start", id: `c${index}`, toolName: "weather" },
        { type: "tool-input-delta", id: `c${index}`, delta: input.slice(0, 5) },
        { type: "tool-input-delta", id: `c${index}`, delta: input.slice(5) },
        { type: "tool-call", toolCallId: `c${index}`, toolName: "weather", input },
      ]);
      return [...calls, finish(version, "tool-calls")];
    }
    case "length":
      return [...words, finish(version, "length")];
    case "error":
      return [...words, { type: "error", error: new Error("fetch failed") }];
    case "hang":
      return words.slice(0, 2);
  }
}

const speaking =
  (version: Version) =>
  (scenario: StreamFnScenario): StreamFn =>
    aiSdk(fakeModel(version, () => streamOf(parts(version, scenario), scenario === "hang" ? "hang" : "close")).model);

// SPEC 12.2, 13.3
describe.each(versions)("aiSdk is a StreamFn", (version) => {
  testStreamFn(`aiSdk with a ${version} model`, speaking(version), { test, expect, quietMs: 10 });
});
