/** Values built to break their reader: too deep, too big, getters that throw, Proxies (SPEC 5.4, 5.7, 5.11, 6.3). */
import { type AgentMessage, userMessage } from "turnloop";
import { describe, expect, it } from "vitest";
import { makeTool, resultsOf, run, textOf } from "../helpers.js";
import { outcomeOf } from "./one-call.js";

/** 10,000 levels of it. */
function nested(wrap: (inner: unknown) => unknown, levels = 10_000): any {
  let value: unknown = { type: "string" };
  for (let level = 0; level < levels; level++) value = wrap(value);
  return value;
}

describe("10,000 levels of nesting", () => {
  // SPEC 5.4
  it.each<[string, () => any]>([
    ["objects", () => ({ v: nested((v) => ({ v })) })],
    ["lists", () => ({ v: nested((v) => [v]) })],
    ["a text of lists", () => `{"v":${"[".repeat(10_000)}${"]".repeat(10_000)}}`],
    ["a text in a text", () => ({ v: `${"[".repeat(10_000)}${"]".repeat(10_000)}` })],
  ])("in arguments are answered with an error: %s", async (_what, make) => {
    const { outcome, result } = await outcomeOf(make(), { type: "object", properties: { v: { type: "array" } } });
    expect([outcome, result?.isError]).toEqual(["completed", true]);
  });

  // SPEC 4.3, 5.7: such a schema is refused like any other that cannot be used, or works
  const wraps: [string, (inner: unknown) => unknown][] = [
    ["properties", (v) => ({ type: "object", properties: { v } })],
    ["items", (items) => ({ type: "array", items })],
    ["anyOf", (v) => ({ anyOf: [v] })],
    ["default", (v) => ({ default: v })],
  ];
  it.each(wraps.flatMap(([what, wrap]) => [1000, 4000, 10_000].map((levels) => [what, levels, wrap] as const)))(
    "a schema of %s, %i levels deep, is refused by its code or answers the call",
    async (_what, levels, wrap) => {
      const parameters = { type: "object", properties: { v: nested(wrap, levels) } };
      const ended = await outcomeOf({ v: { v: { v: 1 } } }, parameters).then(
        ({ outcome }) => outcome,
        (error) => error.code ?? String(error),
      );
      expect(["completed", "invalid_tool"]).toContain(ended);
    },
  );

  // SPEC 2.1, 4.5: in what a host or a tool gives
  it("in a result, a prompt and a message of a host's own leave a whole run behind", async () => {
    const deep = nested((v) => ({ v }));
    const result = await outcomeOf({}, undefined, () => ({ content: "ran", details: deep }));
    expect([result.outcome, textOf(result.result)]).toEqual(["completed", "ran"]);
    const odd = await outcomeOf({}, undefined, () => ({ content: [deep], usage: deep }));
    expect([odd.outcome, textOf(odd.result)]).toEqual(["completed", expect.stringContaining("neither text nor image")]);
    const prompt = { role: "note", data: deep, timestamp: 1 } as unknown as AgentMessage;
    const ended = await run(["ok"], { prompts: [userMessage("hi"), prompt] }).then(
      ({ outcome }) => outcome,
      (error) => error.code,
    );
    expect(["completed", "invalid_argument"]).toContain(ended);
  });
});

describe("objects that fight back", () => {
  const boom = (): never => {
    throw new Error("boom");
  };
  const traps = new Proxy({}, { get: (_target, trap) => (trap === "getPrototypeOf" ? undefined : boom) }) as ProxyHandler<object>;
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const hostile: [string, unknown][] = [
    ["toJSON throws", { toJSON: boom }],
    [
      "toJSON gives itself",
      (() => {
        const value = { toJSON: () => value };
        return value;
      })(),
    ],
    [
      "every getter throws",
      Object.defineProperties(
        {},
        Object.fromEntries(
          ["content", "details", "isError", "message", "name", "stack", "cause", "then", "role"].map((key) => [
            key,
            { get: key === "then" ? () => undefined : boom, enumerable: true },
          ]),
        ),
      ),
    ],
    ["a Proxy whose traps throw", new Proxy({}, traps)],
    ["a revoked Proxy", revoked],
    ["a Proxy that only a promise takes", new Proxy({}, { get: (_target, key) => (key === "then" ? undefined : boom()) })],
    ["endless keys", new Proxy({}, { get: (_target, key) => (key === "then" ? undefined : {}), ownKeys: () => boom() })],
    ["toString throws", { toString: boom, [Symbol.toPrimitive]: boom, valueOf: boom }],
    [
      "then throws",
      {
        get then() {
          return boom();
        },
      },
    ],
  ];

  // SPEC 5.11
  it.each(hostile)("as a tool's result, its content and its throw: %s", async (_what, value) => {
    const ways = [
      () => value,
      async () => value,
      () => ({ content: value }),
      () => ({ content: [value] }),
      () => {
        throw value;
      },
      () => Promise.reject(value),
    ];
    for (const way of ways) {
      const { outcome, result } = await outcomeOf({}, undefined, way);
      expect(outcome).toBe("completed");
      expect(textOf(result)).not.toBe(undefined);
    }
  });

  // SPEC 5.4, 6.3
  it.each(hostile)("as arguments of a call, an error of the model and of a hook: %s", async (_what, value) => {
    for (const args of [value, { v: value }]) {
      const { outcome, messages } = await outcomeOf(args);
      expect(["completed", "error"]).toContain(outcome);
      expect(JSON.parse(JSON.stringify(messages)).length).toBeGreaterThan(1);
    }
    const fail = (): never => {
      throw value;
    };
    for (const record of [await run(fail), await run(["ok"], { config: { transformContext: fail } })]) {
      expect(record.outcome).toBe("error");
      expect(record.end.error?.message).toMatch(/\S/);
    }
  });
});

// SPEC 5.11, F92
it("a tool's result of 100 MB is never copied, however many events show it", async () => {
  const gc = (globalThis as { gc?: () => void }).gc;
  const size = 100 * 1024 * 1024;
  const bytes = (): number => {
    gc?.();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const text = Buffer.alloc(size, "x").toString("latin1");
  const before = bytes();
  let peak = 0;
  const record = await run([[{ toolCall: "cat" }], "done"], {
    tools: [makeTool("cat", () => text)],
    onEvent: () => {
      peak = Math.max(peak, bytes() - before);
    },
  });
  expect(textOf(resultsOf(record)[0])).toHaveLength(size);
  if (gc) expect(peak).toBeLessThan(0.8 * size);
});
