/** Images that go with the next message: chosen, pasted or dropped. */
import type { ImageContent } from "turnloop";
import { button, byId, el, KeyedList } from "./dom.js";
import { IMAGE_TYPES, imageUrl } from "./format.js";

interface Attachment {
  name: string;
  image: ImageContent;
}

const MAX_BYTES = 5_000_000;

export class Attachments {
  readonly #element = byId("attachments");
  readonly #list: KeyedList<Attachment>;
  #attached: readonly Attachment[] = [];

  constructor(text: HTMLTextAreaElement) {
    const files = byId<HTMLInputElement>("files");
    this.#list = new KeyedList(this.#element, (attachment) => {
      const remove = button(
        "×",
        () => {
          this.#show(this.#attached.filter((other) => other !== attachment));
          text.focus();
        },
        { class: "remove", "aria-label": `Remove ${attachment.name}` },
      );
      return el("li", {}, el("img", { src: imageUrl(attachment.image), alt: attachment.name }), remove);
    });
    byId("attach").addEventListener("click", () => files.click());
    files.addEventListener("change", () => {
      void this.#add(files.files);
      files.value = "";
      text.focus();
    });
    text.addEventListener("paste", (event) => {
      if (event.clipboardData?.files.length) event.preventDefault();
      void this.#add(event.clipboardData?.files);
    });
    const form = byId("composer");
    form.addEventListener("dragover", (event) => event.preventDefault());
    form.addEventListener("drop", (event) => {
      event.preventDefault();
      void this.#add(event.dataTransfer?.files);
    });
  }

  get images(): ImageContent[] {
    return this.#attached.map(({ image }) => image);
  }

  clear(): void {
    this.#show([]);
  }

  async #add(files: FileList | null | undefined): Promise<void> {
    const wanted = [...(files ?? [])].filter(({ type, size }) => IMAGE_TYPES.includes(type) && size <= MAX_BYTES);
    const added = await Promise.all(wanted.map(async (file) => ({ name: file.name || "image", image: await read(file) })));
    this.#show([...this.#attached, ...added]);
  }

  #show(attached: readonly Attachment[]): void {
    this.#attached = attached;
    this.#list.update(attached);
    this.#element.hidden = attached.length === 0;
  }
}

function read(file: File): Promise<ImageContent> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ type: "image", mimeType: file.type, data: String(reader.result).replace(/^.*?,/, "") });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
