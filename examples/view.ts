import { Agent, initialView, reduceEvents, toWireEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";

let view = initialView();
const receive = (line: string): void => {
  view = reduceEvents(view, JSON.parse(line), Date.now()); // in the page: render it
};
const send = receive; // stands in for a socket or an event stream

const agent = new Agent({ model: { id: "scripted", provider: "none" }, streamFn: scriptedModel(["Hello!"]), thinking: true });
agent.subscribe((event) => send(JSON.stringify(toWireEvent(event))));
agent.on("thinking", (event) => send(JSON.stringify(toWireEvent({ type: "thinking", event }))));
agent.on("queue_change", (queues) => send(JSON.stringify(toWireEvent({ type: "queue_change", ...queues }))));
await agent.prompt("Hi");
console.log(view.outcome, view.messages.at(-1)?.content);
