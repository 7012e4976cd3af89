/**
 * Maximum {@link patternSize} of a pattern. RE2 itself limits the size of patterns. The RE2JS engine accepts patterns
 * that are about seven hundred times larger, and such patterns take seconds to compile and to match.
 */
export const PATTERN_SIZE_MAX = 2000;

/**
 * Maximum total cost of the distinct patterns in a namespace's firewall rules, in instructions. The total cost is the
 * sum of `patternCost` from the module `policy`. Literal patterns cost nothing. Evaluating the most expensive patterns
 * for one login takes less than a second of CPU time. If the rules of a namespace exceed the maximum because an older
 * server stored them, a change to the rules must not increase their total cost.
 */
export const FIREWALL_PATTERNS_MAX = 150_000;

/** Maximum sum of the {@link patternSize} of all patterns in the forwarding rules of a namespace. */
export const FORWARDING_PATTERNS_MAX = 6000;

/**
 * The size that the lookup tables of a Unicode class, such as `\p{L}`, add to a pattern, in instructions. The engine
 * creates the tables only once, even if the class is repeated.
 */
const UNICODE_CLASS = 10;
/**
 * The size that a character range beyond ASCII adds to a case-insensitive pattern, in instructions. The engine visits
 * every letter of such a range.
 */
const FOLDED_RANGE = 100;

/** Matches a repetition. RE2 reads a repetition with leading zeros, such as `{01}`, as literal characters. */
const REPETITION = /\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}/y;

/** Yields the parts of a pattern that have a size: characters, escapes, classes, group openings and operators. */
function* tokensOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = tokenEnd(text, start);
    yield text.slice(start, end);
    start = end;
  }
}

function tokenEnd(text: string, start: number): number {
  switch (text[start]) {
    case "\\":
      return escapeEnd(text, start);
    case "[":
      return classEnd(text, start);
    case "(":
      return text[start + 1] === "?" ? groupEnd(text, start) : start + 1;
    case "{":
      REPETITION.lastIndex = start;
      return REPETITION.test(text) ? REPETITION.lastIndex : start + 1;
    default:
      return characterEnd(text, start);
  }
}

/** Returns the position after the character at `start`. A character beyond U+FFFF has two positions. */
const characterEnd = (text: string, start: number): number =>
  start + ((text.codePointAt(start) ?? 0) > 0xffff ? 2 : 1);

/**
 * Returns the position after the next occurrence of `text`, searched from `start`. Returns the length of the pattern if
 * there is none.
 */
function positionAfter(pattern: string, text: string, start: number): number {
  const found = pattern.indexOf(text, start);
  return found === -1 ? pattern.length : found + text.length;
}

function escapeEnd(text: string, start: number): number {
  const name = text[start + 1];
  if (name === undefined) return start + 1;
  if (name === "Q") return positionAfter(text, "\\E", start + 2);
  const hasBraces = "pPx".includes(name) && text[start + 2] === "{" && text.includes("}", start + 3);
  return hasBraces ? positionAfter(text, "}", start + 3) : characterEnd(text, start + 1);
}

/**
 * Returns the position after a character class. A class without a closing bracket extends to the end of the pattern.
 */
function classEnd(text: string, start: number): number {
  let place = start + 1;
  if (text[place] === "^") place += 1;
  // The first item of a class may be a closing bracket.
  if (text[place] === "]") place += 1;
  while (place < text.length && text[place] !== "]") {
    if (text[place] === "\\") {
      if (place + 1 === text.length) return place;
      place = characterEnd(text, place + 1);
    } else {
      place = namedClassEnd(text, place) ?? place + 1;
    }
  }
  return Math.min(place + 1, text.length);
}

/**
 * Returns the position after a named class such as `[:alpha:]`, whose closing bracket does not end the outer class.
 * Returns undefined if no named class begins at `start`.
 */
function namedClassEnd(text: string, start: number): number | undefined {
  if (!text.startsWith("[:", start)) return undefined;
  const first = text[start + 2] === "^" ? start + 3 : start + 2;
  let place = first;
  while (isLowerLetter(text[place])) place += 1;
  return place > first && text.startsWith(":]", place) ? place + 2 : undefined;
}

const isLowerLetter = (character: string | undefined): boolean =>
  character !== undefined && character >= "a" && character <= "z";

/** Returns the position after the opening of a group with a name or with flags: `(?P<name>`, `(?i:`, `(?i)`. */
function groupEnd(text: string, start: number): number {
  if (text.startsWith("<", start + 2)) return positionAfter(text, ">", start + 3);
  if (text.startsWith("P<", start + 2)) return positionAfter(text, ">", start + 4);
  let place = start + 2;
  while (place < text.length && text[place] !== ":" && text[place] !== ")") place += 1;
  return Math.min(place + 1, text.length);
}

/**
 * An open group, whose closing parenthesis has not been read: the size of the group so far, and the size of its last
 * item, to which a following repetition applies.
 */
interface Group {
  size: number;
  last: number;
}

/** Returns the size of a repeated item after RE2 has expanded the repetition: `x{2,4}` becomes `xx(x(x)?)?`. */
function repeatedSize(item: number, repetition: string): number {
  const [least = 0, most = least] = repetition.slice(1, -1).split(",").map(Number);
  if (repetition.endsWith(",}")) return Math.max(least, 1) * item + 2;
  return Math.max(1, most * item + Math.max(most - least, 0));
}

/**
 * Returns the size of a pattern in RE2 syntax: an upper bound of the number of instructions in the compiled pattern.
 * The function does not compile the pattern. For a string that is not a valid pattern, the result is meaningless.
 */
export function patternSize(text: string): number {
  const open: Group[] = [];
  // Every compiled pattern has an instruction to fail, an instruction to match, and at least one instruction between
  // them.
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
  for (const token of tokensOf(text)) {
    if (token.startsWith("\\Q")) {
      group.size += token.length;
      // After an empty quotation `\Q\E`, a repetition applies to the item before the quotation.
      if (token !== "\\Q\\E") group.last = 1;
    } else if (token === ")") {
      const { size } = group;
      group = open.pop() ?? { size: 0, last: 0 };
      add(size);
    } else if (token.startsWith("(")) {
      foldsCase ||= /^\(\?[a-zA-Z]*i/.test(token);
      if (token.endsWith(")")) continue;
      open.push(group);
      // A group needs one instruction for its beginning, one for its end, and at least one for its content.
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

/**
 * Returns the size that a token's Unicode or case-folding tables add to a pattern, in instructions.
 * @param token a character class or an escape
 */
function tablesSize(token: string, foldsCase: boolean): number {
  const unicode = token.split(/\\p/i).length - 1;
  const beyondAscii = token.includes("\\x") || [...token].some((character) => character > "\x7f");
  const ranges = foldsCase && beyondAscii ? token.split("-").length - 1 : 0;
  return unicode * UNICODE_CLASS + ranges * FOLDED_RANGE;
}
