/**
 * Serves a page whose policy permits no evaluation of text, with the files of the build as they are, and opens it in Chromium: a
 * tool call of each kind must go through, and nothing may have been refused by the policy. A browser resolves no bare import, so
 * the one there is, of TypeBox, gets the address that a bundler would give it.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { wrong } from "./tool-calls.js";

const root = join(import.meta.dirname, "../..");
const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; report-uri /report";
const html = '<!doctype html><title>turnloop</title><script type="module" src="/test/runtimes/csp-page.js"></script>';
const served = /^\/(dist|test\/runtimes|node_modules\/@sinclair\/typebox\/build\/esm)\/[\w./-]+\.m?js$/;

const promised = () => {
  let resolve;
  const promise = new Promise((onResolve) => {
    resolve = onResolve;
  });
  return { promise, resolve };
};
const [result, reported] = [promised(), promised()];
const reports = [];

async function bodyOf(request) {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
}

async function answer(request) {
  if (request.method === "POST") {
    const body = await bodyOf(request);
    if (request.url === "/report") reported.resolve(reports.push(JSON.parse(body)["csp-report"]["blocked-uri"]));
    else result.resolve(JSON.parse(body));
    return [204, "text/plain", ""];
  }
  if (request.url === "/") return [200, "text/html", html];
  if (!served.test(request.url)) return [404, "text/plain", ""];
  const text = await readFile(join(root, request.url), "utf8");
  return [200, "text/javascript", text.replaceAll('"@sinclair/typebox"', '"/node_modules/@sinclair/typebox/build/esm/index.mjs"')];
}

const server = createServer(async (request, response) => {
  const [status, type, body] = await answer(request).catch((error) => [500, "text/plain", String(error)]);
  response.writeHead(status, { "content-type": type, "content-security-policy": policy }).end(body);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const troubles = [];
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => troubles.push(String(error)));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const late = setTimeout(() => result.resolve({ result: [`nothing came from the page: ${troubles}`] }), 20_000);
  const told = await result.promise;
  clearTimeout(late);
  assert.equal(wrong(told.result), undefined);
  assert.deepEqual([told.violations, told.process, troubles], [[], "undefined", []]);
  // that the policy is in force: the page evaluates a text at the end, is refused, and that is all there is reported
  assert.equal(told.evaluated, "EvalError");
  await reported.promise;
  assert.deepEqual(reports, ["eval"]);
} finally {
  await browser.close();
  server.close();
}
console.log("a page with a strict policy: tool calls as expected, nothing refused");
console.log(JSON.stringify({ passed: 1, failed: 0, skipped: 0 }));
