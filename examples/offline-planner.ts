/**
 * How the offline model decides. Each kind of request is a generator: it yields the tool calls it needs next, gets their
 * results, and returns its part of the answer. `advance` replays it against the results in the transcript, so the planner
 * keeps no state between model calls. Runs in a browser.
 */
import type { Intent, Target } from "./offline-requests.js";
import { type FileContent, fileContent, listedFiles, listedTotal, noticesIn, searchResult } from "./offline-results.js";
import { counted, shortened } from "./wording.js";

export interface PlannedCall {
  name: string;
  args: Record<string, unknown>;
}

export interface Outcome {
  text: string;
  failed: boolean;
}

/** The result of a call in the transcript, if it was made. */
export type Results = (call: PlannedCall) => Outcome | undefined;

/** What comes next for one intent. */
export type Step = { calls: PlannedCall[] } | { answer: string };

type ExtremeTarget = Extract<Target, { kind: "extreme" }>;
type Work<T = string> = Generator<PlannedCall[], T, Outcome[]>;

const LINES_OF_A_BEGINNING = 5;
const LINES_SHOWN = 40;
const ENTRIES_SHOWN = 20;
const LINE_LENGTH_SHOWN = 120;

export const HELP = [
  "I am a small offline model: I understand a few kinds of questions about the files here, and arithmetic. For example:",
  "- which file in src is the largest, and how does it begin?",
  "- how many lines does README.md have?",
  '- where is "some text" mentioned in src?',
  "- compare first.txt and second.txt",
  "- list files in src; show lines 1 to 20 of README.md",
  "- what is 12 * (3 + 4)?",
].join("\n");

export function advance(intent: Intent, results: Results): Step {
  const work = workOn(intent);
  let step = work.next();
  while (!step.done) {
    const outcomes = step.value.map((call) => results(call));
    const open = step.value.filter((_call, index) => outcomes[index] === undefined);
    if (open.length > 0) return { calls: open };
    step = work.next(outcomes as Outcome[]);
  }
  return { answer: step.value };
}

/** What the model says it is going to do. */
export function describeIntent(intent: Intent): string {
  switch (intent.kind) {
    case "find":
      return `find ${nameOf(intent.target)}`;
    case "begin":
      return `look at how ${nameOf(intent.target)} begins`;
    case "read":
      return `read ${nameOf(intent.target)}`;
    case "count":
      return `count the lines of ${nameOf(intent.target)}`;
    case "compare":
      return `compare ${nameOf(intent.targets[0])} with ${nameOf(intent.targets[1])}`;
    case "search":
      return `search ${placeOf(intent.folder)} for "${intent.text}"`;
    case "list":
      return `list the files in ${placeOf(intent.folder)}`;
    case "calculate":
      return `calculate ${intent.expression}`;
    case "skill":
      return intent.skill.describe(intent.captures);
    case "help":
      return "say what I can do";
    case "unclear":
      return `admit that I do not understand "${intent.request}"`;
  }
}

function* workOn(intent: Intent): Work {
  switch (intent.kind) {
    case "find":
      return yield* find(intent.target);
    case "begin":
      return yield* begin(intent.target);
    case "read":
      return yield* read(intent.target, intent.firstLine, intent.lineCount);
    case "count":
      return yield* count(intent.target);
    case "compare":
      return yield* compare(intent.targets);
    case "search":
      return yield* search(intent.text, intent.folder);
    case "list":
      return yield* list(intent.folder);
    case "calculate":
      return yield* calculate(intent.expression);
    case "skill":
      return yield* intent.skill.work(intent.captures);
    case "help":
      return HELP;
    case "unclear":
      return `I do not understand "${intent.request}".`;
  }
}

function* find(target: ExtremeTarget): Work {
  const listing = yield* use(listCall(target.folder, target.order));
  if (listing.failed) return failure(`look for ${nameOf(target)}`, listing);
  const [file] = listedFiles(listing.text);
  if (!file) return `There are no files in ${placeOf(target.folder)}.`;
  const answer = `The ${target.order} file in ${placeOf(target.folder)} is ${file.path} with ${counted(file.bytes, "byte")}.`;
  return [answer, ...noticesIn(listing.text)].join("\n");
}

function* begin(target: Target): Work {
  const used = yield* useFile(target, (path) => readCall(path, 1, LINES_OF_A_BEGINNING));
  if (used.failed) return failure(`read how ${used.path} begins`, used);
  const { lines, size } = fileContent(used.text);
  return lines.length === 0 ? `${used.path} is empty (${size}).` : `${used.path} begins:\n${indented(lines)}`;
}

function* read(target: Target, firstLine: number, lineCount = LINES_SHOWN): Work {
  const used = yield* useFile(target, (path) => readCall(path, firstLine, lineCount));
  if (used.failed && IS_FOLDER.test(used.text)) return yield* list(used.path);
  if (used.failed) return failure(`read ${used.path}`, used);
  const { lines, size, allLines } = fileContent(used.text);
  if (lines.length === 0) return `${used.path} is empty (${size}).`;
  const lastLine = firstLine + lines.length - 1;
  const range = lines.length === allLines ? "" : `, lines ${firstLine} to ${lastLine}`;
  return `${used.path} (${size})${range}:\n${indented(lines)}`;
}

function* count(target: Target): Work {
  const used = yield* useFile(target, (path) => ({ name: "count_lines", args: { path } }));
  if (used.failed) return failure(`count the lines of ${used.path}`, used);
  return `${used.path} has ${fileContent(used.text).size.replace(", ", " (")}).`;
}

function* compare(targets: [Target, Target]): Work {
  const files = yield* together(targets.map((target) => useFile(target, (path) => readCall(path))));
  const [first, second] = files as [UsedFile, UsedFile];
  const failures = files.filter(({ failed }) => failed).map((file) => failure(`read ${file.path}`, file));
  if (failures.length > 0) return [...new Set(failures), `So I cannot compare ${first.path} with ${second.path}.`].join("\n");
  const one = { path: first.path, ...fileContent(first.text) };
  const other = { path: second.path, ...fileContent(second.text) };
  return `${one.path} has ${one.size}; ${other.path} has ${other.size}.\n${difference(one, other)}`;
}

type ComparedFile = FileContent & { path: string };

function difference(one: ComparedFile, other: ComparedFile): string {
  const shorter = Math.min(one.lines.length, other.lines.length);
  let same = 0;
  while (same < shorter && one.lines[same] === other.lines[same]) same++;
  const nextLine = ({ path, lines }: ComparedFile): string => `- ${path}: ${shortened(lines[same] as string, LINE_LENGTH_SHOWN)}`;
  if (same < shorter) return `They first differ in line ${same + 1}:\n${nextLine(one)}\n${nextLine(other)}`;
  if ([one, other].some(({ cut }) => cut)) return `They are the same as far as I could read them, ${counted(same, "line")}.`;
  if (one.lines.length !== other.lines.length) {
    const longer = one.lines.length > same ? one : other;
    return `They are the same up to line ${same}; there only ${longer.path} goes on:\n${nextLine(longer)}`;
  }
  return one.size === other.size ? "Their lines are the same." : "Their lines are the same; they differ in their line ends only.";
}

function* search(text: string, folder: string): Work {
  const found = yield* use({ name: "search_text", args: { text, folder } });
  if (found.failed) return failure(`search ${placeOf(folder)} for "${text}"`, found);
  const result = searchResult(found.text);
  if (!result) return found.text;
  const { lines, files, searchedFiles, matches } = result;
  const answer =
    lines === 0
      ? [`"${text}" is not mentioned in ${placeOf(folder)} (${counted(searchedFiles, "file")} searched).`]
      : [`"${text}" is mentioned in ${counted(lines, "line")} of ${counted(files, "file")}:`, ...bullets(matches, lines)];
  return [...answer, ...noticesIn(found.text)].join("\n");
}

function* list(folder: string): Work {
  const listing = yield* use(listCall(folder));
  if (listing.failed) return failure(`list the files in ${placeOf(folder)}`, listing);
  const total = listedTotal(listing.text);
  if (!total) return listing.text;
  if (total.files === 0) return `There are no files in ${placeOf(folder)}.`;
  const entries = listedFiles(listing.text).map(({ path, bytes }) => `${path} (${counted(bytes, "byte")})`);
  return [`In ${placeOf(folder)}: ${total.size}.`, ...bullets(entries, total.files), ...noticesIn(listing.text)].join("\n");
}

function* calculate(expression: string): Work {
  const result = yield* use({ name: "calculate", args: { expression } });
  return result.failed ? failure(`calculate ${expression}`, result) : result.text;
}

interface UsedFile extends Outcome {
  path: string;
}

const DOES_NOT_EXIST = /does not exist/;
const IS_FOLDER = /is a folder/;

/** Makes a call about a file. If there is no file of that name, looks for one whose path ends like that. */
function* useFile(target: Target, callFor: (path: string) => PlannedCall): Work<UsedFile> {
  if (target.kind === "unknown") return { path: target.word, failed: true, text: `I do not know which file "${target.word}" is.` };
  if (target.kind === "extreme") {
    const listing = yield* use(listCall(target.folder, target.order));
    if (listing.failed) return { path: nameOf(target), ...listing };
    const [file] = listedFiles(listing.text);
    if (!file) return { path: nameOf(target), failed: true, text: `There are no files in ${placeOf(target.folder)}.` };
    return { path: file.path, ...(yield* use(callFor(file.path))) };
  }
  const { path } = target;
  const outcome = yield* use(callFor(path));
  if (!outcome.failed || !DOES_NOT_EXIST.test(outcome.text)) return { path, ...outcome };
  const listing = yield* use(listCall("."));
  const candidates = listing.failed ? [] : listedFiles(listing.text).filter((file) => endsLike(file.path, path));
  const [candidate, ...others] = candidates.map((file) => file.path);
  if (candidate === undefined) return { path, ...outcome };
  if (others.length === 0) return { path: candidate, ...(yield* use(callFor(candidate))) };
  return { path, failed: true, text: `${outcome.text} These are called like that: ${[candidate, ...others].join(", ")}.` };
}

function endsLike(path: string, wanted: string): boolean {
  return `/${path}`.toLowerCase().endsWith(`/${wanted.toLowerCase()}`);
}

function* use(call: PlannedCall): Work<Outcome> {
  const [outcome] = yield [call];
  return outcome as Outcome;
}

/** Runs several pieces of work side by side: what they need next is asked for at once. */
function* together<T>(works: Work<T>[]): Work<T[]> {
  const steps = works.map((work) => work.next());
  while (steps.some((step) => !step.done)) {
    const outcomes = yield steps.flatMap((step) => (step.done ? [] : step.value));
    for (const [index, step] of steps.entries()) {
      if (!step.done) steps[index] = (works[index] as Work<T>).next(outcomes.splice(0, step.value.length));
    }
  }
  return steps.map((step) => step.value as T);
}

function listCall(folder: string, order?: string): PlannedCall {
  return { name: "list_files", args: { folder, ...(order && { order }) } };
}

function readCall(path: string, firstLine = 1, lineCount?: number): PlannedCall {
  const range = lineCount === undefined ? {} : { firstLine, lineCount };
  return { name: "read_file", args: { path, ...range } };
}

function nameOf(target: Target): string {
  if (target.kind === "extreme") return `the ${target.order} file in ${placeOf(target.folder)}`;
  return target.kind === "file" ? target.path : target.word;
}

function placeOf(folder: string): string {
  return folder === "." ? "the workspace" : folder;
}

function failure(task: string, { text }: Outcome): string {
  return `I could not ${task}: ${text}`;
}

function bullets(entries: string[], total: number): string[] {
  const shown = entries.slice(0, ENTRIES_SHOWN);
  const hidden = total - shown.length;
  return [...shown.map((entry) => `- ${shortened(entry, LINE_LENGTH_SHOWN)}`), ...(hidden > 0 ? [`- … and ${hidden} more`] : [])];
}

function indented(lines: string[]): string {
  return lines.map((line) => `    ${shortened(line, LINE_LENGTH_SHOWN)}`.trimEnd()).join("\n");
}
