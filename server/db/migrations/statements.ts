import { createHash } from "node:crypto";
import { DatabaseError } from "../DatabaseError.ts";

/**
 * One token of SQL, or the space before a token: a space, a line comment, a quoted text, a number, a word, an operator,
 * or another character. Every alternative consumes its input in one pass, without backtracking.
 */
const TOKEN = new RegExp(
  [
    String.raw`(?<space>[ \t\n\r\f\v]+|--[^\r\n]*)`,
    // A text with escapes (PostgreSQL), a plain text with an optional prefix, and a quoted name.
    String.raw`[eE]'(?:[^'\\]|\\[^]|'')*'`,
    "(?:[bBnNxX]|[uU]&)?'(?:[^']|'')*'",
    '"(?:[^"]|"")*"',
    // A dollar-quoted text (PostgreSQL), such as the body of a function.
    String.raw`\$(?<tag>(?:[A-Za-z_]\w*)?)\$[^]*?\$\k<tag>\$`,
    String.raw`\d[\w.]*`,
    String.raw`[\w\u0080-\uffff][\w$\u0080-\uffff]*`,
    String.raw`(?:(?!--|/\*)[-+*/<>=~!@#%^&|?:])+`,
    String.raw`[()[\]{},;.]`,
  ].join("|"),
  "y",
);

/**
 * Returns the tokens of SQL, without comments and spaces. A text in quotes is one token, including the body of a
 * function, so comments and spaces in it count.
 * @throws DatabaseError the SQL contains a block comment, an unfinished quoted text or an unknown character. Block
 * comments are not allowed, because PostgreSQL nests them and SQLite does not.
 */
export function tokensOf(sql: string): string[] {
  const tokens: string[] = [];
  let at = 0;
  while (at < sql.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(sql);
    if (match === null) {
      const line = sql.slice(0, at).split("\n").length;
      throw new DatabaseError(
        `Cannot read the SQL at line ${line}: ${JSON.stringify(sql.slice(at, at + 20))}`,
      );
    }
    if (match.groups?.space === undefined) tokens.push(match[0]);
    at = TOKEN.lastIndex;
  }
  return tokens;
}

/**
 * Returns the SHA-256 of the statements of SQL. Comments, and spaces between tokens, do not change this checksum. Every
 * change of a token changes it.
 */
export const checksumOf = (sql: string): string => sha256(JSON.stringify(tokensOf(sql)));

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
