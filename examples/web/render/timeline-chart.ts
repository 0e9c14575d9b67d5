/** The last run as bars over time: its turns, the waits for the model and its answers, and the tools side by side. */
import type { PageState } from "../state.js";
import type { Span, Timeline } from "../timeline.js";
import { setAttributes, setText } from "./dom.js";
import { duration } from "./format.js";

interface Bar extends Span {
  key: string;
  kind: "turn" | "wait" | "answer" | "tool" | "tool failed";
  lane: number;
  label: string;
  /** What stands on the bar. */
  text: string;
}

const LANE = 24;
const HEIGHT = 18;
const FIRST_TOOL_LANE = 2;
/** The ends of the axis, so that it does not move all the time. Seconds. */
const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600];
const SVG = "http://www.w3.org/2000/svg";

export class TimelineChart {
  readonly #parent: HTMLElement;
  readonly #labelOf: (toolName: string) => string;
  readonly #svg = svg("svg", { role: "list", "aria-label": "Timeline", width: "100%" });
  readonly #axis = [0, 0.5, 1].map((at) =>
    svg("text", { class: "axis", x: `${at * 100}%`, "text-anchor": ["start", "middle", "end"][at * 2] }),
  );
  readonly #nodes = new Map<string, { group: SVGElement; rect: SVGElement; text: SVGElement; drawn: string }>();
  #last: { timeline?: Timeline; calls?: PageState["view"]["toolCalls"] } = {};
  #bars: Bar[] = [];

  constructor(parent: HTMLElement, labelOf: (toolName: string) => string) {
    this.#parent = parent;
    this.#labelOf = labelOf;
  }

  update({ timeline, view: { toolCalls } }: PageState, now: number): void {
    if (timeline === this.#last.timeline && toolCalls === this.#last.calls) return;
    if (timeline?.run.from !== this.#last.timeline?.run.from) this.#clear();
    this.#last = { ...(timeline && { timeline }), calls: toolCalls };
    if (!timeline) return;
    if (!this.#svg.isConnected) this.#parent.replaceChildren(this.#svg);
    this.#bars = barsOf(timeline, toolCalls, this.#labelOf);
    this.tick(now);
  }

  tick(now: number): void {
    const { timeline } = this.#last;
    if (!timeline) return;
    const { from, to = now } = timeline.run;
    const scale = (STEPS.find((seconds) => seconds * 1000 >= to - from) ?? Math.ceil((to - from) / 3_600_000) * 3600) * 1000;
    const lanes = Math.max(FIRST_TOOL_LANE, ...this.#bars.map(({ lane }) => lane + 1));
    const height = lanes * LANE + 18;
    setAttributes(this.#svg, { height: String(height) });
    for (const [index, text] of this.#axis.entries()) {
      setText(text, duration((scale * index) / 2).replace(".0", ""));
      setAttributes(text, { y: String(height - 3) });
    }
    for (const bar of this.#bars) this.#draw(bar, from, bar.to ?? Math.max(bar.from, to), scale);
  }

  #draw(bar: Bar, start: number, end: number, scale: number): void {
    const x = `${(((bar.from - start) / scale) * 100).toFixed(2)}%`;
    const width = `${Math.max(0.6, ((end - bar.from) / scale) * 100).toFixed(2)}%`;
    const drawn = `${x} ${width} ${bar.kind} ${bar.lane} ${bar.to}`;
    const node = this.#nodes.get(bar.key) ?? this.#create(bar);
    if (node.drawn === drawn) return;
    node.drawn = drawn;
    const y = bar.lane * LANE;
    setAttributes(node.rect, { x, y: String(y), width, class: bar.kind });
    // a label that does not fit stands outside of its bar, or not at all
    const roomy = (end - bar.from) / scale > 0.02 * bar.text.length + 0.04;
    setAttributes(node.text, { x, y: String(y + 13), class: `on-${bar.kind}` });
    setText(node.text, roomy ? bar.text : "");
    const state = bar.to === undefined ? "so far" : "";
    const label = `${bar.label}, ${duration(end - bar.from)} ${state}`.trim();
    setAttributes(node.group, { "aria-label": label });
    setText(node.group.firstElementChild as Element, label);
  }

  #create(bar: Bar): { group: SVGElement; rect: SVGElement; text: SVGElement; drawn: string } {
    const group = svg("g", { role: "listitem" });
    const rect = svg("rect", { rx: "4", height: String(HEIGHT) });
    const text = svg("text", { dx: "6", "aria-hidden": "true" });
    group.append(svg("title", {}), rect, text);
    this.#svg.append(group);
    const node = { group, rect, text, drawn: "" };
    this.#nodes.set(bar.key, node);
    return node;
  }

  #clear(): void {
    this.#nodes.clear();
    this.#svg.replaceChildren(...this.#axis);
    this.#svg.remove();
  }
}

function barsOf(
  { turns, waits, answers, firstCall }: Timeline,
  toolCalls: PageState["view"]["toolCalls"],
  labelOf: (name: string) => string,
): Bar[] {
  const laneEnds: number[] = [];
  return [
    ...turns.map((span, i): Bar => ({ ...span, key: `turn ${i}`, kind: "turn", lane: 0, label: `Turn ${i + 1}`, text: `Turn ${i + 1}` })),
    ...waits.map((span, i): Bar => ({ ...span, key: `wait ${i}`, kind: "wait", lane: 1, label: "Waiting for the model", text: "" })),
    ...answers.map((span, i): Bar => ({ ...span, key: `answer ${i}`, kind: "answer", lane: 1, label: "Model answers", text: "Model" })),
    ...toolCalls.slice(firstCall).map((call, i): Bar => {
      const { startedAt: from = 0, endedAt, status, toolName } = call;
      const free = laneEnds.findIndex((end) => end <= from);
      const lane = free < 0 ? laneEnds.length : free;
      laneEnds[lane] = endedAt ?? Number.POSITIVE_INFINITY;
      const label = labelOf(toolName);
      const kind = status === "failed" ? "tool failed" : "tool";
      return {
        from,
        ...(endedAt !== undefined && { to: endedAt }),
        key: `tool ${i}`,
        kind,
        lane: FIRST_TOOL_LANE + lane,
        label,
        text: label,
      };
    }),
  ];
}

function svg(name: string, attributes: Record<string, string | undefined>): SVGElement {
  const element = document.createElementNS(SVG, name);
  setAttributes(element, attributes);
  return element;
}
