/** What went wrong, read from an error's shape: the vendor's classes may come from another copy of its package (SPEC 12.1). */
import { errorText, shorten } from "../../errors.js";
import type { ModelErrorInfo } from "../../messages.js";

type Kind = ModelErrorInfo["kind"];

const RETRYABLE: readonly Kind[] = ["rate_limit", "overloaded", "network", "timeout"];

const CONTEXT =
  /context[ _-]?(length|window|size|limit)|maximum (context|prompt length)|(prompt|input) is too long|exceeds? the (model'?s )?(maximum|context)|exceeded model token limit/i;
const OVERLOAD = /overloaded|server[ _]busy|at capacity|slow_down/i;
const FILTER =
  /content[ _]?(filter|policy)|responsible_?ai|safety system|usage polic|(cyber|bio)_policy|(prompt|input|request) was flagged/i;
const TIMEOUT = /timed? ?out|timeout/i;
const CONNECTION =
  /connection|connect |fetch failed|failed to fetch|load failed|terminated|network|socket|premature|ECONN|ENOTFOUND|EAI_AGAIN|EPIPE/i;

/** The longest error text kept: some servers answer with a whole page, and the transcript holds it for ever. */
export const MAX_TEXT = 2000;

/** The kind, status and waiting time of what the client threw. */
export function errorInfo(thrown: unknown): ModelErrorInfo {
  const error = Object(thrown) as Record<string, unknown>;
  const status = statusOf(error);
  const words = [error["code"], error["type"], explain(thrown)]
    .filter((word) => typeof word === "string")
    .map((word) => shorten(word, MAX_TEXT))
    .join(" ");
  const kind = kindOf(status, words, error);
  const retryAfterMs = retryAfter(error["headers"]) ?? (kind === "rate_limit" ? waitInWords(words) : undefined);
  return {
    kind,
    ...(status === undefined ? {} : { status }),
    retryable: isRetryable(kind, error),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** The error's text with that of its innermost cause: "Connection error." alone says too little. At most 2,000 UTF-16 units. */
export function explain(thrown: unknown): string {
  const text = shorten(errorText(thrown), MAX_TEXT);
  let cause = (Object(thrown) as { cause?: unknown }).cause;
  for (let depth = 0; depth < 5; depth++) {
    const inner = (Object(cause) as { cause?: unknown }).cause;
    if (inner === undefined || inner === null) break;
    cause = inner;
  }
  if (cause === undefined || cause === null) return text;
  const { code } = Object(cause) as { code?: unknown };
  const reason = errorText(cause);
  const detail = typeof code === "string" && !reason.includes(code) ? `${reason}, ${code}` : reason;
  return text.includes(detail) ? text : shorten(`${text} (${detail})`, MAX_TEXT);
}

function kindOf(status: number | undefined, words: string, error: Record<string, unknown>): Kind {
  if (status === 401 || status === 403) return FILTER.test(words) ? "refusal" : "auth";
  if (status === 429) return "rate_limit";
  if (CONTEXT.test(words)) return "context_overflow";
  if (status === 503 || status === 529 || OVERLOAD.test(words)) return "overloaded";
  if (status === 408 || status === 504) return "timeout";
  if (status !== undefined && status >= 500) return "network";
  if (FILTER.test(words)) return "refusal";
  if (status !== undefined && status >= 400) return "invalid_request";
  if (/rate[ _]limit|insufficient_quota|too_many_requests|resource_exhausted/i.test(words)) return "rate_limit";
  if (/missing credentials|invalid_api_key|authentication|permission_error/i.test(words)) return "auth";
  if (/invalid_(request|prompt)|invalid_\w*image/i.test(words)) return "invalid_request";
  if (TIMEOUT.test(words)) return "timeout";
  // a line that is not JSON is a body damaged on its way
  const broken = error["name"] === "SyntaxError" || /server_error|internal_error|\bapi_error/i.test(words) || CONNECTION.test(words);
  return broken ? "network" : "unknown";
}

/** The server's own word, which the clients' retries would listen to, comes first. A used-up budget does not come back by waiting. */
function isRetryable(kind: Kind, { code, headers }: Record<string, unknown>): boolean {
  const told = header(headers, "x-should-retry");
  if (told === "true" || told === "false") return told === "true";
  return RETRYABLE.includes(kind) && code !== "insufficient_quota";
}

/** The HTTP status; for an error inside the stream its code, which gateways fill with one. */
function statusOf(error: Record<string, unknown>): number | undefined {
  for (const value of [error["status"], error["code"]]) {
    const status = typeof value === "string" && /^\d{3}$/.test(value) ? Number(value) : value;
    if (typeof status === "number" && status >= 400 && status < 600) return status;
  }
  return undefined;
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
function retryAfter(headers: unknown): number | undefined {
  const ms = header(headers, "retry-after-ms");
  if (ms !== undefined && Number(ms) >= 0) return Number(ms);
  const after = header(headers, "retry-after");
  if (after === undefined) return undefined;
  const wait = Number(after) >= 0 ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, Math.round(wait)) : undefined;
}

const WAIT = /(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)? ?(?:ms|milliseconds?|s|seconds?|m|minutes?|h|hours?)(?![a-z]) ?)+)/i;
const UNITS: Record<string, number> = { ms: 1, mi: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** An error inside a stream has no headers, but may say how long to wait: "try again in 1m2.5s", "retry after 13 seconds". */
function waitInWords(words: string): number | undefined {
  const [, wait] = WAIT.exec(words) ?? [];
  if (wait === undefined) return undefined;
  const parts = wait.toLowerCase().matchAll(/([\d.]+) ?(ms|mi(?=l)|[smh])/g);
  return Math.ceil([...parts].reduce((sum, [, time, unit = ""]) => sum + Number(time) * (UNITS[unit] ?? 0), 0));
}

/** One header, of a Headers object or a plain one. */
function header(headers: unknown, name: string): string | undefined {
  if (typeof headers !== "object" || headers === null) return undefined;
  const { get } = headers as { get?: unknown };
  const value = typeof get === "function" ? get.call(headers, name) : (headers as Record<string, unknown>)[name];
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}
