/** Puts the page together: events change the state, and the state is drawn at most once a frame. */
import { Chat } from "./chat.js";
import { offlineChoice } from "./models.js";
import { Announcer } from "./render/announcer.js";
import { ApprovalDialog } from "./render/approval-dialog.js";
import { Composer } from "./render/composer.js";
import { Conversation } from "./render/conversation.js";
import { button, byId } from "./render/dom.js";
import { Ending } from "./render/ending.js";
import { ModelDialog } from "./render/model-dialog.js";
import { Queue } from "./render/queue.js";
import { Scroller } from "./render/scroller.js";
import { TimelineChart } from "./render/timeline-chart.js";
import { UsageTable } from "./render/usage.js";
import { WaitingCard } from "./render/waiting.js";
import { Store } from "./state.js";
import { createToolbox } from "./tools/index.js";

const TICK_MS = 200;
const SUGGESTIONS = [
  "Proofread all files",
  "Draw a chart of data/visitors.csv",
  'Write "Bring candles" to notes/todo.md',
  "Which file is the largest, and how does it begin?",
];

const choice = offlineChoice();
const toolbox = createToolbox();
const store = new Store({ id: choice.model.id, place: choice.place }, schedule);
const chat = new Chat(store, toolbox, choice);
const labelOf = (name: string): string => toolbox.tools.find((tool) => tool.name === name)?.label ?? name;

const approval = new ApprovalDialog();
const composer = new Composer({
  send: (text, images) => {
    scroller.toEnd();
    chat.send(text, images);
  },
  later: (text, images) => chat.later(text, images),
  stop: () => chat.stop(),
});
const scroller = new Scroller(byId("scroller"), byId("to-latest"));
const parts = [
  new Conversation(byId("messages"), labelOf, approval.reopen),
  new WaitingCard(byId("waiting")),
  new Ending(byId("ending"), () => {
    composer.text.focus();
    chat.retry();
  }),
  new Queue(byId("queue"), { takeBack: (message) => chat.takeBack(message), sendWaiting: () => chat.sendWaiting() }, composer.text),
  new TimelineChart(byId("timeline"), labelOf),
  new UsageTable(),
  new ModelDialog(
    (chosen) => chat.use(chosen),
    (notice) => store.set({ notice }),
  ),
  new Announcer(),
  composer,
  approval,
];

let scheduled = false;
let clock: ReturnType<typeof setInterval> | undefined;

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(draw);
}

function draw(): void {
  scheduled = false;
  const { state } = store;
  byId("welcome").hidden = state.view.messages.length > 0;
  for (const part of parts) part.update(state, Date.now());
  if (state.running) clock ??= setInterval(tick, TICK_MS);
  else {
    clearInterval(clock);
    clock = undefined;
  }
}

/** What changes with time alone. */
function tick(): void {
  for (const part of parts) if ("tick" in part) part.tick(Date.now());
}

byId("suggestions").append(
  ...SUGGESTIONS.map((text) =>
    button(text, () => {
      composer.text.focus();
      chat.send(text, []);
    }),
  ),
);
byId("start-over").addEventListener("click", () => {
  composer.text.focus();
  void chat.startOver();
});
addEventListener("beforeunload", (event) => {
  if (store.state.running) event.preventDefault();
});
byId<HTMLDetailsElement>("activity").open = matchMedia("(min-width: 64rem)").matches;
composer.text.focus();
schedule();
