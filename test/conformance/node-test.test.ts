/** testStreamFn under Node's own test runner. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test as nodeTest } from "node:test";
import type { StreamFnTestOptions } from "turnloop/testing";
import { expect, it } from "vitest";

// SPEC 13.3
it("fits node:test with an expect of one line", () => {
  const shim: StreamFnTestOptions = {
    test: nodeTest,
    expect: (actual) => ({ toBe: (expected) => assert.equal(actual, expected) }),
  };
  expect(shim).toBeDefined();
});

it("runs under node:test, skips and failures included", () => {
  const target = process.env.TURNLOOP_TARGET;
  if (!target || target === "src") return;
  const code = `
    import assert from "node:assert"; import { test } from "node:test";
    const { scriptedModel, testStreamFn } = await import(${JSON.stringify(new URL("../../dist/testing.js", import.meta.url).href)});
    const expect = (actual) => ({ toBe: (expected) => assert.equal(actual, expected) });
    testStreamFn("scripted", (s) => (s === "text" ? scriptedModel(["a b c"]) : undefined), { test, expect });`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
  expect(stdout).toMatch(/# fail 0/);
  expect(stdout).toMatch(/# skipped [1-9]/);
});
