/** From the view of a conversation to elements. Text only ever becomes text, never markup. */
import type { AgentMessage, AssistantMessage, PendingToolCall, ToolResultMessage, UserMessage, ViewState } from "turnloop";

type Child = Node | string;

function element(tag: string, className: string, ...children: Child[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

/** A message never changes, and stays the same object: it is drawn once. So is a question, which may have the focus. */
const drawn = new WeakMap<object, HTMLElement[]>();

/** Everything there is to see, in order. `onDecide` is called with the answer to a call that waits. */
export function renderView(view: ViewState, onDecide: (approve: boolean) => void): HTMLElement[] {
  const { messages, streamingMessage, toolCalls, thinking, queues, pending, error } = view;
  const running = toolCalls.filter(({ status }) => status === "running");
  return [
    ...messages.flatMap((message) => drawOnce(message, () => draw(message))),
    ...(streamingMessage ? drawAnswer(streamingMessage) : []),
    ...running.map(({ toolName, progress }) => card(`… ${toolName}`, progress ? textOf(progress.content) : "")),
    ...(pending ? drawOnce(pending, () => [approval(pending, onDecide)]) : []),
    ...(thinking ? [element("p", "thinking", thinking.title)] : []),
    ...queues.steering.map((message) => element("p", "queued", `next: ${textOf((message as UserMessage).content)}`)),
    ...queues.followUp.map((message) => element("p", "queued", `later: ${textOf((message as UserMessage).content)}`)),
    ...(error ? [element("p", "error", error.message)] : []),
  ];
}

function drawOnce(shown: object, draw: () => HTMLElement[]): HTMLElement[] {
  const known = drawn.get(shown) ?? draw();
  drawn.set(shown, known);
  return known;
}

/** Moves nothing that is in its place: focus and selection stay. */
export function showAll(parent: Element, elements: readonly HTMLElement[]): void {
  for (const [index, element] of elements.entries()) {
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  }
  while (parent.children.length > elements.length) parent.lastElementChild?.remove();
}

function draw(message: AgentMessage): HTMLElement[] {
  switch (message.role) {
    case "user":
      return [element("p", "user", textOf((message as UserMessage).content))];
    case "assistant":
      return drawAnswer(message as AssistantMessage);
    case "toolResult": {
      const { toolName, content, isError } = message as ToolResultMessage;
      return [card(`${isError ? "✗" : "✓"} ${toolName}`, textOf(content), isError)];
    }
    default:
      return [];
  }
}

function drawAnswer({ content }: AssistantMessage): HTMLElement[] {
  return content.map((block) => {
    if (block.type === "text") return element("p", "answer", block.text);
    if (block.type === "thinking") return element("p", "thinking", block.thinking);
    return element("p", "call", `→ ${block.name} ${JSON.stringify(block.arguments)}`);
  });
}

function card(title: string, text: string, isFailed = false): HTMLElement {
  return element("div", isFailed ? "card failed" : "card", title, ...(text ? [output(text)] : []));
}

/** Long ones scroll, also by keyboard. */
function output(text: string): HTMLElement {
  const made = element("pre", "", text);
  made.tabIndex = 0;
  return made;
}

/** All calls of a turn are decided together. */
function approval(pending: PendingToolCall[], onDecide: (approve: boolean) => void): HTMLElement {
  const calls = pending.map(({ toolCall, args, reason }) =>
    element("p", "", `May ${toolCall.name} run with ${JSON.stringify(args)}?${reason ? ` ${reason}` : ""}`),
  );
  const button = (label: string, approve: boolean): HTMLElement => {
    const made = element("button", "", label);
    made.addEventListener("click", () => onDecide(approve));
    return made;
  };
  return element("div", "card", ...calls, button("Allow", true), " ", button("Deny", false));
}

function textOf(content: string | readonly { type: string }[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => ("text" in block ? block.text : `[${block.type}]`)).join("\n");
}
