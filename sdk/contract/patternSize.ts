import { RE2JS } from "re2js";

/**
 * Maximum {@link patternSize} of a pattern. RE2 itself limits the size of patterns. The RE2JS engine allows patterns
 * that are about seven hundred times larger, which take seconds to compile and to match.
 */
export const PATTERN_SIZE_MAX = 2000;

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

// This tokenizer uses RE2JS and not JavaScript's RegExp, because RE2JS does not backtrack on patterns from untrusted
// clients.
const TOKEN = RE2JS.compile(
  [
    String.raw`\\Q(?:.*?)(?:\\E|\z)`,
    String.raw`\\[pPx]\{[^}]*\}|\\.`,
    // The first item of a class may be a closing bracket. The closing bracket of a named class does not end the outer
    // class. A class without a closing bracket is also one token, so that the function reads the text only once.
    String.raw`\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]?`,
    String.raw`\(\?(?:P?<[^>]*>?|[^:)]*[:)]?)`,
    // RE2 reads a repetition with leading zeros, such as `{01}`, as literal characters.
    String.raw`\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}`,
    ".",
  ].join("|"),
  RE2JS.DOTALL,
);

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
 * The function does not compile the pattern. For a text that is not a pattern, the result is meaningless.
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
  for (const tokens = TOKEN.matcher(text); tokens.find(); ) {
    const token = tokens.group() ?? "";
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
