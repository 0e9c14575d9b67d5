/** The page: one EventSource in, `reduceEvents` over what comes, POSTs out. A reload, or the link in another window, shows the same. */
import { initialView, reduceEvents, type ViewState, type WireEvent } from "turnloop";
import { renderView, showAll } from "./render.js";

const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const [conversation, state, form, text] = [byId("conversation"), byId("state"), byId("form"), byId<HTMLInputElement>("text")];
const button = (id: string): HTMLButtonElement => byId<HTMLButtonElement>(id);

let view: ViewState = initialView();
let connection = "Connecting…";
let isDrawing = false;

/** A screen reader says it again each time it is written. */
function say(words: string): void {
  if (state.textContent !== words) state.textContent = words;
}

async function post(path: string, body: object = {}): Promise<{ id: string } | undefined> {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (response.ok) return answer;
    say(answer.error.message);
  } catch {
    say("The server cannot be reached.");
  }
  return undefined;
}

const act = (action: string, body?: object): Promise<unknown> => post(`/conversations/${location.hash.slice(1)}/${action}`, body);

function change(next: ViewState): void {
  view = next;
  redraw();
}

/** A view without an outcome is that of a run, or of a conversation that has not begun. */
function isRunning(): boolean {
  return view.outcome === undefined && (view.messages.length > 0 || view.streamingMessage !== undefined);
}

/** How near the end of the page counts as there, in pixels. */
const NEAR = 40;

/** Once a frame, however many events there were. */
function redraw(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    const page = document.documentElement;
    const isAtEnd = innerHeight + scrollY >= page.scrollHeight - NEAR;
    showAll(conversation, renderView(view, decide));
    const running = isRunning();
    say(connection || (running ? "Working…" : view.pending ? "Your decision is needed." : (view.outcome ?? "")));
    button("send").textContent = running ? "Steer" : "Send";
    button("later").hidden = button("stop").hidden = !running;
    button("retry").hidden = running || (view.outcome !== "error" && view.outcome !== "aborted");
    if (isAtEnd) scrollTo(0, page.scrollHeight);
  });
}

function decide(approve: boolean): void {
  text.focus();
  const decisions = (view.pending ?? []).map(({ toolCall }) => ({ toolCallId: toolCall.id, action: approve ? "approve" : "deny" }));
  void act("decisions", { decisions });
}

async function send(action: "prompt" | "steer" | "follow-up"): Promise<void> {
  const written = text.value;
  if (written.trim() === "") return;
  text.value = "";
  if (!(await act(action, { text: written }))) text.value = `${written}${text.value}`;
}

function listen(id: string): void {
  const source = new EventSource(`/conversations/${id}/events`);
  source.addEventListener("snapshot", ({ data }) => change(JSON.parse(data) as ViewState));
  source.addEventListener("message", ({ data }) => change(reduceEvents(view, JSON.parse(data) as WireEvent)));
  source.addEventListener("open", () => {
    connection = "";
    redraw();
  });
  // it comes back by itself, with the id of the last event, unless the server has said no
  source.addEventListener("error", () => {
    const isGone = source.readyState === EventSource.CLOSED;
    connection = isGone ? "This conversation is over. Open the page without what is behind # for a new one." : "Connecting again…";
    redraw();
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void send(isRunning() ? "steer" : "prompt");
});
button("later").addEventListener("click", () => void send("follow-up"));
button("stop").addEventListener("click", () => void act("abort"));
button("retry").addEventListener("click", () => void act("retry"));
window.addEventListener("hashchange", () => location.reload());

if (location.hash === "") {
  const created = await post("/conversations");
  if (created) history.replaceState(undefined, "", `#${created.id}`);
}
if (location.hash !== "") listen(location.hash.slice(1));
