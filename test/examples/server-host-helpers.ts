import { get } from "node:http";
import { createRequire } from "node:module";
import {
  Agent,
  type AgentOptions,
  AssistantMessageBuilder,
  type AssistantMessageEvent,
  initialView,
  reduceEvents,
  type StreamFn,
  type ViewState,
  type WireEvent,
} from "turnloop";
import { expect, onTestFinished } from "vitest";
import { type Host, type HostOptions, startHost } from "../../examples/server/host.js";
import { MODEL } from "./helpers.js";

interface SseMessage {
  id?: string;
  event?: string;
  data: string;
}
interface SseCallbacks {
  onEvent(message: SseMessage): void;
  onComment(comment: string): void;
}

/** The readers of event streams that the MCP SDK uses: written by others, and by the standard. */
const foreign = createRequire(createRequire(import.meta.url).resolve("@modelcontextprotocol/sdk/client/index.js"));
const { createParser } = foreign("eventsource-parser") as { createParser(callbacks: SseCallbacks): { feed(text: string): void } };
export const { EventSource: ForeignEventSource } = foreign("eventsource") as {
  EventSource: new (url: string, init?: { fetch: typeof fetch }) => EventSource;
};

export interface TestHost extends Host {
  /** In the order in which the conversations began. */
  agents: Agent[];
}

/** A server that is gone after the test. */
export async function host(agent: Omit<AgentOptions, "model">, options: Partial<HostOptions> = {}): Promise<TestHost> {
  const agents: Agent[] = [];
  const createAgent = (): Agent => {
    const created = new Agent({ model: MODEL, onListenerError: (error) => expect.fail(String(error)), ...agent });
    agents.push(created);
    return created;
  };
  const started = await startHost({ createAgent, closeGraceMs: 50, ...options });
  onTestFinished(() => started.close());
  return { ...started, agents };
}

export async function post(url: string, body: unknown = {}, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as any, headers: response.headers };
}

/** A new conversation, and what can be done with it. Every POST must be taken. */
export async function talk({ url, conversations }: Host) {
  const { body } = await post(`${url}/conversations`);
  const base = `${url}/conversations/${body.id}`;
  const does = async (action: string, sent?: object): Promise<void> => {
    expect(await post(`${base}/${action}`, sent), action).toMatchObject({ status: 202, body: {} });
  };
  return { base, does, watch: (options?: WatchOptions) => Watcher.on(base, options), conversation: conversations.get(body.id) };
}

interface WatchOptions {
  lastEventId?: number | string;
  after?: number | string;
}

export interface Entry {
  id: number;
  type: string;
  /** The view behind this event. */
  view: ViewState;
  data: any;
}

/** A client as the page is one, that remembers every view it has shown. */
export class Watcher {
  readonly entries: Entry[] = [];
  readonly comments: string[] = [];
  headers: Record<string, unknown> = {};
  view: ViewState = initialView();
  bytes = 0;
  hasEnded = false;
  readonly #waiting = new Set<() => void>();
  #close = (): void => {};

  /** Resolves when the stream is open. */
  static on(base: string, { lastEventId, after }: WatchOptions = {}): Promise<Watcher> {
    const watcher = new Watcher();
    const parser = createParser({ onEvent: (message) => watcher.#hear(message), onComment: (comment) => watcher.comments.push(comment) });
    const headers: Record<string, string> = lastEventId === undefined ? {} : { "last-event-id": String(lastEventId) };
    return new Promise((resolve, reject) => {
      const request = get(`${base}/events${after === undefined ? "" : `?after=${after}`}`, { headers, agent: false }, (response) => {
        watcher.headers = { ...response.headers, status: response.statusCode };
        response.setEncoding("utf8");
        response.on("data", (text: string) => {
          watcher.bytes += Buffer.byteLength(text);
          parser.feed(text);
          watcher.#changed();
        });
        response.on("error", () => {});
        response.on("close", () => {
          watcher.hasEnded = true;
          watcher.#changed();
        });
        resolve(watcher);
      });
      request.on("error", reject);
      watcher.#close = () => void request.destroy();
      onTestFinished(watcher.#close);
    });
  }

  get last(): number {
    return this.entries.at(-1)?.id ?? 0;
  }

  /** Resolves once this is so. */
  until(isSo: (watcher: Watcher) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!isSo(this)) return;
        this.#waiting.delete(check);
        resolve();
      };
      this.#waiting.add(check);
      check();
    });
  }

  untilOutcome(outcome: ViewState["outcome"] = "completed"): Promise<void> {
    return this.until(({ view }) => view.outcome === outcome);
  }

  close(): void {
    this.#close();
  }

  #hear({ id, event = "message", data }: SseMessage): void {
    const parsed = JSON.parse(data);
    this.view = event === "snapshot" ? parsed : reduceEvents(this.view, parsed as WireEvent);
    this.entries.push({ id: Number(id), type: event === "snapshot" ? event : parsed.type, view: this.view, data: parsed });
  }

  #changed(): void {
    for (const check of [...this.#waiting]) check();
  }
}

/** What both have seen they have seen alike, and in the end they are at the same place. */
export function expectSameViews(one: Watcher, other: Watcher): void {
  const views = new Map(one.entries.map(({ id, view }) => [id, view]));
  for (const { id, type, view } of other.entries) if (views.has(id)) expect(view, `after event ${id}, ${type}`).toEqual(views.get(id));
  expect(other.last).toBe(one.last);
}

type Step = (builder: AssistantMessageBuilder) => AssistantMessageEvent[];

/** A model that says what the test has it say, when the test does. */
export function heldModel() {
  const steps: Step[] = [];
  let wake = (): void => {};
  const streamFn: StreamFn = async function* (model, _context, options) {
    const builder = new AssistantMessageBuilder(model);
    options?.signal?.addEventListener("abort", () => wake());
    while (!options?.signal?.aborted) {
      const step = steps.shift();
      if (step) {
        const events = step(builder);
        yield* events;
        if (events.some(({ type }) => type === "done" || type === "error")) return;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  };
  const add = (step: Step): void => {
    steps.push(step);
    wake();
  };
  return {
    streamFn,
    thinks: (delta: string) => add((builder) => builder.thinking(delta)),
    says: (delta: string) => add((builder) => builder.text(delta)),
    calls: (name: string, args: object = {}) =>
      add((b) => [...b.toolCallStart(`${name}-1`, name), ...b.toolCallDelta(JSON.stringify(args)), ...b.toolCallEnd()]),
    ends: () => add((builder) => builder.done()),
    fails: (error: unknown) => add((builder) => builder.fail(error)),
  };
}
