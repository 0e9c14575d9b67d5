/** A tool whose result is an image: a bar chart drawn on a canvas. */
import { type AgentTool, defineTool, type ImageContent } from "turnloop";
import { Type } from "turnloop/schema";
import { formatNumber } from "../../calculator.js";
import { counted, shortened } from "../../wording.js";

interface Bar {
  label: string;
  value: number;
}

const WIDTH = 640;
const ROW = 34;
const TOP = 52;
const MARGIN = 20;
const GAP = 12;
const VALUES = 76;
const SCALE = 2;

export const drawChart: AgentTool = defineTool({
  name: "draw_chart",
  label: "Draw chart",
  kind: "other",
  description: "Draws a bar chart and gives it back as an image.",
  parameters: Type.Object({
    title: Type.String({ minLength: 1 }),
    bars: Type.Array(Type.Object({ label: Type.String(), value: Type.Number({ minimum: 0 }) }), { minItems: 1, maxItems: 30 }),
  }),
  execute(_id, { title, bars }) {
    const largest = bars.reduce((most, bar) => (bar.value > most.value ? bar : most));
    const text = `A chart of ${counted(bars.length, "bar")}: ${title}. The largest is ${largest.label} with ${formatNumber(largest.value)}.`;
    return { content: [{ type: "text", text }, paint(title, bars)] };
  },
});

function paint(title: string, bars: Bar[]): ImageContent {
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH * SCALE;
  canvas.height = (TOP + bars.length * ROW + 16) * SCALE;
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("This browser cannot draw on a canvas.");
  pen.scale(SCALE, SCALE);
  pen.fillStyle = "#fbfaf7";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.textBaseline = "middle";
  pen.fillStyle = "#1d2430";
  pen.font = "600 17px system-ui, sans-serif";
  pen.fillText(shortened(title, 60), MARGIN, 28);
  pen.font = "14px system-ui, sans-serif";
  const labels = bars.map(({ label }) => shortened(label, 24));
  const left = MARGIN + Math.max(...labels.map((label) => pen.measureText(label).width)) + GAP;
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  for (const [index, { value }] of bars.entries()) {
    const middle = TOP + index * ROW + ROW / 2;
    const length = Math.max(2, ((WIDTH - left - VALUES) * value) / most);
    pen.fillStyle = "#4a5263";
    pen.textAlign = "right";
    pen.fillText(labels[index] as string, left - GAP, middle);
    pen.fillStyle = "#2f6f73";
    pen.beginPath();
    pen.roundRect(left, middle - 10, length, 20, 4);
    pen.fill();
    pen.fillStyle = "#1d2430";
    pen.textAlign = "left";
    pen.fillText(formatNumber(value), left + length + 8, middle);
  }
  const [, data = ""] = canvas.toDataURL("image/png").split(",");
  return { type: "image", data, mimeType: "image/png" };
}
