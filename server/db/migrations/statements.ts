import { createHash } from "node:crypto";
import { DatabaseError } from "../DatabaseError.ts";

/**
 * Matches one token of SQL, or the space between tokens: white space, a line comment, a quoted string, a number, a
 * word, an operator, or another character. Every alternative reads its input in one pass, without backtracking.
 */
const TOKEN = new RegExp(
  [
    String.raw`(?<space>[ \t\n\r\f\v]+|--[^\r\n]*)`,
    // A string with escapes (PostgreSQL), a plain string with an optional prefix, and a quoted name.
    String.raw`[eE]'(?:[^'\\]|\\[^]|'')*'`,
    "(?:[bBnNxX]|[uU]&)?'(?:[^']|'')*'",
    '"(?:[^"]|"")*"',
    // A dollar-quoted string (PostgreSQL), such as the body of a function.
    String.raw`\$(?<tag>(?:[A-Za-z_]\w*)?)\$[^]*?\$\k<tag>\$`,
    String.raw`\d[\w.]*`,
    String.raw`[\w\u0080-\uffff][\w$\u0080-\uffff]*`,
    String.raw`(?:(?!--|/\*)[-+*/<>=~!@#%^&|?:])+`,
    String.raw`[()[\]{},;.]`,
  ].join("|"),
  "y",
);

/**
 * Returns the tokens of SQL, without comments and white space. A quoted string is one token, including its comments and
 * white space. The body of a function is such a string.
 * @throws DatabaseError the SQL contains a block comment, an unfinished quoted string or an unknown character. Block
 *   comments are not allowed, because PostgreSQL nests them and SQLite does not.
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
 * Returns the SHA-256 of the statements in SQL. A change to a token changes the checksum. A change to a comment, or to
 * white space between tokens, does not.
 */
export const checksumOf = (sql: string): string => sha256(JSON.stringify(tokensOf(sql)));

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
