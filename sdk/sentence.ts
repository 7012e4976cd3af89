/**
 * Returns a text as a sentence: with a capital letter if the first word is an ordinary word, and with a final period.
 * Names such as `validDays` and URLs stay as they are. The text must not begin with data of a user, such as a name.
 */
export const sentence = (text: string): string =>
  withPeriod(text.replace(/^\p{Ll}+(?=[ ,'])/u, (word) => capitalized(word)));

/** Returns a text with a capital first letter. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Adds the final period. A list of several lines, or a command in quotes that a user copies, gets no period. */
export const withPeriod = (text: string): string =>
  text.includes("\n") || /[.?!:'`…/]$/u.test(text) ? text : `${text}.`;
