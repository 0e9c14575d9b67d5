/** The sub-paths of the package (`exports` in package.json) and their sources. */
export const entries = {
  index: "src/index.ts",
  schema: "src/schema.ts",
  testing: "src/testing/index.ts",
  openai: "src/adapters/openai/index.ts",
  "ai-sdk": "src/adapters/ai-sdk/index.ts",
  acp: "src/adapters/acp/index.ts",
  mcp: "src/adapters/mcp/index.ts",
  durable: "src/adapters/durable/index.ts",
  anthropic: "src/adapters/anthropic/index.ts",
};
