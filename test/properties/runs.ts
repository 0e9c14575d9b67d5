/** How many scenarios the property tests play: the usual number, or their share of `TURNLOOP_SOAK` in total. */
import { afterEach } from "vitest";

/** 3,000 in all for `npm test`, which has to be quick; `npm run check` asks for 5,000. */
const USUAL = { core: 2000, decorators: 230, acp: 130, queues: 140, resume: 200, view: 100, durable: 80, lives: 120 };
const ALL = Object.values(USUAL).reduce((sum, runs) => sum + runs, 0);
const SOAK = Number(process.env.TURNLOOP_SOAK) || 0;

declare module "vitest" {
  interface TaskMeta {
    /** What a test played of which property; counts.ts adds it up. */
    scenarios?: Record<string, number>;
  }
}

/** `own` is the environment variable for one of them alone. */
export function runsOf(name: keyof typeof USUAL, own: string): number {
  return Number(process.env[own]) || (SOAK > 0 ? Math.ceil((SOAK * USUAL[name]) / ALL) : USUAL[name]);
}

/** For what hangs: a soak may have a small part of a machine. */
export function timeoutOf(runs: number): number {
  return 60_000 + runs * 300;
}

/** Counts what was really played. */
export function counter(name: string): () => void {
  let played = 0;
  afterEach(({ task }) => {
    if (played > 0) task.meta.scenarios = { [name]: played };
    played = 0;
  });
  return () => void played++;
}
