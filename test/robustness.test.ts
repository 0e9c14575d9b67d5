/** Kinds of misuse and bad luck that were found by trying to break the loop. */
import { type AgentEvent, type AgentMessage, agentLoop, runAgentLoop, type StreamFn, userMessage } from "turnloop";
import { assertEventSequence, scriptedModel } from "turnloop/testing";
import { describe, expect, it, vi } from "vitest";
import { makeTool, model, outline, resultsOf, run, textOf } from "./helpers.js";

const shell = (content: unknown, extra: object = {}): any => ({ role: "assistant", content, stopReason: "stop", ...extra });
const text = (value: unknown): any => ({ type: "text", text: value });
const echo = makeTool("echo", () => "ok");

/** A StreamFn that gives these events, and notes whether it was closed. */
function streamOf(...events: unknown[]): StreamFn & { closed: ReturnType<typeof vi.fn> } {
  const closed = vi.fn(async () => ({ done: true as const, value: undefined }));
  const streamFn: StreamFn = () => {
    const left = [...events];
    const next = async (): Promise<any> => (left.length > 0 ? { done: false, value: left.shift() } : { done: true, value: undefined });
    return { [Symbol.asyncIterator]: () => ({ next, return: closed }) };
  };
  return Object.assign(streamFn, { closed });
}

describe("an answer that cannot be read", () => {
  const unreadable = {
    type: "start",
    partial: {
      content: [],
      get usage() {
        throw new Error("unreadable");
      },
    },
  };
  it.each<[string, unknown[]]>([
    [
      "bigint token counts",
      [
        { type: "start", partial: shell([], { usage: { input: 1n } }) },
        { type: "done", message: shell([text("x")], { usage: { input: 1n, output: 2 } }) },
      ],
    ],
    ["a symbol as a count", [{ type: "done", message: shell([text("x")], { usage: { input: Symbol("n") } }) }]],
    ["a text without prototype", [{ type: "done", message: shell([text(Object.create(null))]) }]],
    ["a usage that throws", [unreadable, { type: "done", message: shell([text("x")]) }]],
    [
      "a message that throws",
      [
        {
          type: "done",
          get message() {
            throw new Error("unreadable");
          },
        },
      ],
    ],
    [
      "blocks that throw",
      [
        {
          type: "done",
          message: shell([
            {
              get type() {
                throw new Error("unreadable");
              },
            },
          ]),
        },
      ],
    ],
    ["a circular extra field", [{ type: "done", message: shell([text("x")], { raw: circular() }) }]],
  ])("still ends the run: %s", async (_what, events) => {
    // SPEC 4.5, 4.6, 2.1
    const { messages, outcome } = await run(streamOf(...events));
    expect(["completed", "error"]).toContain(outcome);
    expect(JSON.parse(JSON.stringify(messages))).toHaveLength(2);
  });

  it("closes its stream, so that a connection does not stay open", async () => {
    // SPEC 14.3
    const streamFn = streamOf(unreadable);
    await run(streamFn);
    expect(streamFn.closed).toHaveBeenCalledTimes(1);
  });

  it("does not spin when next() gives no object", async () => {
    // SPEC 3.4
    for (const given of ["x", 5, undefined, null]) {
      const { outcome, end } = await run(() => ({ [Symbol.asyncIterator]: () => ({ next: async () => given as never }) }));
      expect([outcome, end.error?.message]).toEqual(["error", expect.stringContaining("next() must give an object")]);
    }
  });

  it("that comes as an Error in place of a message keeps its text and what had come", async () => {
    const partial = shell([text("half")]);
    const { messages } = await run(streamOf({ type: "start", partial }, { type: "error", reason: "error", error: new Error("boom 503") }));
    expect(messages[1]).toMatchObject({ content: [{ text: "half" }], errorMessage: "boom 503" });
    const odd = await run(
      streamOf({ type: "error", reason: "error", error: shell([], { stopReason: "error", errorMessage: { code: 7 } }) }),
    );
    expect(odd.messages[1]).toMatchObject({ errorMessage: '{"code":7}' });
  });
});

describe("sharing", () => {
  it("a tool may go on writing to the partial result it showed", async () => {
    // SPEC 5.10
    const partial = { content: [{ type: "text" as const, text: "" }] };
    const tool = makeTool("t", (_id, _args, _signal, onUpdate) => {
      for (const letter of "abc") {
        (partial.content[0] as { text: string }).text += letter;
        onUpdate(partial);
      }
      return partial;
    });
    const { events, messages } = await run([[{ toolCall: "t" }], "done"], {
      tools: [tool],
      onEvent: (event) => {
        if (event.type === "tool_execution_update" && event.partialResult.content[0].text === "abc")
          event.partialResult.content[0].seen = true;
      },
    });
    const shown = events.filter((event) => event.type === "tool_execution_update").map((event) => event.partialResult.content[0].text);
    expect(shown).toEqual(["a", "ab", "abc"]);
    expect(resultsOf({ messages })[0]?.content).toEqual([{ type: "text", text: "abc" }]);
  });

  it("a listener writes to copies only, at any depth", async () => {
    // SPEC 4.8
    const prompt = { ...userMessage("go"), meta: { tags: ["a"] } };
    const info = { kind: "network" as const, retryable: true };
    const answer = shell([], { stopReason: "error", errorMessage: "x", errorInfo: info, diagnostics: { trace: ["t"] } });
    const { messages } = await run(streamOf({ type: "error", reason: "error", error: answer }), {
      prompts: [prompt],
      onEvent: (event) => {
        const { message, error } = event as any;
        for (const part of [message?.meta?.tags, message?.diagnostics?.trace]) part?.push("written");
        for (const part of [message?.errorInfo, error?.info]) if (part) part.retryable = false;
      },
    });
    expect(messages[0]).toEqual(prompt);
    expect(prompt.meta.tags).toEqual(["a"]);
    expect(messages[1]).toMatchObject({ errorInfo: info, diagnostics: { trace: ["t"] } });
    answer.diagnostics.trace.push("later");
    expect(messages[1]).toMatchObject({ diagnostics: { trace: ["t"] } });
  });

  it("agent_end keeps its messages, whatever the host does to those it was given", async () => {
    const { messages, end } = await run(["x"], { prompts: Array.from({ length: 300 }, (_, i) => userMessage(`m${i}`)) });
    (messages[0] as { content: string }).content = "changed";
    messages.length = 1;
    expect([end.messages.length, textOf(end.messages[0])]).toEqual([301, "m0"]);
  });

  it("the turn_end of a turn without calls shares nothing with that of another", async () => {
    const write = (event: AgentEvent): void => {
      if (event.type === "turn_end") event.toolResults.push({} as never);
    };
    await runAgentLoop([userMessage("go")], { systemPrompt: "", messages: [] }, { model }, write, undefined, scriptedModel(["x"]));
    const { events } = await run(["x"]);
    expect(events.find((event) => event.type === "turn_end")?.toolResults).toEqual([]);
  });
});

describe("plain JavaScript", () => {
  it("a poll that gives a message and something else: the message is kept, the run says what was wrong", async () => {
    // SPEC 7.2, 6.3: what a poll returns always reaches the transcript
    for (const hook of ["getSteeringMessages", "getFollowUpMessages"]) {
      for (const junk of ["typo", { role: "user", content: 42 }, undefined]) {
        const { messages, requests, outcome, end } = await run(["said", "never"], {
          config: { [hook]: () => [userMessage("kept"), junk] },
        });
        expect(messages.map(textOf)).toEqual(["go", "said", "kept", ""]);
        expect([requests.length, outcome, end.error?.message]).toEqual([
          1,
          "error",
          expect.stringContaining(`${hook} failed: expected messages`),
        ]);
      }
    }
  });

  it("tools that can be read only once are there in every turn", async () => {
    for (const tools of [
      new Map([["echo", echo]]).values(),
      (function* () {
        yield echo;
      })(),
    ]) {
      const { requests, messages } = await run([[{ toolCall: "echo" }], "done"], { tools });
      expect(requests.map((request) => request.tools?.length)).toEqual([1, 1]);
      expect(resultsOf({ messages })[0]?.isError).toBe(false);
    }
  });

  it("a time limit that is no number is none", async () => {
    for (const timeoutMs of [10n, Symbol("x"), Object.create(null), "5"]) {
      expect(
        (await run([[{ toolCall: "t" }], "done"], { tools: [makeTool("t", () => "ok", { timeoutMs: timeoutMs as never })] })).outcome,
      ).toBe("completed");
    }
  });

  it("hooks of a class keep their this; a StreamFn gets none of ours", async () => {
    class Config {
      model = model;
      #kept = 1;
      convertToLlm(messages: AgentMessage[]) {
        return messages.slice(-this.#kept) as never;
      }
    }
    const seen: unknown[] = [];
    const scripted = scriptedModel(["x"]);
    const streamFn = function (this: unknown, ...args: Parameters<StreamFn>) {
      seen.push(this);
      return scripted(...args);
    };
    const context = { systemPrompt: "", messages: [userMessage("old")] };
    await runAgentLoop([userMessage("new")], context, new Config(), () => {}, undefined, streamFn);
    expect(scripted.requests[0]?.messages.map(textOf)).toEqual(["new"]);
    expect(seen).toEqual([undefined]);
  });

  it("what is no signal is refused by the iterable form too", async () => {
    // SPEC 4.3, 4.9
    for (const signal of [new AbortController(), {}, "x", 5, { addEventListener: () => {} }]) {
      const stream = agentLoop([userMessage("go")], { systemPrompt: "", messages: [] }, { model }, signal as never, scriptedModel(["x"]));
      await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  it("a signal that throws does not make the iterable form hang", async () => {
    const fail = (): never => {
      throw new Error("odd signal");
    };
    const usable = { aborted: false, addEventListener: () => {}, removeEventListener: () => {} };
    for (const signal of [
      { ...usable, addEventListener: fail },
      { ...usable, removeEventListener: fail },
    ]) {
      const stream = agentLoop([userMessage("go")], { systemPrompt: "", messages: [] }, { model }, signal as never, scriptedModel(["x"]));
      const events: AgentEvent[] = [];
      await (async () => {
        for await (const event of stream) events.push(event);
      })().catch((error: Error) => expect(error.message).toBe("odd signal"));
      if (events.length > 0) assertEventSequence(events);
    }
  });

  it("a replacement of tools that is no list is a named failure", async () => {
    // SPEC 6.3, 14.4
    const { end } = await run([[{ toolCall: "echo" }], "never"], {
      tools: [echo],
      config: { prepareNextTurn: () => ({ context: { tools: 5 as never } }) },
    });
    expect(end.error?.message).toContain("context.tools must be an iterable of tools; got 5");
  });

  it("assistant messages without usable content do not cost the request", async () => {
    // SPEC 2.5
    const odd = ["a text", null, undefined, [null]].map((content) => shell(content));
    const { requests, outcome, events } = await run(["x"], { messages: odd });
    expect([outcome, requests[0]?.messages.length]).toEqual(["completed", 1]);
    expect(outline(events).at(-1)).toBe("agent_end completed");
  });

  it("an abort without a reason says so", async () => {
    // SPEC 7.6
    for (const reason of [null, ""]) {
      expect((await run(["x"], { signal: AbortSignal.abort(reason) })).messages[1]).toMatchObject({
        errorMessage: "Aborted: no reason given",
      });
    }
  });
});

describe("arguments and schemas that would take too long, or trip the checker", () => {
  const check = async (parameters: object, args: unknown) =>
    resultsOf(
      await run([[{ toolCall: "t", args }], "done"], { tools: [makeTool("t", (_id, got) => JSON.stringify(got), { parameters })] }),
    )[0];
  const property = (schema: object): object => ({ type: "object", properties: { v: schema } });

  it("a url is checked in linear time", async () => {
    // SPEC 5.7: the checker's own pattern took seconds for this one
    const host = "documentation".repeat(40);
    expect(await check(property({ type: "string", format: "url" }), { v: `https://${host}.com/some path` })).toMatchObject({
      isError: true,
    });
    expect(await check(property({ type: "string", format: "url" }), { v: `https://${host.slice(0, 60)}.com/path?q=1` })).toMatchObject({
      isError: false,
    });
  });

  it("recursive unions are followed once, right or wrong", async () => {
    // SPEC 5.7: every branch followed to its end took time exponential in the depth
    const node = (op: string): object => ({
      type: "object",
      properties: { op: { const: op }, x: { $ref: "#/$defs/E" } },
      required: ["op", "x"],
    });
    const leaf = { type: "object", properties: { op: { const: "num" } }, required: ["op"], additionalProperties: false };
    const parameters = { ...property({ $ref: "#/$defs/E" }), $defs: { E: { anyOf: [leaf, node("neg"), node("inc")] } } };
    for (const [op, isError] of [
      ["num", false],
      ["nothing", true],
    ] as const) {
      let value: object = { op };
      for (let depth = 0; depth < 60; depth++) value = { op: "neg", x: value };
      expect(await check(parameters, { v: value })).toMatchObject({ isError });
    }
  });

  it("defaults are found through references of a union, and inside its arrays", async () => {
    const limit = { type: "integer", default: 1 };
    const tree = { type: "object", properties: { n: limit, child: { anyOf: [{ type: "null" }, { $ref: "#" }] } } };
    expect(textOf(await check(tree, { child: { child: null } }))).toBe('{"child":{"child":null,"n":1},"n":1}');
    const items = property({ anyOf: [{ type: "null" }, { type: "array", items: { type: "object", properties: { k: limit } } }] });
    expect(textOf(await check(items, { v: [{}] }))).toBe('{"v":[{"k":1}]}');
  });

  it("an id in an example is not the name of a schema", async () => {
    const part = { type: "string", example: { id: "u1" }, "x-ui": { $id: "http://" } };
    expect(textOf(await check({ type: "object", properties: { a: part, b: part } }, { a: "1" }))).toBe('{"a":"1"}');
  });

  it("texts for the model stay short", async () => {
    const text = textOf(
      await check(
        { ...property({ enum: Array.from({ length: 10_000 }, (_, i) => `value${i}`) }), additionalProperties: false },
        { v: "x", ["k".repeat(1e6)]: 1 },
      ),
    );
    expect(text.length).toBeLessThan(2000);
  });

  it("keys a schema asks for by name reach the tool; a null in a record does not vanish", async () => {
    const named = {
      type: "object",
      properties: { constructor: { type: "object" }, prototype: { type: "array" } },
      required: ["constructor"],
    };
    expect(textOf(await check(named, { constructor: { a: 1 }, prototype: [1] }))).toBe('{"constructor":{"a":1},"prototype":[1]}');
    expect(await check({ type: "object", additionalProperties: { type: "string" } }, { a: "1", b: null })).toMatchObject({ isError: true });
  });
});

describe("answers of hooks and tools", () => {
  it("a tool that returns an Error has failed", async () => {
    expect(
      resultsOf(await run([[{ toolCall: "t" }], "done"], { tools: [makeTool("t", () => new Error("not thrown") as never)] }))[0],
    ).toMatchObject({
      isError: true,
      content: [{ text: "not thrown" }],
    });
  });

  it("an isError that is no boolean changes nothing; a suspension is not taken for consent", async () => {
    const failing = makeTool("t", () => ({ content: [], isError: true }));
    expect(
      resultsOf(
        await run([[{ toolCall: "t" }], "done"], { tools: [failing], config: { afterToolCall: () => ({ isError: 1 as never }) } }),
      )[0]?.isError,
    ).toBe(true);
    const execute = vi.fn(() => "ran");
    await run([[{ toolCall: "t" }], "done"], {
      tools: [makeTool("t", execute)],
      config: { beforeToolCall: () => ({ suspend: true }) as never },
    });
    expect(execute).not.toHaveBeenCalled();
  });

  it("a content list with a method of its own is read all the same", async () => {
    const content = Object.assign([{ type: "text", text: "x" }], {
      map: () => {
        throw new Error("map");
      },
    });
    expect(
      resultsOf(await run([[{ toolCall: "t" }], "done"], { tools: [makeTool("t", () => ({ content }) as never)] })).map(textOf),
    ).toEqual(["x"]);
  });
});

function circular(): object {
  const value: Record<string, unknown> = {};
  value["self"] = value;
  return value;
}
