/** Stands in for `node:events` and `node:util`, for what the core suite takes from them. */
import { expect } from "vitest";

export { listenersOf as getEventListeners } from "./host.js";

export function isDeepStrictEqual(one: unknown, other: unknown): boolean {
  try {
    expect(one).toStrictEqual(other);
    return true;
  } catch {
    return false;
  }
}
