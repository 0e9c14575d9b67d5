/** Names as providers accept them: `[a-zA-Z0-9_-]`, at most 64 characters, unique (SPEC 12.3). */
import { unusedName } from "../shared/unused-name.js";

const MAX_LENGTH = 64;

/**
 * A name for each of the server's names. One that needs no change is never given to another tool, so it does not depend
 * on the order of the list. `isTaken` tells of names outside the list.
 */
export function assignNames(originals: readonly string[], prefix: string, isTaken: (name: string) => boolean): Map<string, string> {
  const names = new Map<string, string>();
  const used = new Set<string>();
  const isClean = (original: string): boolean => /^[\w-]+$/.test(original) && prefix.length + original.length <= MAX_LENGTH;
  for (const original of [...originals.filter(isClean), ...originals.filter((name) => !isClean(name))]) {
    const name = unusedName(cleanName(prefix + original), MAX_LENGTH, (candidate) => used.has(candidate) || isTaken(candidate));
    used.add(name);
    names.set(original, name);
  }
  return names;
}

/** A name that is too long ends in a hash of the whole: the same in every session, whatever else is listed. */
function cleanName(full: string): string {
  const name = full.replace(/[^a-zA-Z0-9_-]/gu, "_") || "tool";
  return name.length <= MAX_LENGTH ? name : `${name.slice(0, MAX_LENGTH - 9)}_${hash(full)}`;
}

/** FNV-1a, 8 hexadecimal digits. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}
