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
