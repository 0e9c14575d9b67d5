/** The AI SDK's errors, read by their shape, in the words of `errorInfo` (SPEC 12.1, 12.2). */
import { errorText, shorten } from "../../errors.js";
import type { ModelErrorInfo } from "../../messages.js";
import { errorInfo, explain, MAX_TEXT } from "../shared/errors.js";
import { withoutSecrets } from "../shared/secrets.js";

type Fields = Record<string, unknown>;

/** Errors that have no response, by name. */
const TYPES: readonly [RegExp, string][] = [
  [/JSONParse|EmptyResponseBody/, "server_error"],
  [/LoadAPIKey/, "authentication_error"],
  [/UnsupportedFunctionality|InvalidPrompt|InvalidArgument|NoSuchModel|LoadSetting/, "invalid_request_error"],
];

/** What to `fail` with for what a model threw, or put into an `error` part: an error, a provider's own object, a text. `secrets` are kept out of the text. */
export function failureOf(thrown: unknown, secrets: () => unknown[]): [Error, ModelErrorInfo] {
  const own = Object(thrown) as Fields;
  const reported = report(own);
  const name = String(own["name"] ?? "");
  const error = Object.assign(new Error(message(thrown, reported), { cause: own["cause"] }), {
    name,
    status: own["statusCode"] ?? own["status"],
    // a gateway's error has the response's as its cause
    headers: own["responseHeaders"] ?? own["headers"] ?? (Object(own["cause"]) as Fields)["responseHeaders"],
    code: own["code"] ?? reported["code"],
    type: reported["type"] ?? own["type"] ?? TYPES.find(([names]) => names.test(name))?.[1],
  });
  const info = errorInfo(error);
  const retryable = info.retryable || (info.kind === "unknown" && own["isRetryable"] === true);
  return [new Error(withoutSecrets(explain(error), ...secrets())), { ...info, retryable }];
}

/** The provider's own account of the error, which is wrapped in several ways. */
function report(own: Fields): Fields {
  const data = Object(own["data"]) as Fields;
  const body = own["data"] === undefined ? parsed(own["responseBody"]) : {};
  const found = [data["error"], own["error"], body["error"], own["data"], body].find(
    (value) => typeof value === "object" && value !== null,
  );
  return Object(found) as Fields;
}

/** A body the model could not make sense of is shown: without it there is the status' name only, or nothing. */
function message(thrown: unknown, reported: Fields): string {
  const { message: own, responseBody: body, data } = Object(thrown) as Fields;
  const text = isText(own) ? own : isText(reported["message"]) ? reported["message"] : isText(body) ? "" : errorText(thrown);
  const unread = data === undefined && isText(body) ? body : "";
  return shorten([text, unread].filter((part) => part !== "").join(": "), MAX_TEXT);
}

function parsed(body: unknown): Fields {
  try {
    return Object(JSON.parse(String(body))) as Fields;
  } catch {
    return {};
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}
