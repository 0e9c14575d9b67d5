import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, type Options } from "tsup";
import { afterAll, beforeAll, onTestFinished, vi } from "vitest";
import examplesConfig from "../../tsup.examples.config.js";

let chat = "";

/** Bundles the demo as `npm run demo` does, in a folder of the test file's own. `openai` cannot be found there, unless it is bundled too. */
export function bundleDemo({ withClient = false } = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-demo-"));
  chat = join(folder, "chat.js");
  beforeAll(async () => {
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    await build({
      ...(examplesConfig as Options),
      outDir: folder,
      clean: false,
      noExternal: [withClient ? /./ : /^(?!openai)/],
      config: false,
      silent: true,
    });
  }, 60_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface StartOptions {
  env?: Record<string, string>;
}

export function start(root: string, args: string[], { env = {} }: StartOptions = {}) {
  return watch(spawn(process.execPath, [chat, ...args], { cwd: root, env: { ...environment(), ...env } }));
}

/** Runs the demo with this standard input. */
export function demo(root: string, args: string[], { input = "", ...options }: StartOptions & { input?: string } = {}): Promise<Finished> {
  const { child, finished } = start(root, args, options);
  child.stdin.end(input);
  return finished;
}

export const hasTerminals = spawnSync("python3", ["-c", "import pty"]).status === 0;

/** The demo in a pseudo-terminal. A test that runs beside others gives its own `onFinished`. */
export function inTerminal(root: string, args: string[] = [], { env = {} }: StartOptions = {}, onFinished = onTestFinished) {
  const bridge = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
  const command = ["-c", bridge, process.execPath, chat, ...args];
  const { child, finished, output } = watch(
    spawn("python3", command, { cwd: root, env: { ...environment(), TERM: "xterm", NO_COLOR: "1", ...env } }),
  );
  onFinished(() => void child.kill("SIGKILL"));
  let seen = 0;
  return {
    finished,
    type: (text: string): void => void child.stdin.write(text),
    /** Waits for this text behind what was waited for before. */
    async shows(text: string): Promise<void> {
      await vi.waitFor(
        () => {
          const at = output.stdout.indexOf(text, seen);
          if (at < 0)
            throw new Error(`"${text}" is not behind:\n${output.stdout.slice(0, seen)}\n--- but this is:\n${output.stdout.slice(seen)}`);
          seen = at + text.length;
        },
        { timeout: 10_000, interval: 5 },
      );
    },
  };
}

/** Collects what a process writes. */
export function watch(child: ChildProcessWithoutNullStreams) {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (chunk: string) => {
      output[name] += chunk;
    });
  }
  const finished: Promise<Finished> = once(child, "close").then(([code]) => ({ code: code as number | null, ...output }));
  return { child, finished, output };
}

/** Without what would make the examples talk to somebody, or keep silent. */
export function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^OPENAI_|HEARTBEAT/.test(name)));
}
