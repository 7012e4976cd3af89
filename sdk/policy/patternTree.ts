import { type AST, RegExpParser } from "@eslint-community/regexpp";

const parser = new RegExpParser();

/**
 * What RE2 reads in another way than JavaScript, or JavaScript does not know: escapes with letters (`\Q`, `\pN`, `\A`, …)
 * other than the common classes, groups with flags or names, classes of classes, a class that begins with `]`, counts
 * with leading zeros (literals to RE2), and characters beyond U+FFFF or halves of them (RE2 reads code points).
 */
const DIFFERENT = /\\[^\W_dDwWsSbB]|\(\?(?!:)|\[\^?\]|\[[^\]]*\[|\{(?:\d+,)?0\d|[\ud800-\udfff]/;

/**
 * The tree of a pattern, where RE2 and JavaScript read it alike; undefined for every other one, about which only RE2
 * itself can be asked.
 */
export function patternTree(text: string): AST.Pattern | undefined {
  if (DIFFERENT.test(text)) return undefined;
  try {
    return parser.parsePattern(text);
  } catch {
    // No pattern in JavaScript's syntax: RE2 alone knows what it is.
    return undefined;
  }
}

/** The character that a node stands for: written as it is, or punctuation behind a backslash. */
export function literalOf(node: AST.Node): string | undefined {
  if (node.type !== "Character") return undefined;
  const { raw } = node;
  if (!raw.startsWith("\\")) return raw;
  return /^\\[!-/:-@[-`{-~]$/.test(raw) ? raw.slice(1) : undefined;
}
