/** A process of its own for one segment: reads plan, transcript and disturbance from stdin, writes what it recorded to stdout. */
import { readFileSync, writeSync } from "node:fs";
import { playSegment, type Segment } from "./approvals.js";

const { plan, transcript, disturbance } = JSON.parse(readFileSync(0, "utf8"));
const write = (segment: Segment): void => void writeSync(1, JSON.stringify({ ...segment, events: [] }));
write(
  await playSegment(plan, transcript, disturbance, (segment) => {
    write(segment);
    process.exit();
  }),
);
