import { RE2JS } from "re2js";

/**
 * Largest {@link patternSize} of a pattern. RE2 has such a bound on its program; that of the engine in use here is
 * some seven hundred times as wide, and so many instructions take seconds to compile and to match.
 */
export const PATTERN_SIZE_MAX = 2000;

/** What building the tables of a Unicode class costs, in instructions; repeating it does not build them again. */
const UNICODE_CLASS = 10;
/** The same of a range beyond ASCII whose letter case is ignored: the engine goes through all letters. */
const FOLDED_RANGE = 100;

// Read by the engine itself, which does not backtrack.
const TOKEN = RE2JS.compile(
  [
    String.raw`\\Q(?:.*?)(?:\\E|\z)`,
    String.raw`\\[pPx]\{[^}]*\}|\\.`,
    // A bracket may be the first item of a class, and that of a named class does not end it. What is never closed
    // is no pattern, and is one token, so that it is gone through once.
    String.raw`\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]?`,
    String.raw`\(\?(?:P?<[^>]*>?|[^:)]*[:)]?)`,
    // A count with leading zeros is none: its characters are literals.
    String.raw`\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}`,
    ".",
  ].join("|"),
  RE2JS.DOTALL,
);

/** A group that is open: what it holds so far, and the part of that which a repetition would repeat. */
interface Group {
  size: number;
  last: number;
}

/** Size of a repeated item, as RE2 writes it out: `x{2,4}` becomes `xx(x(x)?)?`. */
function repeatedSize(item: number, repetition: string): number {
  const [least = 0, most = least] = repetition.slice(1, -1).split(",").map(Number);
  if (repetition.endsWith(",}")) return Math.max(least, 1) * item + 2;
  return Math.max(1, most * item + Math.max(most - least, 0));
}

/**
 * What a pattern in RE2 syntax costs, in instructions of the program that it is compiled to, without compiling it:
 * never less than the program has. Of a text that is no pattern the size means nothing.
 */
export function patternSize(text: string): number {
  const open: Group[] = [];
  // Every program begins with an instruction to fail, and ends with one to match; in between is one at least.
  let group: Group = { size: 3, last: 0 };
  let tables = 0;
  let foldsCase = false;
  const add = (size: number) => {
    group.size += size;
    group.last = size;
  };
  const grow = (size: number) => {
    group.size += size - group.last;
    group.last = size;
  };
  for (const tokens = TOKEN.matcher(text); tokens.find(); ) {
    const token = tokens.group() ?? "";
    if (token.startsWith("\\Q")) {
      group.size += token.length;
      // Without a letter in it, what stands before is what a repetition repeats.
      if (token !== "\\Q\\E") group.last = 1;
    } else if (token === ")") {
      const { size } = group;
      group = open.pop() ?? { size: 0, last: 0 };
      add(size);
    } else if (token.startsWith("(")) {
      foldsCase ||= /^\(\?[a-zA-Z]*i/.test(token);
      if (token.endsWith(")")) continue;
      open.push(group);
      // Where the group begins and ends is noted, and what is empty is one instruction too.
      group = { size: 3, last: 0 };
    } else if (token === "|") {
      group.size += 2;
    } else if (token === "*" || token === "+" || token === "?") {
      grow(group.last + 2);
    } else if (token.startsWith("{") && token.length > 1) {
      grow(repeatedSize(group.last, token));
    } else {
      add(1);
      if (token.length > 1) tables += tablesSize(token, foldsCase);
    }
  }
  return group.size + tables;
}

/** @param token a class or an escape */
function tablesSize(token: string, foldsCase: boolean): number {
  const unicode = token.split(/\\p/i).length - 1;
  const beyondAscii = token.includes("\\x") || [...token].some((character) => character > "\x7f");
  const ranges = foldsCase && beyondAscii ? token.split("-").length - 1 : 0;
  return unicode * UNICODE_CLASS + ranges * FOLDED_RANGE;
}
