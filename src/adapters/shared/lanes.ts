/** Blocks that a server writes at the same time, shown one after the other: events know one open block only (SPEC 3.2, 12.2). */
import type { AssistantMessageBuilder } from "../../message-builder.js";
import type { AssistantMessageEvent } from "../../stream.js";

/** A block being written. The first one is shown as it comes, the others wait for it. */
export interface Lane {
  readonly kind: "text" | "thinking" | "call";
  /** Of a call; shown as soon as its name is known. */
  id: string;
  name: string;
  /** Kept with the block, for its replay. */
  signature?: string;
  /** Its contentIndex, once something of it was shown. */
  readonly block?: number;
  /** As far as one can tell: it gives way to a block behind it. */
  complete: boolean;
  /** Nothing more is taken: it was said to be over, or gave way. */
  readonly ended: boolean;
}

interface OpenLane extends Lane {
  block?: number;
  /** The part not shown yet. */
  held: string;
  shown: boolean;
  ended: boolean;
}

export class Lanes {
  readonly #builder: AssistantMessageBuilder;
  #open: OpenLane[] = [];
  #calls = 0;

  constructor(builder: AssistantMessageBuilder) {
    this.#builder = builder;
  }

  /** Begins a block behind those that are open. Text and thinking give way to what follows; a call does when its owner says so. */
  open(kind: Lane["kind"], signature?: string): Lane {
    const lane: OpenLane = { kind, id: "", name: "", complete: kind !== "call", held: "", shown: false, ended: false };
    if (signature !== undefined) lane.signature = signature;
    // what a server calls nothing needs a name all the same
    if (kind === "call") lane.id = `call_${this.#calls++}`;
    this.#open.push(lane);
    return lane;
  }

  write(given: Lane, text: string): AssistantMessageEvent[] {
    const lane = given as OpenLane;
    if (lane.ended) return [];
    lane.held += text;
    return this.#advance();
  }

  /** The block is over; `lane.signature` is final. */
  end(given: Lane): AssistantMessageEvent[] {
    const lane = given as OpenLane;
    if (lane.ended) return [];
    lane.ended = true;
    return this.#advance();
  }

  /** Everything held back, as it is: the answer is over. */
  flush(): AssistantMessageEvent[] {
    for (const lane of this.#open) lane.ended = true;
    return this.#advance();
  }

  #advance(): AssistantMessageEvent[] {
    const events: AssistantMessageEvent[] = [];
    for (;;) {
      const [first] = this.#open;
      if (!first) return events;
      const over = first.ended || (first.complete && this.#open.length > 1);
      if (over || first.kind !== "call" || first.name !== "") {
        for (const event of this.#show(first)) {
          if ("contentIndex" in event) first.block = event.contentIndex;
          events.push(event);
        }
      }
      if (!over) return events;
      first.ended = true;
      events.push(...this.#builder.blockEnd(first.signature));
      this.#open.shift();
    }
  }

  #show(lane: OpenLane): AssistantMessageEvent[] {
    const { held, kind, signature, shown } = lane;
    lane.held = "";
    if (kind === "text") return this.#builder.text(held);
    if (kind === "thinking") {
      // reasoning that shows nothing is kept for what it proves
      const worth = held !== "" || (lane.ended && !shown && signature !== undefined);
      lane.shown ||= worth;
      return worth ? this.#builder.thinking(held, signature) : [];
    }
    lane.shown = true;
    const start = shown ? [] : this.#builder.toolCallStart(lane.id, lane.name);
    return held === "" ? start : [...start, ...this.#builder.toolCallDelta(held)];
  }
}
