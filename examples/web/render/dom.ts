/** Making and changing elements. Text of a model or a user gets into the page as text only. */

type Attributes = Record<string, string | boolean | undefined>;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

export function button(label: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const element = el("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", onClick);
  return element;
}

export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value === true ? "" : value)) element.setAttribute(name, value === true ? "" : value);
  }
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** The element of the page's skeleton. */
export function byId<E extends HTMLElement>(id: string): E {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element "${id}".`);
  return element as E;
}

/** Text that grows at its end: what is there stays, with the user's selection in it. */
export class GrowingText {
  readonly node = document.createTextNode("");
  #shown = "";

  set(text: string): void {
    if (text === this.#shown) return;
    if (text.startsWith(this.#shown)) this.node.appendData(text.slice(this.#shown.length));
    else this.node.data = text;
    this.#shown = text;
  }
}

/**
 * Keeps the children of an element in step with a list. An item is known by its identity; its node is made once, and moved
 * or removed with it.
 */
export class KeyedList<T extends object> {
  readonly #parent: Element;
  readonly #create: (item: T) => Element;
  #items: readonly T[] = [];
  #nodes = new Map<T, Element>();

  constructor(parent: Element, create: (item: T) => Element) {
    this.#parent = parent;
    this.#create = create;
  }

  update(items: readonly T[]): void {
    if (items === this.#items) return;
    const wanted = new Set(items);
    for (const [item, node] of this.#nodes) {
      if (wanted.has(item)) continue;
      node.remove();
      this.#nodes.delete(item);
    }
    for (const [index, item] of items.entries()) {
      const node = this.#nodes.get(item) ?? this.#create(item);
      this.#nodes.set(item, node);
      if (this.#parent.children[index] !== node) this.#parent.insertBefore(node, this.#parent.children[index] ?? null);
    }
    this.#items = items;
  }
}
