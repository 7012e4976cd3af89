/**
 * Returns true if the whole string matches the glob. `*` matches any string, and `?` matches one character. The search
 * backtracks only to the last `*`, so the search time is at most proportional to the product of both lengths.
 */
export function globFits(glob: string, text: string): boolean {
  const [wanted, given] = [[...glob], [...text]];
  let at = 0;
  let star: { readonly at: number; taken: number } | undefined;
  for (let place = 0; place < given.length; ) {
    if (wanted[at] === "*") {
      star = { at, taken: place };
      at += 1;
    } else if (wanted[at] === "?" || wanted[at] === given[place]) {
      at += 1;
      place += 1;
    } else if (star) {
      star.taken += 1;
      place = star.taken;
      at = star.at + 1;
    } else {
      return false;
    }
  }
  return wanted.slice(at).every((character) => character === "*");
}

/**
 * Returns sample strings that match the glob: one with each `*` removed, and one with each `*` replaced by a character.
 */
export function globSamples(glob: string): string[] {
  const filled = glob.replaceAll("?", "x");
  return [...new Set([filled.replaceAll("*", ""), filled.replaceAll("*", "x")])].filter(
    (text) => text !== "",
  );
}
