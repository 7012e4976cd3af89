/**
 * Returns a string as a sentence: with a capital letter if the first word is an ordinary word, and with a final period.
 * Names such as `validDays` and URLs do not change. The string must not begin with user data, such as a name.
 */
export const sentence = (text: string): string =>
  withPeriod(text.replace(/^\p{Ll}+(?=[ ,'])/u, (word) => capitalized(word)));

/** Returns a string with a capital first letter. */
export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Adds a final period, except to a list of several lines and to a quoted command that a user copies. */
export const withPeriod = (text: string): string =>
  text.includes("\n") || /[.?!:'`…/]$/u.test(text) ? text : `${text}.`;
