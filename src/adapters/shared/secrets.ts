/** Keeps credentials out of what an error says: a transcript is stored and shown (SPEC 12.1). */

const INSTEAD = "[the API key]";

/** Shorter ones are ordinary words somewhere in the text. */
const MIN_LENGTH = 8;

const SECRET_HEADER = /auth|key|token|secret|cookie/i;

/** Credentials known by their shape, whoever holds them. What stands before the credential is the first group. */
const SHAPES: readonly RegExp[] = [
  /\b(bearer )[\w.~+/=-]{8,}/gi,
  /([?&](?:api[-_]?key|key|access[-_]?token|token|signature|sig|code)=)[^&#\s"'<>\\]{1,2000}/gi,
  /(\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@"'<>\\]{1,2000}@/gi,
  /\b()sk-[\w-]{16,}/g,
];

/**
 * The text without credentials: those given (keys, or headers whose name says that they hold one; anything else is ignored),
 * as they are or encoded as in an address or in JSON, and those that show by their shape. Linear in the text.
 */
export function withoutSecrets(text: string, ...given: unknown[]): string {
  let clean = text;
  for (const secret of new Set(given.flatMap(secretsOf).flatMap(spellings))) clean = clean.split(secret).join(INSTEAD);
  for (const shape of SHAPES) clean = clean.replace(shape, (_whole, before: string) => `${before}${INSTEAD}`);
  return clean;
}

function secretsOf(given: unknown): string[] {
  if (typeof given === "string") return given.trim().length < MIN_LENGTH ? [] : [given, given.trim()];
  if (typeof given !== "object" || given === null) return [];
  const entries: [string, unknown][] = typeof (given as Headers).forEach === "function" ? [...(given as Headers)] : Object.entries(given);
  return entries.flatMap(([name, value]) => (SECRET_HEADER.test(name) ? headerSecrets(value) : []));
}

/** A header's value, and the credential behind the name of its scheme. */
function headerSecrets(value: unknown): string[] {
  return typeof value === "string" ? [value.slice(value.indexOf(" ") + 1), value].flatMap(secretsOf).reverse() : [];
}

function spellings(secret: string): string[] {
  const inAddress = /\p{Surrogate}/u.test(secret) ? secret : encodeURIComponent(secret);
  return [secret, JSON.stringify(secret).slice(1, -1), inAddress];
}
