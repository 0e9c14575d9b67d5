/** Stays at the end of the conversation, unless the user has gone up to read. */

const NEAR = 48;

export class Scroller {
  readonly #element: HTMLElement;
  readonly #toLatest: HTMLElement;
  #following = true;
  #top = 0;

  constructor(element: HTMLElement, toLatest: HTMLElement) {
    this.#element = element;
    this.#toLatest = toLatest;
    element.tabIndex = 0;
    element.addEventListener("scroll", () => this.#onScroll());
    toLatest.addEventListener("click", () => {
      this.toEnd();
      element.focus();
    });
    // what grows may do so late: images load, what was out of sight gets its size
    const follow = new ResizeObserver(() => {
      this.#follow();
      // what stands below keeps in line with what is beside a scroll bar
      element.parentElement?.style.setProperty("--gutter", `${(element.offsetWidth - element.clientWidth) / 2}px`);
    });
    for (const grown of [element, ...element.children]) follow.observe(grown);
  }

  toEnd(): void {
    this.#following = true;
    this.#follow();
  }

  #follow(): void {
    if (this.#following) this.#element.scrollTop = this.#element.scrollHeight;
    this.#toLatest.hidden = this.#following || this.#isNearEnd();
  }

  /** Only going up says that the user wants to read there. */
  #onScroll(): void {
    const { scrollTop } = this.#element;
    if (this.#isNearEnd()) this.#following = true;
    else if (scrollTop < this.#top) this.#following = false;
    this.#top = scrollTop;
    this.#toLatest.hidden = this.#following;
  }

  #isNearEnd(): boolean {
    const { scrollHeight, scrollTop, clientHeight } = this.#element;
    return scrollHeight - scrollTop - clientHeight < NEAR;
  }
}
