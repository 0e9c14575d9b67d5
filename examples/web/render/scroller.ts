/** Stays at the end of the conversation, unless the user has gone up to read. */

const NEAR = 48;

export class Scroller {
  readonly #element: HTMLElement;
  readonly #toLatest: HTMLElement;
  #following = true;

  constructor(element: HTMLElement, toLatest: HTMLElement) {
    this.#element = element;
    this.#toLatest = toLatest;
    element.addEventListener("scroll", () => {
      this.#following = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
      toLatest.hidden = this.#following;
    });
    toLatest.addEventListener("click", () => {
      this.#following = true;
      this.follow();
      element.focus();
    });
  }

  follow(): void {
    if (this.#following) this.#element.scrollTop = this.#element.scrollHeight;
    else this.#toLatest.hidden = false;
  }
}
