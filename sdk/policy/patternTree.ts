import { type AST, RegExpParser } from "@eslint-community/regexpp";

const parser = new RegExpParser();

/**
 * Finds what RE2 and JavaScript read differently, and what JavaScript does not know: escapes with letters (`\Q`, `\pN`,
 * `\A`, …) other than the common classes, groups with flags or names, classes of classes, a class that begins with `]`,
 * counts with leading zeros (literals to RE2), and characters beyond U+FFFF or halves of them (RE2 reads code points).
 */
const DIFFERENT = /\\[^\W_dDwWsSbB]|\(\?(?!:)|\[\^?\]|\[[^\]]*\[|\{(?:\d+,)?0\d|[\ud800-\udfff]/;

/** The syntax tree of a pattern; undefined for a pattern that RE2 and JavaScript do not read alike. */
export function patternTree(text: string): AST.Pattern | undefined {
  if (DIFFERENT.test(text)) return undefined;
  try {
    return parser.parsePattern(text);
  } catch {
    // JavaScript does not know its syntax.
    return undefined;
  }
}

/** The character that a node stands for, written plainly or as punctuation behind a backslash; undefined for none. */
export function literalOf(node: AST.Node): string | undefined {
  if (node.type !== "Character") return undefined;
  const { raw } = node;
  if (!raw.startsWith("\\")) return raw;
  return /^\\[!-/:-@[-`{-~]$/.test(raw) ? raw.slice(1) : undefined;
}
