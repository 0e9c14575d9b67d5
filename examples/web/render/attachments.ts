/** Images that go with the next message: chosen, pasted or dropped. */
import type { ImageContent } from "turnloop";
import { button, byId, el, KeyedList, setText } from "./dom.js";
import { IMAGE_TYPES, imageUrl } from "./format.js";

interface Attachment {
  name: string;
  image: ImageContent;
}

const MAX_BYTES = 5_000_000;

export class Attachments {
  readonly #element = byId("attachments");
  readonly #problem = byId("attach-problem");
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
    const read = await Promise.all([...(files ?? [])].map(attachment));
    this.#show([...this.#attached, ...read.filter((one) => typeof one !== "string")]);
    setText(this.#problem, read.filter((one) => typeof one === "string").join(" "));
  }

  #show(attached: readonly Attachment[]): void {
    this.#attached = attached;
    this.#list.update(attached);
    this.#element.hidden = attached.length === 0;
    setText(this.#problem, "");
  }
}

/** Or what is wrong with the file. */
async function attachment(file: File): Promise<Attachment | string> {
  const name = file.name || "image";
  if (!IMAGE_TYPES.includes(file.type)) return `${name} is not a PNG, JPEG, GIF or WebP image.`;
  if (file.size > MAX_BYTES) return `${name} is larger than ${MAX_BYTES / 1_000_000} MB.`;
  try {
    return { name, image: await read(file) };
  } catch {
    return `${name} could not be read.`;
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
