/** Builds the page as it is shipped, and serves it on loopback while the tests run. */
import { fileURLToPath } from "node:url";
import { build, preview } from "vite";
import type { TestProject } from "vitest/node";

const root = fileURLToPath(new URL("../../examples/web", import.meta.url));

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  await build({ root, logLevel: "warn" });
  const server = await preview({ root, logLevel: "warn", preview: { host: "127.0.0.1", port: 0 } });
  provide("pageUrl", server.resolvedUrls?.local[0] as string);
  return () => server.close();
}

declare module "vitest" {
  interface ProvidedContext {
    pageUrl: string;
  }
}
