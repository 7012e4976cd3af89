import type { AccessKey, AccessRule } from "@gatehouse-access/sdk/policy";

/** Most names or addresses of one list in a text. */
const LIST_MAX = 4;
/** Characters of a fingerprint that tell keys apart in a table. */
const FINGERPRINT_WIDTH = 11;

/**
 * Text of others, such as names of keys and login names that somebody tried, for a terminal: control and format
 * characters, which could move the cursor or turn the writing, as `\u{1b}`.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** The first few, and how many more. */
export function listText(texts: readonly string[]): string {
  const more = texts.length - LIST_MAX;
  return [...texts.slice(0, LIST_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/** The first ones, and how many more, in a sentence: `a, b and 3 more`. */
export function firstOf(texts: readonly string[], most: number): string {
  const more = texts.length - most;
  return `${texts.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** `1 key`, `2 keys`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** A key by its name and the beginning of its fingerprint; names need not differ. */
export const keyText = ({ name, fingerprint }: AccessKey): string =>
  `${name} (${fingerprint.slice(0, FINGERPRINT_WIDTH)}…)`.trimStart();

/** A rule by its id, and what it says. */
export const ruleText = ({ id, action, priority }: Pick<AccessRule, "id" | "action" | "priority">): string =>
  `${id} (${action}, priority ${priority})`;
