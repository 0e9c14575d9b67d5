import { describe, expect, it } from "vitest";
import { entries } from "../../entries.js";

const anywhere: Record<string, () => Promise<object>> = {
  index: () => import("turnloop"),
  schema: () => import("turnloop/schema"),
  testing: () => import("turnloop/testing"),
  openai: () => import("turnloop/openai"),
  "ai-sdk": () => import("turnloop/ai-sdk"),
  mcp: () => import("turnloop/mcp"),
  durable: () => import("turnloop/durable"),
  anthropic: () => import("turnloop/anthropic"),
};
const whereNodeIs: typeof anywhere = { acp: () => import("turnloop/acp") };
const hasNode = Boolean((globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node);

// SPEC 14.1
describe("the package", () => {
  it.each(Object.entries(anywhere))("can be imported in any runtime: %s", async (_name, load) => {
    expect(Object.values(await load()).some((exported) => typeof exported === "function" || typeof exported === "object")).toBe(true);
  });

  it.runIf(hasNode).each(Object.entries(whereNodeIs))("can be imported where Node's modules are: %s", async (_name, load) => {
    expect(Object.values(await load()).some((exported) => typeof exported === "function")).toBe(true);
  });

  it("has no sub-path that this table does not know", () => {
    expect(Object.keys({ ...anywhere, ...whereNodeIs }).sort()).toEqual(Object.keys(entries).sort());
  });
});
