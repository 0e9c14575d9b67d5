/** rawTextChannel and what only Node has: standard output, standard error, streams. */
import { PassThrough, Writable } from "node:stream";
import { rawTextChannel, TurnLoopError } from "turnloop";
import { describe, expect, it, vi } from "vitest";
import { wait, watchTimers } from "./helpers.js";

watchTimers();

describe("rawTextChannel in Node", () => {
  const text = "Thinking...\nThinking... (30s)\nThinking... (60s)\n";

  it("writes lines to a stream", async () => {
    // SPEC 9.7
    let written = "";
    const write = (piece: string): void => {
      written += piece;
    };
    const stream = new Writable({ decodeStrings: false, write: (piece, _encoding, next) => next(void write(piece)) });
    const channel = rawTextChannel(stream, { stdioRpc: true });
    expect(channel.available()).toBe(true);
    for (const each of wait) await channel.send(each);
    expect(written).toBe(text);
  });

  it("writes to the standard error by default; nothing reaches the standard output", async () => {
    // SPEC 9.7, 10.5
    const [out, err] = [vi.spyOn(process.stdout, "write"), vi.spyOn(process.stderr, "write")].map((spy) =>
      spy.mockReturnValue(true),
    ) as any[];
    for (const options of [undefined, { stdioRpc: true }, { stdioRpc: false }]) {
      const channel = rawTextChannel(undefined, options);
      expect(channel.available()).toBe(true);
      for (const each of wait) await channel.send(each);
    }
    const written = [out, err].map(({ mock }) => mock.calls.map(([piece]: [string]) => piece).join(""));
    vi.restoreAllMocks();
    expect(written).toEqual(["", text.repeat(3)]);
  });

  it.each<[string, () => any]>([
    ["process.stdout", () => process.stdout],
    ["its write", () => process.stdout.write],
    ["a stream on descriptor 1", () => Object.assign(new PassThrough(), { fd: 1 })],
  ])("refuses %s with stdioRpc, and only then", (_name, write) => {
    // SPEC 9.7
    let refused: unknown;
    try {
      rawTextChannel(write(), { stdioRpc: true });
    } catch (error) {
      refused = error;
    }
    expect(refused).toSatisfy(TurnLoopError.is);
    expect(refused).toMatchObject({ code: "invalid_argument", message: expect.stringMatching(/standard output.*process\.stderr/) });
    for (const options of [undefined, {}, { stdioRpc: false }]) expect(rawTextChannel(write(), options).available()).toBe(true);
  });

  it("takes process.stderr with stdioRpc", () => {
    // SPEC 9.7
    expect(rawTextChannel(process.stderr, { stdioRpc: true }).available()).toBe(true);
  });
});
