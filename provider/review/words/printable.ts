/**
 * A text that others chose, such as a key's name, in a form that cannot steer a terminal: control and format characters,
 * which could move the cursor or turn the direction of writing, become `\u{1b}`.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
