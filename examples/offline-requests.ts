/** What the offline model understands: from the words of a user to a list of intents. Runs in a browser. */
import { type Skill, skillFor } from "./offline-skill.js";

type Order = "largest" | "smallest";

/** A file by its name, the largest or smallest one of a folder, or a word such as "it" that refers to nothing. */
export type Target = { kind: "file"; path: string } | { kind: "extreme"; order: Order; folder: string } | { kind: "unknown"; word: string };

export type Intent =
  | { kind: "find"; target: Extract<Target, { kind: "extreme" }> }
  | { kind: "begin"; target: Target }
  | { kind: "read"; target: Target; firstLine: number; lineCount?: number }
  | { kind: "count"; target: Target }
  | { kind: "compare"; targets: [Target, Target] }
  | { kind: "search"; text: string; folder: string }
  | { kind: "list"; folder: string }
  | { kind: "calculate"; expression: string }
  | { kind: "skill"; skill: Skill; captures: string[] }
  | { kind: "help" }
  | { kind: "unclear"; request: string };

/** The intents of each message of a conversation, in order. "it" is the file spoken of last, also in an earlier message. */
export function readRequests(messages: string[], skills: readonly Skill[] = []): Intent[][] {
  let subject: Target | undefined;
  const clauseEnd = clauseEndBefore([FIRST_WORDS, ...skills.flatMap(({ verbs }) => verbs)].join("|"));
  return messages.map((message) => {
    const quotes = new Quotes();
    const intents = splitIntoClauses(quotes.hide(message), clauseEnd).flatMap((clause) => {
      const read = new ClauseReader(quotes, subject, skills).read(clause);
      for (const intent of read) subject = targetOf(intent) ?? subject;
      return read;
    });
    return intents.length > 0 ? intents : [{ kind: "help" }];
  });
}

function targetOf(intent: Intent): Target | undefined {
  const target = "target" in intent ? intent.target : "targets" in intent ? intent.targets[1] : undefined;
  return target?.kind === "unknown" ? undefined : target;
}

/** Quoted names are taken word for word, so they are hidden from the splitting and the patterns. */
class Quotes {
  readonly #texts: string[] = [];

  hide(message: string): string {
    return message.replace(
      /"([^"\n]+)"|`([^`\n]+)`|“([^”\n]+)”|(?<![\w.])'([^'\n]+)'(?!\w)/g,
      (_quoted, ...groups: (string | undefined)[]) => {
        const text = groups.slice(0, 4).find((group) => group !== undefined) as string;
        return `\uE000${this.#texts.push(text) - 1}\uE001`;
      },
    );
  }

  show(hidden: string): string {
    return hidden.replace(/\uE000(\d+)\uE001/g, (_placeholder, index: string) => this.#texts[Number(index)] as string);
  }
}

const isQuoted = (hidden: string): boolean => /^\uE000\d+\uE001$/.test(hidden);

const FIRST_WORDS =
  "how|which|what|what['’]?s|where|who|compare|diff|count|show|read|open|print|cat|display|view|list|ls|find|search|look|grep|" +
  "calculate|compute|evaluate|tell|give|please|also|then|can|could|help";
/** Always at ? ; and line ends; at "and", "then", commas and full stops only where the next word begins a request. */
function clauseEndBefore(firstWords: string): RegExp {
  return new RegExp(String.raw`[?;\n]+|(?:[.!,]|,?\s+and then|,?\s+and|,?\s+then)\s+(?=(?:${firstWords})(?:\s|$))`, "i");
}

const FILLER =
  /^(?:(?:please|kindly|also|and|then|now|next|first|finally|so|ok|okay|well|hello|hey|hi|can you|could you|would you|will you|tell me|show me(?= how many))(?:[\s,!]+|$))+/i;

function splitIntoClauses(message: string, clauseEnd: RegExp): string[] {
  return message.replace(/[ \t]+/g, " ").split(clauseEnd);
}

type Captures = (string | undefined)[];

interface Rule {
  pattern: RegExp;
  read(reader: ClauseReader, captures: Captures): Intent[];
}

/** Clauses reach the patterns with single spaces, and with what was quoted as one word. */
const WORD = "([^ ]+)";
const NUMBER = "([0-9]+)";
const OPTIONAL_FOLDER = "(?: (?:in|of|under|below|within|inside|from) (.+?))?";
/** After free text a folder is one word, so that "where is a word in a sentence mentioned in src" keeps its text. */
const ONE_WORD_FOLDER = "(?: (?:in|under|below|within|inside) ((?:the )?(?:(?:folder|directory|file) )?[^ ]+(?: (?:folder|directory))?))?";
const EXTREME = "(largest|biggest|smallest)";
const SHOW = "(?:show|read|open|print|cat|display|view|give)(?: me)?";
const MENTIONED = "(?:mentioned|used|found|defined|named|written|referenced|mention|occur|appear)";
const WHAT_IS = "(?:(?:what|which) is|what['’]?s)";
const SUM = "(?=.*[0-9])[-+(.0-9][-+*/%^().0-9 ]*";

/** Tried in this order. */
const RULES: Rule[] = [
  rule("help|what can you do|what do you do|who are you", () => [{ kind: "help" }]),
  rule("(?:compare|diff) (.+)", (reader, [files]) => reader.comparisons(files)),
  rule(`(?:(?:${WHAT_IS}|${SHOW}) )?the differences? between (.+)`, (reader, [files]) => reader.comparisons(files)),
  rule("how do (.+?) differ", (reader, [files]) => reader.comparisons(files)),
  rule(
    "how many lines (?:(?:do|does|are there in|are in|is in|has|have|in) )?(.+?)(?: (?:have|has|contain|contains))?",
    (reader, [files]) => reader.counts(files),
  ),
  rule(`(?:count (?:the )?|(?:${WHAT_IS} )?the number of )lines (?:of|in) (.+)`, (reader, [files]) => reader.counts(files)),
  rule("how (?:long|big|large) (?:is|are) (.+)", (reader, [files]) => reader.counts(files)),
  rule(
    `(?:which|what) file${OPTIONAL_FOLDER} is (?:the )?${EXTREME}(?: file)?${OPTIONAL_FOLDER}`,
    (reader, [folderBefore, order, folderAfter]) => reader.extreme(order, folderBefore ?? folderAfter),
  ),
  rule(`(?:(?:${WHAT_IS}|find|name) )?(?:the )?${EXTREME} file${OPTIONAL_FOLDER}`, (reader, [order, folder]) =>
    reader.extreme(order, folder),
  ),
  rule("(?:how|what) (?:does|do) (.+?) (?:begin|start)(?: with)?", (reader, [files]) => reader.beginnings(files)),
  rule(`(?:${SHOW} )?how (.+?) (?:begins|starts)`, (reader, [files]) => reader.beginnings(files)),
  rule(`${SHOW} the (?:beginning|start|head) of (.+)`, (reader, [files]) => reader.beginnings(files)),
  rule(`${SHOW} (?:the )?first ${NUMBER} lines? of (.+)`, (reader, [count, files]) => reader.reads(files, "1", count)),
  rule(`${SHOW} (?:the )?lines? ${NUMBER}(?: ?(?:-|–|to|through) ?${NUMBER})? (?:of|in|from) (.+)`, (reader, [first, last, files]) =>
    reader.reads(files, first, String(Number(last ?? first) - Number(first) + 1)),
  ),
  rule(`(?:list|ls|${SHOW}|find)(?: me)?(?: all)?(?: the)? files(?:${OPTIONAL_FOLDER}| here)`, (reader, [folder]) => reader.list(folder)),
  rule("(?:which|what) files (?:are|exist)(?: there)?(?: (?:in|under|below) (.+)| here)?", (reader, [folder]) => reader.list(folder)),
  rule("(?:list|ls)(?: (.+))?", (reader, [folder]) => reader.list(folder)),
  rule(`where in ${WORD} (?:is|are|does|do) (.+?) ${MENTIONED}`, (reader, [folder, texts]) => reader.searches(texts, folder)),
  rule(`where (?:is|are|does|do) (.+?) ${MENTIONED}${ONE_WORD_FOLDER}`, (reader, [texts, folder]) => reader.searches(texts, folder)),
  rule(
    `(?:which|what) (?:files?|lines?)(?: in ${WORD})? (?:mention|contain|use)s? (.+?)${ONE_WORD_FOLDER}`,
    (reader, [folderBefore, texts, folderAfter]) => reader.searches(texts, folderBefore ?? folderAfter),
  ),
  rule(`(?:search|look|grep) for (.+?)${ONE_WORD_FOLDER}`, (reader, [texts, folder]) => reader.searches(texts, folder)),
  rule(`(?:search|look|grep)(?: in)? ${WORD} for (.+)`, (reader, [folder, texts]) => reader.searches(texts, folder)),
  rule(`(?:find|search|grep|where is|where are) (.+?)${ONE_WORD_FOLDER}`, (reader, [texts, folder]) => reader.searches(texts, folder)),
  rule("(?:calculate|compute|evaluate) (.+)", (reader, [sums]) => reader.calculations(sums)),
  rule(`(?:(?:${WHAT_IS}|how much is) )?(${SUM}(?:and ${SUM})*)=?`, (reader, [sums]) => reader.calculations(sums)),
  rule(`${SHOW} (?:(?:the )?contents? of )?(.+)`, (reader, [files]) => reader.reads(files)),
  rule("what is in (.+)", (reader, [files]) => reader.reads(files)),
  rule("what does (.+) (?:say|contain)", (reader, [files]) => reader.reads(files)),
];

function rule(pattern: string, read: Rule["read"]): Rule {
  return { pattern: new RegExp(`^(?:${pattern})$`, "i"), read };
}

const ARITHMETIC_WORDS: [RegExp, string][] = [
  [/\s*(?:×|\btimes\b|\bmultiplied by\b|(?<=\d)\s+x\s+(?=[\d(]))\s*/gi, " * "],
  [/\s*(?:÷|\bdivided by\b)\s*/gi, " / "],
  [/\s*\bto the power of\b\s*/gi, " ^ "],
  [/(?<=[\d)]\s*)\bplus\b/gi, "+"],
  [/(?<=[\d)]\s*)(?:−|\bminus\b)/gi, "-"],
];

/** Reads one clause. What it captures is still hidden where it was quoted. */
class ClauseReader {
  readonly #quotes: Quotes;
  readonly #subject: Target | undefined;
  readonly #skills: readonly Skill[];

  constructor(quotes: Quotes, subject: Target | undefined, skills: readonly Skill[]) {
    this.#quotes = quotes;
    this.#subject = subject;
    this.#skills = skills;
  }

  read(clause: string): Intent[] {
    const request = withoutFinalMarks(clause.trim().replace(FILLER, ""));
    if (!/[^\s.]/.test(request)) return [];
    const taught = skillFor(request, this.#skills, (hidden) => this.#quotes.show(hidden));
    if (taught) return [{ kind: "skill", ...taught }];
    for (const wording of new Set([request, arithmeticOf(request)])) {
      for (const { pattern, read } of RULES) {
        const captures = pattern.exec(wording)?.slice(1);
        const intents = captures ? read(this, captures) : [];
        if (intents.length > 0) return intents;
      }
    }
    return [{ kind: "unclear", request: this.#quotes.show(withoutFinalMarks(clause.trim())) }];
  }

  counts(files: string | undefined): Intent[] {
    return this.#targets(files).map((target) => ({ kind: "count", target }));
  }

  beginnings(files: string | undefined): Intent[] {
    return this.#targets(files).map((target) => ({ kind: "begin", target }));
  }

  reads(files: string | undefined, firstLine = "1", lineCount?: string): Intent[] {
    const range = { firstLine: Math.max(1, Number(firstLine)), ...(lineCount && { lineCount: Math.max(1, Number(lineCount)) }) };
    return this.#targets(files).map((target) => ({ kind: "read", target, ...range }));
  }

  /** The first with each of the others. */
  comparisons(files: string | undefined): Intent[] {
    const [first, ...others] = this.#targets(files, /\s*,\s*|\s+(?:and|with|to|against|from|vs\.?|versus)\s+/i);
    return others.map((other) => ({ kind: "compare", targets: [first as Target, other] }));
  }

  extreme(order: string | undefined, folder: string | undefined): Intent[] {
    return [{ kind: "find", target: this.#extreme(order, folder) }];
  }

  list(folder: string | undefined): Intent[] {
    return [{ kind: "list", folder: this.#folder(folder) }];
  }

  searches(texts: string | undefined, folder: string | undefined): Intent[] {
    return names(texts).map((text) => ({ kind: "search", text: this.#quotes.show(text), folder: this.#folder(folder) }));
  }

  calculations(sums: string | undefined): Intent[] {
    return names(sums).map((sum) => ({ kind: "calculate", expression: this.#quotes.show(arithmeticOf(sum)).replace(/\s*=$/, "") }));
  }

  #targets(list: string | undefined, separator?: RegExp): Target[] {
    return names(list, separator).map((name) => this.#target(name));
  }

  #target(name: string): Target {
    if (isQuoted(name)) return { kind: "file", path: this.#quotes.show(name) };
    const plain = name.replace(/^the\s+/i, "").replace(/^files?\s+/i, "");
    const extreme = new RegExp(`^${EXTREME} (?:file|one)${OPTIONAL_FOLDER}$`, "i").exec(plain);
    if (extreme) return this.#extreme(extreme[1], extreme[2]);
    if (/^(?:it|that|this|that file|this file|file|them|they|both)$/i.test(plain)) return this.#subject ?? { kind: "unknown", word: name };
    return { kind: "file", path: this.#quotes.show(plain) };
  }

  #extreme(order: string | undefined, folder: string | undefined): Extract<Target, { kind: "extreme" }> {
    return { kind: "extreme", order: order?.toLowerCase() === "smallest" ? "smallest" : "largest", folder: this.#folder(folder) };
  }

  #folder(name = ""): string {
    if (isQuoted(name)) return this.#quotes.show(name);
    const plain = this.#quotes.show(
      name
        .replace(/^(?:the\s+)?(?:(?:folder|directory|file)\s+)?/i, "")
        .replace(/\s+(?:folder|directory)$/i, "")
        .replace(/(?<=.)\/$/, ""),
    );
    const isRoot =
      /^(?:|here|it|all files|all|everywhere|(?:this|current)(?: folder| directory| workspace)?|workspace|root|project)$/i.test(plain);
    return isRoot ? "." : plain;
  }
}

/** The names of a list: "a, b and c". */
function names(list = "", separator = /\s*,\s*(?:and\s+)?|\s+(?:and|or)\s+/i): string[] {
  return list
    .split(separator)
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** Without the marks that end a sentence; the dots of "." and ".." stay. */
function withoutFinalMarks(clause: string): string {
  return clause.replace(/(?:(?<=[\w)\uE001])\.+|\s*[,!:]+)+$/, "").trim();
}

function arithmeticOf(request: string): string {
  return ARITHMETIC_WORDS.reduce((text, [words, symbol]) => text.replace(words, symbol), request);
}
