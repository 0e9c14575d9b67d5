/** The program for Bun and Deno. */
import { runSuite } from "./suite.js";

const { failures, ...counts } = await runSuite();
for (const failure of failures) console.error(failure);
console.log(JSON.stringify(counts));
process.exit(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
