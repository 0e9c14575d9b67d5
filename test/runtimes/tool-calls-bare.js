/** For Deno without any permission: no environment, no file, no network. */
import { toolCalls, wrong } from "./tool-calls.js";

const found = wrong(await toolCalls());
if (found !== undefined) throw new Error(`not as expected: ${found}`);
console.log("tool calls: as expected");
console.log(JSON.stringify({ passed: 1, failed: 0, skipped: 0 }));
