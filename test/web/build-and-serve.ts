/** Builds the page as it is shipped, serves it on loopback, and starts one browser for all files of tests. */
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, preview } from "vite";
import type { TestProject } from "vitest/node";

const root = fileURLToPath(new URL("../../examples/web", import.meta.url));

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  await build({ root, logLevel: "warn" });
  const server = await preview({ root, logLevel: "warn", preview: { host: "127.0.0.1", port: 0 } });
  const browser = await chromium.launchServer({
    executablePath: process.env.CHROMIUM_PATH ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
    host: "127.0.0.1",
  });
  provide("pageUrl", server.resolvedUrls?.local[0] as string);
  provide("browserUrl", browser.wsEndpoint());
  return async () => {
    await browser.close();
    await server.close();
  };
}

declare module "vitest" {
  interface ProvidedContext {
    pageUrl: string;
    browserUrl: string;
  }
}
