/** The program for workerd, where nothing may start a timer or draw a random number outside of a request, so all is loaded in one. */
export default {
  async fetch(): Promise<Response> {
    await import("./host.js");
    const { runSuite } = await import("./suite.js");
    return Response.json(await runSuite());
  },
};
