/** The last run as bars over time: its turns, the waits for the model and its answers, and the tools side by side. */
import type { PageState } from "../state.js";
import type { Timeline } from "../timeline.js";
import { el, setAttributes, setText } from "./dom.js";
import { duration } from "./format.js";
import { type Bar, barsOf, FIRST_TOOL_LANE } from "./timeline-bars.js";

interface BarNode {
  group: SVGElement;
  title: SVGElement;
  rect: SVGElement;
  text: SVGElement;
  /** What it looks like now. */
  drawn: string;
}

/** Pixels. */
const LANE = 24;
const BAR = 18;
const CHARACTER = 6.2;
const PADDING = 12;
/** The ends of the axis in seconds: it moves from one to the next, so that most bars stay where they are. */
const STEPS = [
  1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 180, 240, 300, 400, 500, 600, 900, 1200, 1800, 3600,
];
const SVG = "http://www.w3.org/2000/svg";

export class TimelineChart {
  readonly #parent: HTMLElement;
  readonly #labelOf: (toolName: string) => string;
  readonly #svg = svg("svg", { role: "list", "aria-label": "Timeline", width: "100%" });
  readonly #axis = ["start", "middle", "end"].map((anchor, index) =>
    svg("text", { class: "axis", x: `${index * 50}%`, "text-anchor": anchor, "aria-hidden": "true" }),
  );
  readonly #nothing = el("p", { class: "muted" }, "Nothing has run yet.");
  readonly #nodes = new Map<string, BarNode>();
  #timeline: Timeline | undefined;
  #calls: PageState["view"]["toolCalls"] | undefined;
  #bars: Bar[] = [];

  constructor(parent: HTMLElement, labelOf: (toolName: string) => string) {
    this.#parent = parent;
    this.#labelOf = labelOf;
    this.#clear();
  }

  update({ timeline, view: { toolCalls } }: PageState, now: number): void {
    if (timeline === this.#timeline && toolCalls === this.#calls) return;
    if (timeline?.run.from !== this.#timeline?.run.from) this.#clear();
    this.#timeline = timeline;
    this.#calls = toolCalls;
    if (!timeline) return;
    if (!this.#svg.isConnected) this.#parent.replaceChildren(this.#svg);
    this.#bars = barsOf(timeline, toolCalls, this.#labelOf);
    this.tick(now);
  }

  tick(now: number): void {
    if (!this.#timeline) return;
    const { from, to = now } = this.#timeline.run;
    const seconds = (to - from) / 1000;
    const scale = (STEPS.find((step) => step >= seconds) ?? Math.ceil(seconds / 3600) * 3600) * 1000;
    const lanes = Math.max(FIRST_TOOL_LANE, ...this.#bars.map(({ lane }) => lane + 1));
    const height = lanes * LANE + 18;
    setAttributes(this.#svg, { height: String(height) });
    for (const [index, text] of this.#axis.entries()) {
      setText(text, duration((scale * index) / 2).replace(".0", ""));
      setAttributes(text, { y: String(height - 3) });
    }
    const pixelsPerMs = (this.#svg.clientWidth || 300) / scale;
    for (const bar of this.#bars) this.#draw(bar, from, bar.to ?? Math.max(bar.from, to), scale, pixelsPerMs);
  }

  #draw(bar: Bar, start: number, end: number, scale: number, pixelsPerMs: number): void {
    const percent = (time: number): string => `${((time / scale) * 100).toFixed(2)}%`;
    const x = percent(bar.from - start);
    const fits = (text: string, from: number, to: number): boolean => (to - from) * pixelsPerMs > text.length * CHARACTER + PADDING;
    const within = bar.texts.find((text) => fits(text, bar.from, end));
    const beside = bar.kind.startsWith("tool") ? bar.texts.find((text) => fits(text, end, bar.next ?? start + scale)) : undefined;
    // the text that says more; inside, if both say the same
    const after = beside !== undefined && (within === undefined || beside.length > within.length) ? beside : undefined;
    const inside = after === undefined ? within : undefined;
    const node = this.#nodes.get(bar.key) ?? this.#create(bar);
    const drawn = [x, percent(end - bar.from), bar.kind, bar.to, pixelsPerMs, inside, after].join();
    if (node.drawn === drawn) return;
    node.drawn = drawn;
    const y = bar.lane * LANE;
    setAttributes(node.rect, { x, y: String(y + 0.5), width: percent(Math.max(end - bar.from, scale * 0.006)), class: bar.kind });
    setAttributes(node.text, {
      x: after === undefined ? x : percent(end - start),
      y: String(y + 13),
      class: `${after === undefined ? "inside" : "outside"} ${bar.kind}`,
    });
    setText(node.text, after ?? inside ?? "");
    const label = `${bar.label}, ${duration(end - bar.from)}${bar.to === undefined ? " so far" : ""}`;
    setAttributes(node.group, { "aria-label": label });
    setText(node.title, label);
  }

  #create({ key }: Bar): BarNode {
    const node: BarNode = {
      group: svg("g", { role: "listitem" }),
      title: svg("title"),
      rect: svg("rect", { rx: "4", height: String(BAR) }),
      text: svg("text", { dx: "6", "aria-hidden": "true" }),
      drawn: "",
    };
    node.group.append(node.title, node.rect, node.text);
    this.#svg.append(node.group);
    this.#nodes.set(key, node);
    return node;
  }

  #clear(): void {
    this.#nodes.clear();
    this.#svg.replaceChildren(...this.#axis);
    this.#parent.replaceChildren(this.#nothing);
  }
}

function svg(name: string, attributes: Record<string, string> = {}): SVGElement {
  const element = document.createElementNS(SVG, name);
  setAttributes(element, attributes);
  return element;
}
