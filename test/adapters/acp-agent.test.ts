import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeTool } from "../helpers.js";
import { connect, finishClients } from "./acp-helpers.js";

finishClients();

// SPEC 10.1, 10.2, 10.6
describe("an agent served to a client", () => {
  it("answers initialize, session/new and session/prompt", async () => {
    const client = await connect([[{ toolCall: "add", args: { a: 1 } }], "Done."], {
      agent: () => ({ tools: [makeTool("add", () => "1")] }),
    });
    const sessionId = await client.session();
    expect(await client.prompt(sessionId)).toEqual({ stopReason: "end_turn" });
    expect(client.outline()).toEqual([]);
  });
});
