/** The script of the page that csp.js serves. */
import { toolCalls } from "./tool-calls.js";

const violations = [];
document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) =>
  violations.push(`${effectiveDirective} ${blockedURI}`),
);
const result = await toolCalls().catch((error) => [`${error.stack}`]);
const violationsOfTheRun = [...violations];

let evaluated = "allowed";
try {
  new Function("return 1")();
} catch (error) {
  evaluated = error.name;
}
await fetch("/result", {
  method: "POST",
  body: JSON.stringify({ result, violations: violationsOfTheRun, evaluated, process: typeof process }),
});
