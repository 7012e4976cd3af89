import type { AccessKey, AccessRule } from "@gatehouse-access/sdk/policy";

/** Most names or addresses that {@link listText} shows. */
const LIST_MAX = 4;
/** Characters of a fingerprint that are enough to tell keys apart. */
const FINGERPRINT_WIDTH = 11;

/** The first few texts, and how many more there are, for a table: `a, b, c, d, 3 more`. */
export function listText(texts: readonly string[]): string {
  const more = texts.length - LIST_MAX;
  return [...texts.slice(0, LIST_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/** The first texts, and how many more there are, for a sentence: `a, b and 3 more`. */
export function firstOf(texts: readonly string[], most: number): string {
  const more = texts.length - most;
  return `${texts.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** `1 key`, `2 keys`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** A key's name with the beginning of its fingerprint, since several keys may have one name. */
export const keyText = ({ name, fingerprint }: AccessKey): string =>
  `${name} (${fingerprint.slice(0, FINGERPRINT_WIDTH)}…)`.trimStart();

/** `12 (allow, priority 7)`. */
export const ruleText = ({ id, action, priority }: Pick<AccessRule, "id" | "action" | "priority">): string =>
  `${id} (${action}, priority ${priority})`;

/** Made by the first comparison: that takes 20 ms, for which commands that order nothing need not wait. */
let collator: Intl.Collator | undefined;

/** Orders texts as people do, with numbers in them by value, and in the same way on every machine. */
export function byText(left: string, right: string): number {
  collator ??= new Intl.Collator("en", { numeric: true });
  // The collator takes some different texts as equal.
  return collator.compare(left, right) || (left < right ? -1 : left > right ? 1 : 0);
}

/** Orders things by their texts: by the first one, and where that is equal, by the next one. */
export const byTexts =
  <T>(...textsOf: readonly ((item: T) => string)[]) =>
  (left: T, right: T): number => {
    for (const textOf of textsOf) {
      const order = byText(textOf(left), textOf(right));
      if (order !== 0) return order;
    }
    return 0;
  };

/**
 * What has no shape of its own: control and format characters, which could move the cursor or turn the direction of
 * writing, separators of lines, what has no width, halves of characters, and what is no character.
 */
const UNSEEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu;

/** The text with an escape in place of each character that a reader would not see, or that could steer an editor. */
export const escaping = (text: string, escaped: (character: string) => string): string =>
  text.replaceAll(UNSEEN, escaped);

/** The number of a character in base 16. */
export const codeOf = (character: string): string => (character.codePointAt(0) ?? 0).toString(16);

/**
 * A text that others chose, such as a key's name, in a form that cannot steer a terminal: what no reader would see becomes
 * `\u{1b}`.
 */
export const printable = (text: string): string => escaping(text, (character) => `\\u{${codeOf(character)}}`);

/** The same for a text of several lines. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");
