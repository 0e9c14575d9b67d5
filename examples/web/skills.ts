/** What the offline model can do here beside files and arithmetic, so that every part of the page can be seen without a key. */

import type { Outcome, PlannedCall } from "../offline-planner.js";
import { listedFiles } from "../offline-results.js";
import type { Skill, SkillWork } from "../offline-skill.js";

export const SKILLS: readonly Skill[] = [
  {
    verbs: ["proofread"],
    pattern: /^proofread (?:all(?: the)? files|everything)(?: in (\S+))?$/i,
    describe: ([folder]) => `proofread all files in ${folder || "the workspace"}`,
    *work([folder]): SkillWork {
      const listing = yield* use({ name: "list_files", args: { folder: folder || "." } });
      return yield* proofreadAll(listedFiles(listing.text).map(({ path }) => path));
    },
  },
  {
    verbs: ["proofread"],
    pattern: /^proofread (.+)$/i,
    describe: ([files]) => `proofread ${files}`,
    work: ([files = ""]) => proofreadAll(files.split(/\s*,\s*(?:and\s+)?|\s+and\s+/)),
  },
  {
    verbs: ["draw", "chart", "plot"],
    pattern: /^(?:draw|chart|plot)\b.*?\b(?:sizes?|files?)\b.*?$/i,
    describe: () => "draw a chart of the file sizes",
    *work(): SkillWork {
      const listing = yield* use({ name: "list_files", args: { folder: ".", order: "largest" } });
      const bars = listedFiles(listing.text).map(({ path, bytes }) => ({ label: path, value: bytes }));
      return yield* chart("File sizes in bytes", bars);
    },
  },
  {
    verbs: ["draw", "chart", "plot"],
    pattern: /^(?:draw|chart|plot)\b.*?([\w/.-]+\.csv)$/i,
    describe: ([path]) => `draw a chart of ${path}`,
    *work([path = ""]): SkillWork {
      const file = yield* use({ name: "read_file", args: { path } });
      if (file.failed) return `I could not read ${path}: ${file.text}`;
      const rows = file.text.split("\n").map((line) => line.split(","));
      const bars = rows.flatMap(([label = "", value]) => (Number.isFinite(Number(value)) ? [{ label, value: Number(value) }] : []));
      return yield* chart(path, bars);
    },
  },
  {
    verbs: ["write", "note"],
    pattern: /^(?:write|note)(?: down)? (.+) (?:to|into|in) (\S+)$/i,
    describe: ([, path]) => `write ${path}`,
    *work([text = "", path = ""]): SkillWork {
      const written = yield* use({ name: "write_file", args: { path, text: `${text}\n` } });
      return written.failed ? `I did not write ${path}: ${written.text}` : `Done. ${written.text}.`;
    },
  },
  {
    verbs: ["delete", "remove"],
    pattern: /^(?:delete|remove)(?: the file)? (\S+)$/i,
    describe: ([path]) => `delete ${path}`,
    *work([path = ""]): SkillWork {
      const deleted = yield* use({ name: "delete_file", args: { path } });
      return deleted.failed ? `I did not delete ${path}: ${deleted.text}` : `Done. ${deleted.text}.`;
    },
  },
];

function* proofreadAll(paths: string[]): SkillWork {
  const outcomes = yield paths.map((path) => ({ name: "proofread", args: { path } }));
  const failed = outcomes.filter((outcome) => outcome.failed).map(({ text }) => text);
  const findings = outcomes
    .filter((outcome) => !outcome.failed)
    .flatMap(({ text }) =>
      text
        .split("\n")
        .slice(1)
        .map((line) => [text, line]),
    );
  const lines = findings.map(([text = "", line]) => `- ${text.split(":")[0]}, ${line}`);
  const summary = lines.length === 0 ? "I found nothing to correct." : `I would correct ${lines.length} places:\n${lines.join("\n")}`;
  return [...(failed.length < outcomes.length ? [summary] : []), ...failed].join("\n");
}

function* chart(title: string, bars: { label: string; value: number }[]): SkillWork {
  const drawn = yield* use({ name: "draw_chart", args: { title, bars } });
  return drawn.failed ? `I could not draw it: ${drawn.text}` : `Here it is. ${drawn.text}`;
}

function* use(call: PlannedCall): Generator<PlannedCall[], Outcome, Outcome[]> {
  const [outcome] = yield [call];
  return outcome as Outcome;
}
