/** What the workspace holds when the page opens. */
export const SAMPLE_FILES: Readonly<Record<string, string>> = {
  "README.md": `# The lighthouse exhibition

A small exhibition about the lighthouse at the point, open from May to September.

- notes/ has what we talked about
- data/ has the numbers of last year
- texts/ has what will hang on the walls

Ask the archive before you you quote a letter.
`,
  "notes/meeting.md": `# Meeting, 3 March

Ines brings the lamp from the museum store. It weighs 80 kg, so we need two people and a trolley.
Tom asks the archive for the keeper's letters.

Open: who writes the text about the the storm of 1908?

## Decisions

- Opening on 9 May
- Entrance is free for schools
- The lamp stands in the middle of the first room
`,
  "notes/ideas.md": `# Ideas

- A chair by the window, and the log book of a whole night to read.
- The sound of the horn, once an hour. Quietly.
- Children turn a crank and see how the clockwork moved the lens.
- A map of all wrecks, one pin for each. 
`,
  "data/visitors.csv": `month,visitors
May,410
June,655
July,1240
August,1385
September,520
`,
  "texts/keepers.md": `# The keepers

For ninety years somebody was awake here every night. The keeper wound the clockwork, trimmed the wick, and wrote down
what passed: ships, weather, birds that struck the glass.

There were always two of them, later three. They They shared the watches of four hours, and rarely sat at one table.

The last keeper left in 1971, when the lamp was switched from the mainland. He took the log book of that year with him;
his daughter brought it back in 2004.
`,
  "texts/storm.md": `# The storm of 1908

On the night of 21 November the sea broke the windows of the lower room. The keeper carried the oil up by hand.
The light did not go out.
`,
};
