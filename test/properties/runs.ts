/** How many scenarios the property tests play: the usual number, or their share of a soak of `TURNLOOP_SOAK` in total. */
import { afterAll } from "vitest";

const USUAL = { core: 2000, decorators: 400, acp: 300, queues: 300, resume: 600, view: 150 };
const ALL = Object.values(USUAL).reduce((sum, runs) => sum + runs, 0);
const SOAK = Number(process.env.TURNLOOP_SOAK) || 0;

/** `own` is the environment variable for one of them alone. */
export function runsOf(name: keyof typeof USUAL, own: string): number {
  return Number(process.env[own]) || (SOAK > 0 ? Math.ceil((SOAK * USUAL[name]) / ALL) : USUAL[name]);
}

/** Counts what was really played, and says it at the end of a soak. */
export function counter(name: keyof typeof USUAL): () => void {
  let played = 0;
  afterAll(() => {
    if (SOAK > 0) console.info(`soak: ${played} scenarios of ${name}`);
  });
  return () => void played++;
}
